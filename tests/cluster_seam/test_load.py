"""Many flows at once with default settings, on one, two and three nodes: all end, and none by its timeout."""

import asyncio
import time
from collections import Counter

import msgspec
import pytest
from tests.node.running import eventually, run

import framewire as fw
from framewire.testing import Cluster

FLOWS = 20_000


@fw.message("load.step")
class Step(msgspec.Struct):
    left: int = 0


@fw.message("load.there")
class There(msgspec.Struct):
    number: int = 0


@fw.message("load.back")
class Back(msgspec.Struct):
    number: int = 0


@fw.message("load.question")
class Question(msgspec.Struct):
    inner: bool = False


@fw.message("load.done")
class Done(msgspec.Struct):
    number: int = 0


class OwnSteps(fw.Actor):
    """Returns its own next step."""

    @fw.handles(Step)
    async def step(self, step):
        return Step(step.left - 1) if step.left else Done()


class Near(fw.Actor):
    """Sends each flow to ``Far``, as often as it is told, and gets it back."""

    def __init__(self, copies=1):
        self.copies = copies

    @fw.handles(Step)
    async def begin(self, step):
        return [There(step.left) for _ in range(self.copies)]

    @fw.handles(Back)
    async def end(self, back):
        return Done(back.number)


class Far(fw.Actor):
    @fw.handles(There)
    async def there(self, there):
        return Back(there.number)


def outcomes(results):
    return Counter(type(result).__name__ for result in results)


async def at_once(hub, message, count=FLOWS):
    promises = [hub.start(message, Done, timeout=600) for _ in range(count)]  # all of it on one event loop
    return outcomes(await asyncio.gather(*promises, return_exceptions=True))


async def nothing_waits(cluster):
    await cluster.settled(timeout=20)
    await eventually(lambda: not any(node.stats().totals["pending"] for node in cluster.nodes))


@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("scene", ["own steps", "there and back", "fan-out"])
def test_flows_that_come_back_to_their_actors_are_all_answered(scene, nodes):
    async def scenario():
        async with Cluster(nodes) as cluster:
            if scene == "own steps":
                await cluster[nodes - 1].host(OwnSteps())
            else:
                await cluster[min(1, nodes - 1)].host(Near(3 if scene == "fan-out" else 1))
                await cluster[nodes - 1].host(Far())
            await cluster.settled()
            assert await at_once(cluster[0].hub, Step(10)) == {"Done": FLOWS}
            await nothing_waits(cluster)

    run(scenario(), timeout=100)


class Asker(fw.Actor):
    """Asks ``Asked``, which asks back."""

    @fw.handles(Question)
    async def question(self, question, ctx):
        return Done() if question.inner else await ctx.ask(There(), Done)


class Asked(fw.Actor):
    @fw.handles(There)
    async def there(self, _, ctx):
        return await ctx.ask(Question(inner=True), Done)


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_an_ask_that_comes_back_to_its_actor_ends_at_once_with_an_error_that_names_the_cycle(nodes):
    async def scenario():
        async with Cluster(nodes) as cluster:
            await cluster[min(1, nodes - 1)].host(Asker())
            await cluster[nodes - 1].host(Asked())
            await cluster.settled()
            began = time.monotonic()
            with pytest.raises(fw.Deadlock, match=r"Asker asks Asked asks Asker|Asked asks Asker asks Asked"):
                await cluster[0].hub.ask(Question(), Done, timeout=60)
            assert time.monotonic() - began < 10
            assert set(await at_once(cluster[0].hub, Question(), 100)) <= {"Deadlock", "Overloaded"}
            await nothing_waits(cluster)

    run(scenario(), timeout=60)


class PassedOn(fw.Actor):
    """Passes on what it is asked to ``AsksBack``."""

    @fw.handles(There)
    async def there(self, there):
        return Back(there.number)


class AsksBack(fw.Actor):
    @fw.handles(Back)
    async def back(self, _, ctx):
        return await ctx.ask(Question(inner=True), Done)


@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("others", [[Asked], [PassedOn, AsksBack]])
def test_cycles_that_wait_behind_one_another_are_all_found_before_their_time_is_over(others, nodes):
    async def scenario():
        async with Cluster(nodes) as cluster:
            await cluster[min(1, nodes - 1)].host(Asker())
            for actor in others:
                await cluster[nodes - 1].host(actor())
            await cluster.settled()
            promises = [cluster[0].hub.start(Question(), Done) for _ in range(400)]
            ended = outcomes(await asyncio.gather(*promises, return_exceptions=True))
            assert ended == {"Deadlock": 400}
            await nothing_waits(cluster)

    run(scenario(), timeout=60)


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_reentrant_actor_lets_calls_of_its_own_flow_in(nodes):
    async def scenario():
        async with Cluster(nodes) as cluster:
            await cluster[min(1, nodes - 1)].host(Asker(), reentrant=True)
            await cluster[nodes - 1].host(Asked())
            await cluster.settled()
            assert await at_once(cluster[0].hub, Question(), 2000) == {"Done": 2000}
            await nothing_waits(cluster)

    run(scenario(), timeout=60)


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_flows_that_hold_each_others_actors_are_found_too(nodes):
    # No flow comes back to itself: each holds one actor and asks the other, and yet nobody would go on.
    async def scenario():
        async with Cluster(nodes) as cluster:
            both = asyncio.Barrier(2)

            async def left(message, ctx):
                if isinstance(message, There):
                    return Done()
                await both.wait()
                return await ctx.ask(Back(), Done)

            async def right(message, ctx):
                if isinstance(message, Back):
                    return Done()
                await both.wait()
                return await ctx.ask(There(), Done)

            cluster[min(1, nodes - 1)].handler(Step, There)(left)
            cluster[nodes - 1].handler(Question, Back)(right)
            await cluster.settled()
            promises = [cluster[0].hub.start(message, Done, timeout=60) for message in (Step(), Question())]
            ended = outcomes(await asyncio.gather(*promises, return_exceptions=True))
            assert ended == {"Done": 1, "Deadlock": 1}
            await nothing_waits(cluster)

    run(scenario())


@pytest.mark.parametrize("nodes", [1, 2])
def test_workers_that_ask_their_own_actor_go_on(nodes):
    async def scenario():
        async with Cluster(nodes) as cluster:

            @cluster[nodes - 1].handler(Question, concurrency=4)
            async def own(question, ctx):
                return Done() if question.inner else await ctx.ask(Question(inner=True), Done)

            await cluster.settled()
            ended = await at_once(cluster[0].hub, Question())
            assert set(ended) <= {"Done", "Deadlock"}
            assert ended["Done"] > FLOWS * 0.9
            await nothing_waits(cluster)

    run(scenario(), timeout=60)


@pytest.mark.parametrize("nodes", [1, 3])
def test_plain_handlers_that_wait_for_plain_handlers_do_not_use_up_the_threads(nodes):
    async def scenario():
        async with Cluster(nodes, threads=8) as cluster:

            @cluster[min(1, nodes - 1)].handler(Question, concurrency=64)
            def outer(_, ctx):
                return ctx.wait(ctx.ask(There(), Done))

            @cluster[min(1, nodes - 1)].handler(There, concurrency=64)
            def inner(_):
                return Done()

            await cluster.settled()
            assert await at_once(cluster[0].hub, Question(), 1000) == {"Done": 1000}
            await nothing_waits(cluster)

    run(scenario(), timeout=60)
