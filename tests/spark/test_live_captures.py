"""What nodes of a real cluster recorded under load, and what those who asked counted themselves."""

import asyncio

import pytest
from tests.cluster.clustering import Named, acquainted, handled_by, handlers, make_node, rendezvous, served
from tests.node.bodies import Copy, Mirror, Picture
from tests.node.messages import Answer, Question
from tests.node.running import eventually, until
from tests.node.running import run as run_nodes
from tests.spark.lakes import Made

import framewire as fw
from framewire.spark.asking import open_lake
from framewire.spark.pipeline import Pipeline
from framewire.spark.replay import Choice, chosen, replay, tables_to_replay
from framewire.spark.sending import Target

FINE, FAILING, AT_ONCE = 1900, 100, 50


async def asked(server, directory):
    """Ask from one node and answer on two, all of which record; tells what each promise came to."""
    options = {"capture": str(directory), "timeout": 60.0}
    async with (
        make_node(server, **options) as asker,
        make_node(server, **options) as one,
        make_node(server, **options) as two,
    ):
        for node, name in ((one, "one"), (two, "two")):
            await node.host(Named(name))
        await acquainted(asker, one, two)
        await handled_by(2, asker)
        room = asyncio.Semaphore(AT_ONCE)

        async def ask(number):
            async with room:
                question = Question("fail" if number < FAILING else f"what is {number}?")
                try:
                    return (await asker.hub.ask(question, Answer, timeout=60)).text
                except fw.RemoteError:
                    return "failed"

        return await asyncio.gather(*map(ask, range(FINE + FAILING)))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_tables_agree_with_what_the_clients_counted(spark, tmp_path):
    captures, lake = tmp_path / "captures", tmp_path / "lake"
    told = run_nodes(served(lambda server: asked(server, captures)), timeout=200)
    Pipeline(str(captures), str(lake), lost_after="0s", spark=spark).run()
    made = Made(tmp_path, lake)
    ours = "where message = 'test.question v1'"
    assert made.ask(f"select outcome, count(*) from {{flows}} {ours} group by all order by all") == [  # noqa: S608
        ("completed", FINE),
        ("failed", FAILING),
    ]
    by_actor = made.ask(f"select count(*) from {{handlings}} {ours} group by node order by all")  # noqa: S608
    assert sum(count for (count,) in by_actor) == FINE + FAILING
    assert len(by_actor) == len(set(told) - {"failed"}) == 2
    sent = f"select sum(sent)::int, sum(received)::int, sum(lost)::int, sum(failed)::int from {{edges}} {ours}"  # noqa: S608
    assert made.ask(sent) == [(FINE + FAILING, FINE + FAILING, 0, FAILING)]


def test_bodies_of_several_frames_go_from_a_recording_through_the_lake_to_a_cluster_again(spark, tmp_path):
    captures, lake = tmp_path / "captures", tmp_path / "lake"
    body = [b"head", b"\xff" * 100_000, b"", b"\x00\x80"]

    async def recorded(server):
        async with make_node(server, capture=str(captures)) as asker, make_node(server) as mirror:
            await mirror.host(Mirror())
            await acquainted(asker, mirror)
            await eventually(lambda: handlers(asker, b"bodies.picture") == 1)
            await asker.hub.ask(Picture(body), Copy)

    run_nodes(served(recorded))
    Pipeline(str(captures), str(lake), lost_after="0s", spark=spark).run()
    made = Made(tmp_path, lake)
    rows = made.ask("select body_frames, body from {messages} where starts_with(message, 'bodies.')")
    assert rows == [(body, b"".join(body))] * len(rows)
    assert len(rows) == 3, "the picture sent, its copy received and delivered"

    mirror = Mirror()
    with open_lake(str(lake), tables_to_replay) as connection:
        messages = list(chosen(connection, Choice()))
    with rendezvous() as server, fw.Client(rendezvous=[server.uri]) as node:
        node.host(mirror)
        tally = replay(messages, Target(rendezvous=(server.uri,)), speed=None)
        assert (tally.confirmed, tally.failed) == (1, 0)
        until(lambda: mirror.seen == [tuple(body)])
