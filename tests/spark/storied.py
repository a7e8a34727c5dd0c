"""A lake with one flow whose story is known: a question, its answer, and what went wrong beside them."""

from tests.spark.lake_rows import after, at_node, flow_id, make_lake, message_id, way

FLOW = "3f2a0001-0000-4000-8000-000000000001"
SKEW = 40
"""Milliseconds that the clock of ``stock`` is ahead."""


def make_storied_lake(directory, flow=FLOW, **facts):
    """shop asks stock (5 ms, waits 1, works 10, raises nothing), stock answers the hub of shop (5 ms)."""
    place, placed = message_id(b"stock.reserve"), message_id(b"stock.reserved")
    audit, lost = message_id(b"audit.note"), message_id(b"mail.send")
    common = flow_id(flow)
    return make_lake(
        directory,
        flows=[
            {
                **common,
                **place,
                "outcome": "completed",
                "origin_name": "shop",
                "origin": b"shop",
                "started_at": after(0),
                "ended_at": after(30),
                "duration_us": 30_000,
                "messages": 4,
                "hops": 3,
                "rows": 8,
                "nodes": 2,
                "steps": 2,
                "slowest": {"us": 16_000, "node": b"stock", "node_name": "stock", "message": "stock.reserve v1"},
                **facts,
            }
        ],
        hops=[
            {
                **common,
                **way("shop", "stock"),
                **place,
                "sent_at": after(0),
                "received_at": after(5 + SKEW),
                "skew_us": SKEW * 1000.0,
                "latency_us": 5000.0,
                "fate": "delivered",
                "fate_at": after(6 + SKEW),
                "failed": False,
            },
            {
                **common,
                **way("stock", "shop"),
                **placed,
                "sent_at": after(16 + SKEW),
                "received_at": after(21),
                "skew_us": SKEW * -1000.0,
                "latency_us": 5000.0,
                "fate": "delivered",
                "fate_at": after(21),
                "failed": False,
            },
        ],
        handlings=[
            {
                **common,
                **at_node("stock"),
                **place,
                "receiver": b"\x01actor",
                "to_hub": False,
                "came_from": b"shop",
                "received_at": after(5 + SKEW),
                "at": after(6 + SKEW),
                "service_us": 10_000,
                "failed": False,
            },
            {
                **common,
                **at_node("shop"),
                **placed,
                "receiver": b"\x00hub",
                "to_hub": True,
                "came_from": b"stock",
                "received_at": after(21),
                "at": after(21),
                "failed": False,
            },
        ],
        losses=[
            {**common, "kind": "not_received", **way("stock", "shop"), **lost, "at": after(14 + SKEW)},
        ],
        messages=[
            {
                **common,
                **at_node("stock"),
                **audit,
                "direction": "dead",
                "reason": "no_route",
                "at": after(15 + SKEW),
            },
        ],
    )
