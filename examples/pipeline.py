"""Three actors in a row. Whoever asked gets the answer straight from the last one.

Nobody in the middle knows who asked: the callback travels with the message.
"""

import msgspec

import framewire as fw


@fw.message("text.raw")
class Raw(msgspec.Struct):
    text: str


@fw.message("text.words")
class Words(msgspec.Struct):
    words: list[str]


@fw.message("text.counted")
class Counted(msgspec.Struct):
    counts: dict[str, int]


@fw.message("text.report")
class Report(msgspec.Struct):
    lines: list[str]


class Splitter(fw.Actor):
    @fw.handles(Raw)
    async def split(self, raw: Raw) -> Words:
        return Words(raw.text.lower().split())


class Counter(fw.Actor):
    concurrency = 4

    @fw.handles(Words)
    def count(self, words: Words) -> Counted:  # a plain def runs in a thread
        return Counted({word: words.words.count(word) for word in dict.fromkeys(words.words)})


class Reporter(fw.Actor):
    @fw.handles(Counted)
    async def report(self, counted: Counted, ctx: fw.Context) -> Report:
        ranked = sorted(counted.counts.items(), key=lambda item: (-item[1], item[0]))
        flow = ctx.correlation_id.decode()
        return Report([f"{count}x {word}" for word, count in ranked] + [f"flow {flow}"])


async def main() -> None:
    async with fw.Node() as node:
        for actor in (Splitter(), Counter(), Reporter()):
            await node.host(actor)
        report = await node.hub.ask(Raw("to be or not to be"), Report, timeout=2)
        print("\n".join(report.lines))


if __name__ == "__main__":
    fw.run(main())
