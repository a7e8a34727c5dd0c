"""What lies on disk is what a recorder would have written."""

import datetime as dt
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.synth.reading import MICROSECOND, NO_FLOW, MadeUp

from framewire.capture.schema import COLUMNS
from framewire.synth import generating
from framewire.wire import encode


def digests(made):
    return {
        str(path.relative_to(made.directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(made.directory.rglob("*"))
        if path.is_file()
    }


def test_the_same_options_give_the_same_bytes_under_the_same_names(make):
    one = make("one", messages=5000, nodes=3, seed=3, segment_rows=700, giant_flow=200)
    options = ("--messages", "5000", "--nodes", "3", "--seed", "3", "--segment-rows", "700", "--giant-flow", "200")
    command = [sys.executable, "-m", "framewire", "synth", *options, "-o", str(one.directory.parent / "other")]
    subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "12"}, timeout=60, check=True, capture_output=True)
    assert digests(one) == digests(MadeUp(one.directory.parent / "other"))


def test_another_seed_gives_other_flows_nodes_and_keys(make):
    one, other = make("one", messages=500, seed=1), make("other", messages=500, seed=2)
    assert not one.flows.keys() & other.flows.keys()
    assert not one.offsets.keys() & other.offsets.keys()
    keys = [(made.directory / "truth" / "keys.toml").read_text() for made in (one, other)]
    assert not set(re.findall("hex:([0-9a-f]+)", keys[0])) & set(re.findall("hex:([0-9a-f]+)", keys[1]))


@pytest.mark.parametrize("messages", [1, 2, 17, 1000, 12_345])
def test_there_are_exactly_as_many_rows_as_were_asked_for(make, messages):
    made = make(messages=messages, nodes=2)
    assert sum(pq.read_metadata(path).num_rows for path in made.segments) == messages


def test_segments_lie_where_a_recorder_puts_them_and_hold_the_columns_of_a_capture(troubled):
    assert len(troubled.segments) > 2 * len(troubled.offsets)
    for path in troubled.segments:
        recorder, date, name = path.relative_to(troubled.directory / "captures").parts
        assert re.fullmatch(r"segment-[0-9A-HJKMNP-TV-Z]{26}\.parquet", name)
        table = pq.ParquetFile(path).read()
        assert set(table.column("node").to_pylist()) == {bytes.fromhex(recorder.removeprefix("recorder="))}
        assert {f"date={at:%Y-%m-%d}" for at in table.column("at").to_pylist()} == {date}
        assert table.column_names == list(COLUMNS)
        assert table.schema.field("at").type == pa.timestamp("us", tz="UTC")
        assert len(table) <= 1000
        assert pq.read_metadata(path).row_group(0).column(0).compression == "ZSTD"


def test_the_rows_of_a_node_are_in_order_of_time_within_and_across_its_segments(troubled):
    for node in (troubled.directory / "captures").iterdir():
        tables = [pq.ParquetFile(path).read(["at"]) for path in sorted(node.rglob("*.parquet"))]
        times = pa.concat_tables(tables).column("at").cast(pa.int64()).to_numpy()
        assert (np.diff(times) >= 0).all()


def test_a_segment_ends_at_midnight(make):
    made = make(messages=3000, nodes=2, start=dt.datetime(2025, 3, 31, 23, 59, 59, tzinfo=dt.UTC), rate=1000)
    dates = {path.parent.name for path in made.segments}
    assert dates == {"date=2025-03-31", "date=2025-04-01"}
    for path in made.segments:
        days = {f"date={at:%Y-%m-%d}" for at in pq.ParquetFile(path).read(["at"]).column("at").to_pylist()}
        assert days == {path.parent.name}


def test_whatever_is_not_malformed_is_written_as_the_codec_writes_it(troubled):
    for row in troubled.decoded:
        message = row.message
        assert encode(message, message.wire_version) == list(row.frames)


def test_all_formats_are_there_in_the_parts_that_were_asked_for(make):
    made = make(messages=20_000, versions={5: 0.5, 4: 0.3, 1: 0.2})
    formats = Counter(row["wire_version"] for row in made.truth("flows"))
    # What a flow begins with may never leave its node, and is then V5 in V4's place.
    assert formats[5] + formats[4] + formats[1] == len(made.truth("flows"))
    for version, part in ((5, 0.5), (4, 0.3), (1, 0.2)):
        assert abs(formats[version] / len(made.truth("flows")) - part) < 0.05
    sent = Counter(row.message.wire_version for row in made.decoded if row.direction == "sent")
    assert set(sent) == {1, 4, 5}


def test_envelopes_name_the_receiving_node_and_the_sending_socket(troubled):
    sockets = {}
    for row in troubled.decoded:
        assert row.frames[1] == b""
        if row.direction == "sent":
            assert row.frames[0] == row.peer
        elif row.direction == "received":
            assert sockets.setdefault((row.peer, row.node), row.frames[0]) == row.frames[0]
            assert len(row.frames[0]) == 5
        elif row.direction == "dead":
            assert row.frames[0] == b""
    assert len(set(sockets.values())) == len(sockets)


def onward(made):
    """What a node received, with what it sent because of it: an answer, the next message, or the same again."""
    for rows in made.flows.values():
        for received in rows:
            for sent in rows:
                here = (received.direction, sent.direction, sent.node) == ("received", "sent", received.node)
                if here and sent.message.routing[:-1] == received.message.routing:
                    yield received, sent


def test_a_node_that_passes_a_message_on_adds_a_hop_and_itself_and_changes_nothing_else(troubled):
    passed = [(before, after) for before, after in onward(troubled) if before.message.body == after.message.body]
    assert passed
    for before, after in passed:
        routers = {router.identity: router for router in after.message.routing}
        assert after.message.routing == (*before.message.routing, routers[after.node])
        changed = {"hops": 2, "routing": after.message.routing, "ttl_ticks": after.message.ttl_ticks}
        changed["socket_identity"] = after.message.socket_identity
        assert before.message.hops == 1
        assert after.message == before.message.replace(**changed)


def test_time_that_passes_on_a_node_comes_off_the_ttl(troubled):
    pairs = [
        (before, after)
        for before, after in onward(troubled)
        if before.message.ttl_ticks and before.message.wire_version != 1
        if after.message.identity != b"KINO.EXCEPTION"
    ]
    assert pairs
    for before, after in pairs:
        spent = (after.at - before.at) // MICROSECOND * 10
        assert after.message.ttl_ticks == before.message.ttl_ticks - spent


def test_there_are_flows_of_every_shape_and_messages_without_one(troubled):
    assert {row["shape"] for row in troubled.truth("flows")} == {
        "ask",
        "chain",
        "send",
        "tell",
        "failure",
        "expiry",
        "dead",
        "gather",
    }
    lengths = {
        sum(row.direction == "delivered" and row.peer[0] == 1 for row in troubled.flows[flow["correlation_id"]])
        for flow in troubled.truth("flows")
        if flow["shape"] == "chain"
    }
    assert lengths >= set(range(2, 9))
    assert {row.message.correlation_id for row in troubled.decoded} >= set(NO_FLOW)


def test_no_two_rows_are_the_same(troubled):
    same = Counter((row.at, row.node, row.direction, row.frames) for row in troubled.rows)
    assert max(same.values()) == 1


def test_one_flow_can_be_a_giant(make, monkeypatch):
    monkeypatch.setattr(generating, "_GIANT_SHARE", 333)
    made = make(messages=9000, nodes=4, giant_flow=2000, loss=0.01)
    (giant,) = [row for row in made.truth("flows") if row["shape"] == "giant"]
    rows = made.flows[giant["correlation_id"]]
    assert giant["messages"] == 2000
    assert (giant["rows"], giant["hops"]) == (len(rows), sum(row.direction == "sent" for row in rows))
    assert giant["outcome"] == "completed"
    assert giant["path"] is None
    assert (giant["started_at"], giant["ended_at"]) == (rows[0].true_at, rows[-1].true_at)
    assert len(made.rows) == 9000


def test_one_partition_can_have_most_of_the_traffic_and_one_node_handles_it(make):
    made = make(messages=10_000, hot_partition=0.9)
    flows = Counter(row["partition"] for row in made.truth("flows"))
    assert abs(flows[b"hot"] / flows.total() - 0.9) < 0.04
    handlers = {
        row["node"] for row in made.truth("handlers") if row["partition"] == b"hot" and b"." in row["identity"]
    }
    unicast = {
        row.node
        for row in made.decoded
        if row.direction == "delivered" and row.peer[0] == 1 and row.message.partition == b"hot"
        if row.message.distribution == 0
    }
    assert len(unicast) == 1
    assert unicast <= handlers


def test_without_faults_nothing_is_lost_damaged_or_copied(make):
    made = make(messages=4000, loss=0.0, malformed=0.0, tampered=0.0, duplicates=0.0, skew_ms=0.0)
    for name in ("losses", "malformed", "tampered", "duplicates"):
        assert made.truth(name) == []
    assert set(made.offsets.values()) == {0}
    assert all(received is not None for _, received in made.matches)


def test_the_rate_tells_how_long_it_lasts(make):
    for options in ({"rate": 1000.0}, {"duration": 10.0}):
        made = make(next(iter(options)), messages=10_000, nodes=3, **options)
        starts = [row["started_at"] for row in made.truth("flows")]
        seconds = (max(starts) - min(starts)) / MICROSECOND / 1e6
        assert 5 < seconds < 20
