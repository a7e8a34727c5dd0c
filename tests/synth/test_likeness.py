"""Made-up captures look as those of a real node do: the same rows, and in each the same fields set."""

import asyncio
import contextlib

import msgspec
from tests.node.running import eventually, run
from tests.synth.reading import MadeUp

import framewire as fw
from framewire.security import DomainKey, KeyRing
from framewire.synth import Options, synthesise
from framewire.testing import Cluster
from framewire.wire import decode


@fw.message("like.question")
class Question(msgspec.Struct):
    text: str


@fw.message("like.answer")
class Answer(msgspec.Struct):
    text: str


@fw.message("like.first")
class First(msgspec.Struct):
    text: str


@fw.message("like.second")
class Second(msgspec.Struct):
    text: str


@fw.message("like.unknown")
class Unknown(msgspec.Struct):
    text: str


class Oracle(fw.Actor):
    @fw.handles(Question)
    async def question(self, question: Question) -> Answer | None:
        if question.text == "fail":
            raise ValueError(question.text)
        if question.text == "slow":
            await asyncio.sleep(0.2)
        return None if question.text == "nothing" else Answer(question.text)


class Beginner(fw.Actor):
    @fw.handles(First)
    async def first(self, first: First) -> Second:
        return Second(first.text)


class Finisher(fw.Actor):
    @fw.handles(Second)
    async def second(self, second: Second) -> Answer:
        return Answer(second.text)


class Notes:
    """A recorder that keeps everything."""

    def __init__(self, kept):
        self.kept = kept

    def open(self, node):
        self.node = node

    def record(self, direction, peer, frames, reason=None, at=0):  # noqa: ARG002 - a recorder's
        self.kept.append((self.node, direction, peer, tuple(frames), reason))

    def close(self):
        pass


def look(node, direction, peer, frames, reason):
    """All that can be compared between a real message and a made-up one."""
    message = decode(list(frames))
    origin = message.callback_receiver_node_identity

    def place(identity):
        if not identity:
            return "none"
        return "origin" if identity == origin else "other"

    points = [point.identity for point in message.callback_points]
    service = message.identity.startswith(b"KINO.")
    return str(
        {
            "row": (direction, reason and str(reason)),
            "peer": ("hub" if peer[0] == 0 else "actor") if direction == "delivered" else bool(peer),
            "recorded by": place(node) if origin else "somebody",
            "delimiter": frames[1],
            "hops": message.hops,
            "routing": [place(router.identity) if origin else "somebody" for router in message.routing],
            "receiver node": place(message.receiver_node_identity),
            "receiver": "hub" if message.receiver_identity == message.callback_receiver_identity else "none",
            "callback receiver": message.callback_receiver_identity[:1],
            "callback key": message.callback_key > 0,
            "callback points": [point if point.startswith(b"KINO.") else b"answer" for point in points],
            "message": message.identity if service else message.identity in points,
            "distribution": int(message.distribution),
            "ttl": message.ttl_ticks > 0,
            "domain and signature": (bool(message.domain), bool(message.signature)),
            "correlation id": len(message.correlation_id),
            "format": message.wire_version,
        }
    )


async def real_rows():
    kept = []
    ring = KeyRing([DomainKey("like", bytes(range(32)))], identities={"like": ["like.*"]})
    async with Cluster() as cluster:
        asker, one, other = [
            await cluster.join(recorder=Notes(kept), keyring=ring, route_grace=0.05) for _ in range(3)
        ]
        await one.host(Oracle(), cancel_late=False)
        await one.host(Beginner())
        await other.host(Finisher())
        await cluster.settled()
        hub = asker.hub
        await hub.ask(Question("why"), Answer)
        await hub.ask(First("chain"), Answer)
        await hub.send(Question("nothing"))
        await hub.tell(Question("nothing"))
        await hub.gather(Question("all"), Answer, timeout=2, stop_after=1)
        for failing in (
            hub.ask(Question("fail"), Answer),
            hub.ask(Unknown("?"), Answer),
            hub.ask(Question("slow"), Answer, timeout=0.1),
            hub.ask(Question("slow"), Answer, timeout=0.1, ttl=5.0),
        ):
            with contextlib.suppress(fw.RemoteError, fw.NoRoute, fw.Expired):
                await failing
        await hub.tell(Unknown("?"))
        await eventually(lambda: len([row for row in kept if row[4] == "late_reply"]) == 2)
        await eventually(lambda: len([row for row in kept if row[4] == "no_route"]) == 2)
    async with fw.Node(capture=Notes(kept), keyring=ring) as alone:
        await alone.host(Oracle())
        await alone.hub.ask(Question("here"), Answer)
        await alone.hub.send(Question("nothing"))
    return kept


def test_whatever_a_real_node_records_is_there_in_the_same_form(tmp_path):
    synthesise(Options(messages=30_000, nodes=4, versions={5: 1.0}), tmp_path)
    made = {
        look(row.node, row.direction, row.peer, row.frames, row.reason)
        for row in MadeUp(tmp_path).rows
        if row.error is None
    }
    real = {look(*row) for row in run(real_rows())}
    missing = sorted(real - made)
    assert not missing, "\n".join(missing)
    assert len(real) > 20
