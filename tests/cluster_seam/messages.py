"""Messages and actors for tests of what crosses from node to node."""

import msgspec

import framewire as fw
from framewire.testing import Cluster


@fw.message("seam.question")
class Question(msgspec.Struct):
    number: int = 0


@fw.message("seam.answer")
class Answer(msgspec.Struct):
    number: int = 0
    by: str = ""


class Answerer(fw.Actor):
    """Answers under a name, and remembers the messages that it handled."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.messages: list[fw.Message] = []
        self.remaining: list[float | None] = []

    @fw.handles(Question)
    async def question(self, question: Question, ctx: fw.Context) -> Answer:
        self.messages.append(ctx.message)
        self.remaining.append(ctx.remaining)
        return Answer(question.number, self.name)


async def answerers(cluster: Cluster, *indices: int) -> list[Answerer]:
    """One answerer on each of the nodes, called by the node's index, known to all."""
    actors = [Answerer(str(index)) for index in indices]
    for index, actor in zip(indices, actors, strict=True):
        await cluster[index].host(actor)
    await cluster.settled()
    return actors
