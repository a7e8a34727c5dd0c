"""Looking for a single answer: until it is there, not for long, and ever more seldom where that does not help."""

import asyncio
import select
import socket

import pytest
from tests.cluster.clustering import Named, handlers, make_node
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster import vigil
from framewire.cluster.vigil import Vigil, keep_no_vigil, vigil_at

pytestmark = pytest.mark.skipif(not hasattr(select, "poll"), reason="this system cannot poll")


class Counting:
    """A clock that tells how often it was looked at, and stands still unless it is told to go on."""

    def __init__(self, step=0.0):
        self.looks, self.step = 0, step

    def __call__(self):
        self.looks += 1
        return self.looks * self.step


@pytest.fixture
def pair():
    one, other = socket.socketpair()
    yield one, other
    one.close()
    other.close()


def test_it_ends_when_something_is_there(pair):
    clock = Counting()
    pair[1].send(b"!")
    Vigil(pair[0].fileno(), 1.0, clock).keep()  # with a clock that stands still it would never end by itself
    assert clock.looks == 1


def test_it_ends_when_its_time_is_over(pair):
    clock = Counting(step=0.1)
    Vigil(pair[0].fileno(), 1.0, clock).keep()
    assert clock.looks == pytest.approx(11, abs=1)


def test_what_never_helps_is_hardly_ever_tried(pair):
    clock = Counting(step=2.0)  # each time it is looked at, the time is over
    watch = Vigil(pair[0].fileno(), 1.0, clock)
    for _ in range(10_000):
        watch.keep()
    assert 20 < clock.looks < 60


def test_it_is_kept_each_time_again_once_it_has_helped(pair):
    clock = Counting(step=2.0)
    watch = Vigil(pair[0].fileno(), 1.0, clock)
    for _ in range(100):
        watch.keep()
    pair[1].send(b"!")
    for _ in range(100):
        watch.keep()
    before = clock.looks
    for _ in range(100):
        watch.keep()
    assert clock.looks - before == 100


def test_none_is_kept_where_nobody_wants_one_or_there_is_one_processor(pair, monkeypatch):
    assert vigil_at(pair[0].fileno(), 0.0) is keep_no_vigil
    monkeypatch.setattr(vigil, "_processors", lambda: 1)
    assert vigil_at(pair[0].fileno(), 1.0) is keep_no_vigil


def test_a_node_keeps_one_for_a_question_that_is_alone(monkeypatch):
    kept = []
    monkeypatch.setattr("framewire.cluster.transport.vigil_at", lambda _, limit: lambda: kept.append(limit))

    async def main():
        async with make_node() as server, make_node(peers=[server.uri], vigil=0.001) as node:
            await server.host(Named("server"))
            await eventually(lambda: handlers(node) == 1)
            for _ in range(5):
                await node.hub.ask(Question("one"), Answer)
            assert kept == [0.001] * 5
            await asyncio.gather(*(node.hub.ask(Question("many"), Answer) for _ in range(50)))
            await node.hub.tell(Question("nobody waits"))
            await asyncio.sleep(0)
            assert kept == [0.001] * 5

    run(main())


@pytest.mark.parametrize("wrong", [-0.1, 0.5, "long"])
def test_a_vigil_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(fw.ConfigError, match=r"vigil: .* must be 0 or more seconds, at most 0.01"):
        fw.Node(vigil=wrong)
