"""What nodes of a real cluster record of a traced flow, in the lake and in ``framewire flow``."""

import json

import pytest
from click.testing import CliRunner
from tests.cluster.clustering import Named, acquainted, handled_by, make_node, served
from tests.node.messages import Answer, Question
from tests.node.running import run as run_nodes
from tests.spark.lakes import Made

import framewire as fw
from framewire.cli import main
from framewire.spark.pipeline import Pipeline
from framewire.spark.tables import TABLES
from framewire.wire.message import readable

FLOW = b"0f000000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two nodes that record nothing but what is traced, and what their trace hooks were told."""
    directory = tmp_path_factory.mktemp("traced")
    taken = []

    def recorder():
        return fw.Capture(directory / "captures", sample=0.0, bodies="drop")

    async def ask(server):
        async with make_node(server, capture=recorder()) as one, make_node(server, capture=recorder()) as two:
            await two.host(Named("two"))
            await handled_by(1, one)
            await acquainted(one, two)
            for node in (one, two):
                node.on_trace(taken.append)
            for number in range(5):
                await one.hub.ask(Question(f"{number}"), Answer)
            await one.hub.ask(Question("traced"), Answer, trace=True, correlation_id=FLOW)

    run_nodes(served(ask))
    return directory, taken


@pytest.fixture(scope="module")
def made(spark, recorded):
    directory, _ = recorded
    for _ in range(2):  # the second finds nothing new
        Pipeline(str(directory / "captures"), str(directory / "lake"), lost_after="0s", spark=spark).run()
    return Made(directory, directory / "lake")


def test_trace_steps_are_in_the_lake_each_once(made, recorded):
    _, taken = recorded
    told = made.ask("select node_name, step, detail, message, flow from {traces}")
    expected = [
        (readable(step.node), step.step, step.detail, str(step.message_id), FLOW.decode()) for step in taken
    ]
    assert sorted(told) == sorted(expected)
    assert {step for _, step, *_ in told} == {"received", "routed", "handled", "replied"}


def test_the_messages_of_a_traced_flow_are_there_and_whole_and_no_others(made):
    asked = "from {messages} where message = 'test.question v1'"
    rows = made.ask(f"select distinct flow, direction, contains(body::varchar, 'traced') {asked}")
    assert sorted(rows) == [(FLOW.decode(), way, True) for way in ("delivered", "received", "sent")]
    assert made.ask("select distinct flow from {messages}") == [(FLOW.decode(),)]
    assert made.ask("select outcome, hops::int from {flows}") == [("completed", 2)]


def test_the_steps_are_in_the_flow_command(made, recorded):
    _, taken = recorded
    done = CliRunner().invoke(main, ["flow", FLOW.decode(), "--lake", str(made.lake), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert len(told["legs"]) == 2
    assert sorted((step["node"], step["step"]) for step in told["trace"]) == sorted(
        (readable(step.node), step.step) for step in taken
    )


def test_the_table_has_the_columns_that_are_declared(made, spark):
    there = spark.read.option("basePath", f"{made.lake}/traces").parquet(f"{made.lake}/traces").schema
    declared = spark.createDataFrame([], TABLES["traces"].schema).schema
    kinds = [(field.name, field.dataType) for field in declared if field.name != "batch"]
    assert [(field.name, field.dataType) for field in there if field.name != "batch"] == kinds
