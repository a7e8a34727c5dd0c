"""What is held to be lost, and what nobody can know."""

import datetime as dt

from framewire.spark.periods import Periods
from framewire.spark.tables import TABLES
from framewire.spark.transfers import losses

AT = dt.datetime(2026, 3, 1, 12, 30, tzinfo=dt.UTC)
HERE = Periods().of(int(AT.timestamp() * 1_000_000))
MESSAGE = (
    "node binary, peer binary, flow string, correlation_id binary, message string, identity binary, version int, "
    "partition binary"
)
SHAPE = (
    "context long, inside boolean, at timestamp, is_send boolean, is_coming boolean, "
    f"of struct<{MESSAGE}>, fate string, receive string"
)


def lost(spark, rows, recorders):
    filled = [
        (HERE, True, AT, what == "sent", what == "received", (node, peer, "f", b"f", "m", b"m", 1, b""), fate, None)
        for what, node, peer, fate in rows
    ]
    events = spark.createDataFrame(filled, SHAPE)
    known = spark.createDataFrame([(HERE, node) for node in recorders], "context long, node binary")
    found = losses(events, known, AT + dt.timedelta(minutes=1), Periods())
    assert found.columns == list(TABLES["losses"].names)
    return sorted((row.kind, row.from_name, row.to_name) for row in found.collect())


def test_what_went_to_a_node_that_records_nothing_is_not_held_to_be_lost(spark):
    rows = [("sent", b"a", b"b", None), ("sent", b"a", b"command line", None)]
    assert lost(spark, rows, [b"a", b"b"]) == [("not_received", "a", "b")]


def test_what_came_and_was_not_delivered_is_lost(spark):
    assert lost(spark, [("received", b"b", b"command line", "vanished")], [b"b"]) == [
        ("not_delivered", "command line", "b")
    ]
