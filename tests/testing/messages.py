"""Messages, and actors that write down what reached them."""

import msgspec

import framewire as fw


@fw.message("kit.ping")
class Ping(msgspec.Struct):
    number: int = 0


@fw.message("kit.pong")
class Pong(msgspec.Struct):
    number: int = 0


class Echo(fw.Actor):
    """Answers, and remembers what it was asked."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.messages: list[fw.Message] = []

    @fw.handles(Ping)
    async def ping(self, ping: Ping, ctx: fw.Context) -> Pong:
        self.seen.append(ping.number)
        self.messages.append(ctx.message)
        return Pong(ping.number)
