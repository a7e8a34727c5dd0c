import asyncio
import doctest
import math
import subprocess
import sys
import threading

import pytest
from tests.node.running import run
from tests.testing.messages import Echo, Ping, Pong

import framewire as fw
from framewire import testing
from framewire.testing import Cluster, Fate, Faults, ManualClock


def test_the_examples_in_the_documentation_work():
    assert doctest.testmod(testing).failed == 0


def test_everything_public_is_named():
    assert sorted(testing.__all__) == testing.__all__
    assert all(hasattr(testing, name) for name in testing.__all__)


def test_the_kit_needs_no_test_framework():
    told = "import sys, framewire.testing; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", told], check=False).returncode == 0


def test_nodes_know_each_other_from_the_start():
    async def scenario():
        async with Cluster(3) as cluster:
            assert [node.identity for node in cluster] == [b"node-0", b"node-1", b"node-2"]
            assert (len(cluster), cluster[2]) == (3, cluster.nodes[2])
            assert sorted(cluster[1].stats().peers) == ["node-0", "node-2"]

    run(scenario())


def test_settings_go_to_every_node_and_may_differ_for_one():
    async def scenario():
        async with Cluster(1, timeout=5.0) as cluster:
            other = await cluster.join(timeout=7.0, identity="mine")
            assert [node._core.settings.timeout for node in cluster] == [5.0, 7.0]
            assert other.identity == b"mine"

    run(scenario())


def test_unknown_settings_are_told():
    async def scenario():
        with pytest.raises(fw.UsageError, match="tiemout"):
            async with Cluster(2, tiemout=1):
                raise AssertionError("a cluster of nodes that cannot be made")

    run(scenario())


def test_a_cluster_cannot_be_smaller_than_nothing():
    with pytest.raises(fw.UsageError, match="size"):
        Cluster(-1)


def test_the_seed_of_the_cluster_is_that_of_its_faults():
    async def fates(**options):
        async with Cluster(2, clock=ManualClock(), **options) as cluster:
            for number in range(50):
                await cluster[0].hub.tell(Ping(number), to_node=b"node-1")
            await cluster.settled()
            return [(record.number, record.fate, record.message) for record in cluster.journal]

    faults = Faults(drop=0.3)
    assert run(fates(seed=4, faults=faults)) == run(fates(faults=Faults(seed=4, drop=0.3)))
    assert run(fates(seed=4, faults=faults)) != run(fates(seed=5, faults=faults))


def test_settled_waits_for_routes_messages_and_handlers():
    async def scenario():
        async with Cluster(2) as cluster:
            release, handled = threading.Event(), []

            @cluster[1].handler(Ping)
            def slow(ping: Ping) -> None:
                release.wait(10)
                handled.append(ping.number)

            await cluster.settled()
            await cluster[0].hub.tell(Ping(1))
            await cluster.settled(handlers=False)
            assert handled == []
            asyncio.get_running_loop().call_later(0.05, release.set)
            await cluster.settled()
            assert handled == [1]

    run(scenario())


def test_what_does_not_settle_is_told():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, faults=Faults(delay=(1.5, 1.5))) as cluster:
            await cluster[1].host(Echo())
            await cluster.settled()
            await cluster[0].hub.tell(Ping(1))
            with pytest.raises(TimeoutError, match=r"node-0 → node-1: 1 under way, the next in 1\.500 s"):
                await cluster.settled(timeout=0.01)
            await clock.advance(2)
            await cluster.settled()

    run(scenario())


def test_a_handler_that_does_not_end_is_told():
    async def scenario():
        async with Cluster(1) as cluster:
            release = asyncio.Event()

            @cluster[0].handler(Ping)
            async def stuck(_: Ping) -> None:
                await release.wait()

            await cluster[0].hub.tell(Ping(1))
            with pytest.raises(TimeoutError, match=r"node-0: .*stuck is at work on 1 messages"):
                await cluster.settled(timeout=0.01)
            release.set()

    run(scenario())


def test_a_node_that_leaves_is_forgotten_by_the_others():
    async def scenario():
        async with Cluster(3) as cluster:
            leaving = cluster[1]
            await cluster.leave(leaving)
            await cluster.settled()
            assert cluster.nodes == (cluster[0], cluster[2])
            assert cluster[0].stats().peers == ["node-2"]
            assert not leaving.running
            with pytest.raises(fw.UsageError, match="node-1: no such node runs"):
                await cluster.leave(1)

    run(scenario())


def test_a_killed_node_is_noticed_when_the_clock_says_so():
    async def scenario():
        clock = ManualClock()
        async with Cluster(2, clock=clock, lost_after=10) as cluster:
            await cluster.kill(1)
            await clock.advance(9)
            assert cluster[0].stats().peers == ["node-1"]
            with pytest.raises(TimeoutError, match="not noticed yet"):
                await cluster.settled(timeout=0.01)
            await clock.advance(2)
            assert cluster[0].stats().peers == []

    run(scenario())


def test_nothing_that_a_killed_node_does_gets_out():
    async def scenario():
        async with Cluster(2, lost_after=math.inf) as cluster:
            started = asyncio.Event()

            @cluster[1].handler(Ping)
            async def stuck(_: Ping) -> None:
                started.set()
                await asyncio.Event().wait()

            await cluster.settled()
            promise = cluster[0].hub.start(Ping(), Pong, timeout=60)
            async with asyncio.timeout(5):
                await started.wait()
            await cluster.kill(1)
            await cluster.settled()
            assert not promise.done
            assert cluster.journal.counts == {Fate.PASSED: 1}

    run(scenario())


def test_a_partition_and_its_healing():
    async def scenario():
        async with Cluster(3) as cluster:
            echo = Echo()
            await cluster[2].host(echo)
            await cluster.settled()
            cluster.partition([0, 1], [cluster[2]])
            await cluster.settled()
            assert cluster[0].stats().peers == ["node-1"]
            assert cluster[2].stats().peers == []
            cluster.heal()
            await cluster.settled()
            assert (await cluster[0].hub.ask(Ping(1), Pong)).number == 1

    run(scenario())


def test_faults_on_one_link_only():
    async def scenario():
        async with Cluster(3, clock=(clock := ManualClock())) as cluster:
            cluster.disturb(Faults(drop=1.0), sender=0, receiver=cluster[1])
            lost = cluster[0].hub.start(fw.NodeInfo(), fw.NodeStats, to_node=b"node-1", timeout=1)
            found = cluster[0].hub.start(fw.NodeInfo(), fw.NodeStats, to_node=b"node-2", timeout=1)
            await clock.advance(2)
            assert found.result().node == "node-2"
            with pytest.raises(fw.Expired):
                lost.result()

    run(scenario())


def test_a_node_that_raises_fails_the_test():
    async def scenario():
        async with Cluster(2) as cluster:
            cluster[1].port.receive = lambda *_: 1 / 0
            await cluster[0].hub.tell(Ping(), to_node=b"node-1")
            await cluster.settled()

    with pytest.raises(ExceptionGroup, match="nodes raised") as caught:
        run(scenario())
    assert caught.group_contains(ZeroDivisionError)


def test_a_test_that_fails_does_not_wait_for_handlers():
    async def failing():
        async with Cluster(1, stop_timeout=60) as cluster:

            @cluster[0].handler(Ping)
            async def stuck(_: Ping) -> None:
                await asyncio.Event().wait()

            await cluster[0].hub.tell(Ping())
            raise KeyError("the test's own failure")

    with pytest.raises(KeyError):
        run(failing(), timeout=30)
