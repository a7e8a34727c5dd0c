"""Random graphs of actors with cycles, fan-out and asks: every flow ends, and none by its timeout."""

import asyncio
from collections import Counter
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.node.running import eventually, run

import framewire as fw
from framewire.testing import Cluster

ACTORS = 5


@fw.message("graph.done")
class Done(msgspec.Struct):
    pass


def _visit(number):
    """A message class for one actor; ``steps`` is what is still to be done."""

    @fw.message(f"graph.visit.{number}")
    class Visit(msgspec.Struct):
        steps: tuple[tuple[str, int], ...] = ()

    return Visit


VISITS = [_visit(number) for number in range(ACTORS)]


def actor(number):
    """Do the first of the steps of a message: pass the flow on, once or several times, or ask and go on."""

    async def visit(message, ctx):
        steps = message.steps
        if not steps:
            return Done()
        (what, target), rest = steps[0], steps[1:]
        if what == "ask":
            await ctx.ask(VISITS[target](), Done)
            return VISITS[number](rest)
        if what == "ask through":
            await ctx.ask(VISITS[target](rest[:2]), Done)
            return Done()
        if what == "fan out":
            return [VISITS[target](rest[:2]) for _ in range(3)]
        if what == "wait":
            await asyncio.sleep(0.0001)
        return VISITS[target](rest)

    return visit


STEP = st.tuples(
    st.sampled_from(["go", "go", "go", "wait", "ask", "ask through", "fan out"]), st.integers(0, ACTORS - 1)
)
HOST = st.fixed_dictionaries(
    {
        "concurrency": st.integers(1, 4),
        "mailbox": st.integers(1, 50),
        "overflow": st.sampled_from(["wait", "wait", "reject", "drop_oldest"]),
        "reentrant": st.booleans(),
    }
)


@dataclass
class Scene:
    nodes: int
    hosts: list
    plans: list
    flows: int


SCENES = st.builds(
    Scene,
    nodes=st.integers(1, 3),
    hosts=st.lists(HOST, min_size=ACTORS, max_size=ACTORS),
    plans=st.lists(st.lists(STEP, min_size=1, max_size=8), min_size=1, max_size=6),
    flows=st.sampled_from([50, 300, 1500]),
)


async def play(scene):
    async with Cluster(scene.nodes) as cluster:
        for number, options in enumerate(scene.hosts):
            node = cluster[number % scene.nodes]
            node.handler(VISITS[number], **options)(actor(number))
        await cluster.settled()
        promises = [
            cluster[flow % scene.nodes].hub.start(
                VISITS[flow % ACTORS](tuple(scene.plans[flow % len(scene.plans)])), Done, timeout=20
            )
            for flow in range(scene.flows)
        ]
        ended = await asyncio.gather(*promises, return_exceptions=True)
        await cluster.settled(timeout=20)
        await eventually(lambda: not any(node.stats().totals["pending"] for node in cluster.nodes))
        return Counter(type(one).__name__ for one in ended)


def check(scene):
    ended = run(play(scene), timeout=90)
    assert set(ended) <= {"Done", "Overloaded", "Deadlock"}
    assert sum(ended.values()) == scene.flows


@pytest.mark.timeout(600)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(SCENES)
def test_every_flow_of_a_random_graph_ends_by_an_answer_or_an_error_that_says_why(scene):
    check(scene)


@pytest.mark.long
@pytest.mark.timeout(1800)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(SCENES)
def test_every_flow_of_many_random_graphs_ends_by_an_answer_or_an_error_that_says_why(scene):
    check(scene)
