"""A node that only looks."""

import pytest
from tests.cluster.clustering import HEARTBEAT, Named, acquainted, make_node, peers, served, uri_of
from tests.node.running import run

import framewire as fw
from framewire.config import Flag, load
from framewire.operation.observing import NoClusterError, Observer


def told(**options):
    flags = [Flag(f"cluster.{name}", f"--{name}", str(value)) for name, value in options.items()]
    return load(environ={}, flags=[*flags, Flag("cluster.heartbeat", "--set", str(HEARTBEAT))])


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_it_finds_everyone_and_what_they_say_of_themselves():
    async def main(server):
        async with make_node(server, identity="a") as one, make_node(server, identity="b") as two:
            await two.host(Named("two"))
            await acquainted(one, two)
            async with Observer(told(rendezvous=server.uri)) as observer:
                found = await observer.look(await observer.find())
                assert [(node.name, node.uri, node.problem) for node in found] == [
                    ("a", uri_of(one), ""),
                    ("b", uri_of(two), ""),
                ]
                assert fw.MessageId(b"test.question") in found[1].handles
                assert found[1].stats.actors[-1].name == "Named"
                assert await observer.ping(found[0]) > 0

    run(served(main))


def test_two_who_look_do_not_see_each_other_and_leave_no_trace():
    async def main(server):
        async with make_node(server, identity="a") as node:
            async with Observer(told(rendezvous=server.uri)) as one, Observer(told(rendezvous=server.uri)) as two:
                await acquainted(one.node, two.node)
                for observer in (one, two):
                    assert [seen.name for seen in await observer.find()] == ["a"]
                assert len(peers(node)) == 2
            async with make_node(server, identity="b") as other:
                await acquainted(node, other)
                assert peers(node) == {b"b"}

    run(served(main))


def test_without_a_server_a_node_that_only_a_peer_knows_is_named_and_told_how_to_reach():
    async def main():
        async with make_node(identity="a") as one, make_node(identity="b", peers=[uri_of(one)]) as two:
            await acquainted(one, two)
            async with Observer(told(peers=uri_of(one))) as observer:
                one_seen, two_seen = await observer.look(await observer.find())
                assert (one_seen.name, one_seen.problem) == ("a", "")
                assert (two_seen.name, two_seen.stats) == ("b", None)
                assert "named with --peer" in two_seen.problem
            async with Observer(told(peers=f"{uri_of(one)},{uri_of(two)}")) as observer:
                assert [seen.problem for seen in await observer.look(await observer.find())] == ["", ""]

    run(main())


def test_nobody_is_an_error_that_says_where_was_looked():
    async def main():
        async with Observer(told(rendezvous="tcp://127.0.0.1:1"), wait=0.2) as observer:
            with pytest.raises(NoClusterError, match=r"through tcp://127\.0\.0\.1:1 in 0\.2 s"):
                await observer.find()

    run(main())
