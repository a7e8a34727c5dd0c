"""A lake with a small story whose figures are known: three hours of a shop, its stock and its till.

Every hour the shop asks the stock four times; the ways take 1, 2, 3 and 4 ms and the answers 1 ms. The second hour
has a failure; the third a flow that expired, one that died and one that is open, with a loss and a dead letter.
"""

import datetime as dt
import uuid
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.spark.lake_rows import BEGIN, after, arrow_type, at_node, flow_id, message_id, way

from framewire.spark.tables import TABLES

HOUR = 3_600_000
RESERVE, RESERVED, PAY = (
    message_id(b"stock.reserve"),
    message_id(b"stock.reserved"),
    message_id(b"till.pay", 2, b"eu"),
)
EXCEPTION = message_id(b"KINO.EXCEPTION")
OUTCOMES = {(1, 3): "failed", (2, 1): "expired", (2, 2): "dead", (2, 3): "open"}
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e&amp;\"'"


def naive(milliseconds):
    """A time as the lake tells it: UTC without a zone."""
    return after(milliseconds).replace(tzinfo=None)


def flow_name(hour, place):
    return f"{hour}{place}aa0000-0000-4000-8000-00000000000{place}"


def began(hour, place):
    """Milliseconds after the beginning of the story: quarters of an hour, five minutes late."""
    return hour * HOUR + place * 900_000 + 300_000


def write_lake(directory, **tables):
    """Rows into the tables of a lake, a file for each bucket; a row is filed under its ``filed`` time."""
    for name, rows in tables.items():
        table = TABLES[name]
        folders = defaultdict(list)
        for row in rows:
            filed = row.get("filed", BEGIN)
            places = {"date": f"{filed:%Y-%m-%d}", "bucket": f"{filed:%Hh}00", "batch": "0"}
            folders[Path(directory, name, *(f"{key}={places[key]}" for key in table.filed_under))].append(row)
        for folder, some in folders.items():
            folder.mkdir(parents=True, exist_ok=True)
            columns = {
                key: pa.array([row.get(key) for row in some], arrow_type(kind))
                for key, (kind, _) in table.columns.items()
            }
            pq.write_table(pa.table(columns), folder / f"part-{uuid.uuid4()}.parquet")
    return directory


def make_known_lake(directory):
    """The lake; every table of it has rows."""
    flows, hops, handlings, messages = [], [], [], []
    for hour in range(3):
        for place in range(4):
            outcome = OUTCOMES.get((hour, place), "completed")
            name, at = flow_name(hour, place), began(hour, place)
            filed = after(at)
            common = flow_id(name)
            flows.append(_flow(common, outcome, at, place, filed))
            hops += _hops(common, outcome, at, place + 1, filed)
            handlings += _handlings(common, outcome, at, place + 1, filed)
            messages += _messages(common, at, place + 1, filed)
    expired, dead = flow_name(2, 1), flow_name(2, 2)
    lost_at, died_at = began(2, 1) + 5, began(2, 2) + 6
    messages.append(
        {**_message(flow_id(dead), "stock", PAY, after(died_at)), "direction": "dead", "reason": "no_route"}
    )
    return write_lake(
        directory,
        flows=flows,
        hops=hops,
        handlings=handlings,
        messages=messages,
        losses=[
            {
                **flow_id(expired),
                "kind": "not_received",
                **way("stock", "shop"),
                **RESERVED,
                "at": after(lost_at),
                "filed": after(lost_at),
            }
        ],
        quarantine=[
            {
                **at_node("till"),
                "at": after(HOUR),
                "direction": "received",
                "peer": b"shop",
                "error": "too_few_frames",
                "frames": [b"x", b"\xff\x00"],
                "filed": after(HOUR),
            }
        ],
        **_by_the_hour(),
    )


def make_hostile_lake(directory):
    """The same, and a node, a message and an exception that are markup, and an id that is a megabyte long."""
    make_known_lake(directory)
    at = began(2, 3) + 60_000
    nasty = {"message": HOSTILE, "identity": HOSTILE.encode(), "version": 1, "partition": b""}
    filed = {"filed": after(at)}
    name = HOSTILE + "x" * 1_000_000
    node = {"node_name": HOSTILE, "node": HOSTILE.encode()}
    ways = {"from_name": HOSTILE, "to_name": "shop", "from_node": HOSTILE.encode(), "to_node": b"shop"}
    flow = {
        **_flow(flow_id(name), "failed", at, 3, after(at)),
        **nasty,
        "origin_name": HOSTILE,
        "duration_us": 9_000_000,
    }
    flow |= {"exception": HOSTILE, "exception_text": "\x00\x1b]0;" + HOSTILE * 20_000, "origin": HOSTILE.encode()}
    hop = {
        **_hops(flow_id(name), "failed", at, 4, after(at))[0],
        **nasty,
        **ways,
        "fate": "dead",
        "fate_reason": HOSTILE,
    }
    edge = {**_edge(2, HOSTILE, "shop", nasty, sent=400, received=300, dead=200), **ways}
    return write_lake(
        directory,
        flows=[flow],
        hops=[hop],
        losses=[{**flow_id(name), **ways, **nasty, "kind": "not_received", "at": after(at), **filed}],
        messages=[
            {
                **_message(flow_id(name), "shop", nasty, after(at)),
                **node,
                "direction": "dead",
                "reason": HOSTILE,
                "body": b"\xff" * 1_000_000,
            }
        ],
        quarantine=[{**node, "at": after(at), "error": HOSTILE, "frames": [b"\xff" * 100_000], **filed}],
        edges=[edge],
        handlers=[{**node, **nasty, "hour": after(2 * HOUR), "delivered": 7, "failed": 7, **filed}],
        audit=[
            {**node, "hour": after(2 * HOUR), "domain": HOSTILE, "signature_state": "invalid", "rows": 5, **filed}
        ],
        adoption=[
            {**node, **nasty, "day": dt.date(2026, 3, 1), "wire_version": 5, "rows": 5, **filed},
        ],
    )


def _flow(common, outcome, at, place, filed):
    failed = {"exception": "shop.OutOfStock", "exception_text": "nothing left of it"} if outcome == "failed" else {}
    duration = {"expired": 2_000_000, "dead": 500_000}.get(outcome, (place + 12) * 1000)
    return {
        **common,
        **RESERVE,
        **failed,
        "outcome": outcome,
        "origin_name": "shop",
        "origin": b"shop",
        "wire_version": 5,
        "started_at": after(at),
        "ended_at": after(at + duration / 1000),
        "duration_us": duration,
        "messages": 2,
        "hops": 2,
        "rows": 6,
        "nodes": 2,
        "steps": 2,
        "dead_reasons": ["no_route"] if outcome == "dead" else [],
        "path": [
            {
                "at": after(at + 5),
                "node": b"stock",
                "node_name": "stock",
                "identity": RESERVE["identity"],
                "message": RESERVE["message"],
            }
        ],
        "slowest": {"us": 11_000, "node": b"stock", "node_name": "stock", "message": RESERVE["message"]},
        "filed": filed,
    }


def _hops(common, outcome, at, way_ms, filed):
    failed = outcome == "failed"
    there = {
        **common,
        **way("shop", "stock"),
        **RESERVE,
        "sent_at": after(at),
        "received_at": after(at + way_ms),
        "skew_us": 0.0,
        "latency_us": way_ms * 1000.0,
        "fate": "delivered",
        "fate_at": after(at + way_ms),
        "failed": failed,
        "wire_version": 5,
        "filed": filed,
    }
    back = {
        **there,
        **way("stock", "shop"),
        **(EXCEPTION if failed else RESERVED),
        "sent_at": after(at + way_ms + 10),
        "received_at": after(at + way_ms + 11),
        "latency_us": 1000.0,
        "fate_at": after(at + way_ms + 11),
        "failed": False,
    }
    return [there] if outcome in ("expired", "dead", "open") else [there, back]


def _handlings(common, outcome, at, way_ms, filed):
    return [
        {
            **common,
            **at_node("stock"),
            **RESERVE,
            "receiver": b"\x01actor",
            "to_hub": False,
            "came_from": b"shop",
            "received_at": after(at + way_ms),
            "at": after(at + way_ms),
            "service_us": 10_000,
            "failed": outcome == "failed",
            "filed": filed,
        }
    ]


def _messages(common, at, way_ms, filed):
    sent = {**_message(common, "shop", RESERVE, after(at)), "direction": "sent", "peer": b"stock", "filed": filed}
    return [
        sent,
        {**sent, **at_node("stock"), "direction": "received", "peer": b"shop", "at": after(at + way_ms)},
        {**sent, **at_node("stock"), "direction": "delivered", "peer": b"\x01actor", "at": after(at + way_ms)},
    ]


def _message(common, node, message, at):
    return {
        **common,
        **at_node(node),
        **message,
        "at": at,
        "body": b"\x81\xa4item\xa3cup",
        "ttl_ticks": 300_000_000,
        "distribution": 0,
        "callback_points": [{"identity": b"stock.reserved", "version": 1, "partition": b""}],
        "routing": [{"uri": "tcp://10.0.0.1:7000", "identity": b"shop"}],
        "hops": 1,
        "domain": "",
        "signature_state": "unsigned",
        "wire_version": 5,
        "answer": False,
        "frames": [b"stock", b"", b"one", b"two"],
        "filed": at,
    }


def _by_the_hour():
    edges, handlers, audit, adoption = [], [], [], []
    for hour in range(3):
        at = after(hour * HOUR)
        answers = 1 if hour == 2 else 4 - (hour == 1)
        edges += [
            _edge(hour, "shop", "stock", RESERVE, sent=4, received=4, failed=int(hour == 1)),
            _edge(
                hour, "stock", "shop", RESERVED, sent=answers + (hour == 2), received=answers, lost=int(hour == 2)
            ),
        ]
        if hour == 1:
            edges.append(_edge(hour, "stock", "shop", EXCEPTION, sent=1, received=1))
        common = {"hour": at, "filed": at}
        got = {"delivered": 4, "failed": int(hour == 1), "rate": 4 / 3600}
        handlers.append({**at_node("stock"), **RESERVE, **common, **got, "p50_us": 10_000.0})
        for node, state, rows in (
            ("shop", "unsigned", 8),
            ("stock", "valid", 6),
            ("till", "invalid", int(hour == 2)),
        ):
            domain = "" if state == "unsigned" else "payments"
            if rows:
                audit.append({**at_node(node), **common, "domain": domain, "signature_state": state, "rows": rows})
    for version, rows in ((5, 36), (4, 7), (1, 2)):
        adoption.append(
            {**at_node("shop"), **RESERVE, "day": dt.date(2026, 3, 1), "wire_version": version, "rows": rows}
        )
    clocks = [{**way("shop", "stock"), "hops": 12, "least_us": 1000, "skew_us": 0.0}]
    return {"edges": edges, "handlers": handlers, "audit": audit, "adoption": adoption, "clocks": clocks}


def _edge(hour, sender, receiver, message, **counts):
    numbers = {"sent": 0, "received": 0, "lost": 0, "dead": 0, "failed": 0, **counts}
    return {
        **way(sender, receiver),
        **message,
        **numbers,
        "hour": after(hour * HOUR),
        "errors": numbers["dead"] + numbers["failed"],
        "loss_rate": numbers["lost"] / numbers["sent"],
        "p50_us": 2500.0 if sender == "shop" else 1000.0,
        "p95_us": 3850.0 if sender == "shop" else 1000.0,
        "p99_us": 3970.0 if sender == "shop" else 1000.0,
        "filed": after(hour * HOUR),
    }
