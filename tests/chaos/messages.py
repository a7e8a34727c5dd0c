"""The numbered messages of the chaos tests, and who answers them."""

import asyncio

import msgspec

import framewire as fw

NUMBERED = fw.MessageId(b"chaos.numbered")
DOMAIN = "chaos"


@fw.message("chaos.numbered")
class Numbered(msgspec.Struct):
    """Answered with the same number, a while later; or not, where the handler is to fail."""

    number: str
    seconds: float = 0.0
    fails: bool = False


@fw.message("chaos.chained")
class Chained(msgspec.Struct):
    """Becomes a ``Numbered`` for whoever handles that, so the answer comes from a third node."""

    number: str
    seconds: float = 0.0


@fw.message("chaos.answered")
class Answered(msgspec.Struct):
    number: str


class Answering(fw.Actor):
    """Writes down what it handles before it answers: a journal tells what was handled twice."""

    concurrency = 100

    def __init__(self, handled):
        self._handled = handled

    @fw.handles(Numbered)
    async def numbered(self, asked):
        self._handled(asked.number)
        if asked.seconds:
            await asyncio.sleep(asked.seconds)
        if asked.fails:
            raise ValueError(f"{asked.number} is to fail")
        return Answered(asked.number)

    @fw.handles(Chained)
    async def chained(self, asked):
        self._handled(f"{asked.number}/chain")
        return Numbered(asked.number, asked.seconds)
