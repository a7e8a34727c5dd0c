"""The smallest program: one actor, one question, one answer."""

import msgspec

import framewire as fw


@fw.message("greet.hello")
class Hello(msgspec.Struct):
    name: str


@fw.message("greet.welcome")
class Welcome(msgspec.Struct):
    text: str


class Greeter(fw.Actor):
    @fw.handles(Hello)
    async def hello(self, hello: Hello) -> Welcome:
        return Welcome(f"Welcome, {hello.name}")


async def main() -> None:
    async with fw.Node() as node:
        await node.host(Greeter())
        reply = await node.hub.ask(Hello("Ada"), Welcome, timeout=2)
        print(reply.text)


if __name__ == "__main__":
    fw.run(main())
