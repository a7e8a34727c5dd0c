"""A lake of messages to replay: flows with all their rows, messages without a flow, broadcasts and dead letters."""

from tests.spark.lake_rows import BEGIN, after, at_node, flow_id, make_lake, message_id

WORK = message_id(b"replay.work")


def row(at, node, direction, peer, body, flow=None, message=WORK, **more):
    """A row of messages; what is equal on one node has equal content."""
    return {
        "at": after(at),
        **at_node(node),
        "direction": direction,
        "peer": peer,
        **message,
        **flow_id(flow),
        "correlation_id": (flow or "").encode(),
        "body": body,
        "distribution": 0,
        "hops": 0 if direction in ("delivered", "dead") else 1,
        "signature_state": "unsigned",
        "answer": False,
        "content": hash((message["message"], body, flow)),
        **more,
    }


def flow_row(flow, at, origin="shop", message=WORK):
    return {**flow_id(flow), **message, "origin": origin.encode(), "origin_name": origin, "started_at": after(at)}


def whole(flow, at, body):
    """A flow from beginning to end: the question, what the actor sent on, the answer, the receipt."""
    inner, answer, receipt = map(message_id, (b"replay.inner", b"replay.answer", b"KINO.RCPTCONFIRM"))
    return [
        row(at, "shop", "sent", b"stock", body, flow),
        row(at + 1, "stock", "received", b"shop", body, flow),
        row(at + 1, "stock", "delivered", b"\x01actor", body, flow, hops=1),
        row(at + 2, "stock", "sent", b"shop", b"inner", flow, inner),
        row(at + 3, "stock", "sent", b"shop", b"answer", flow, answer, answer=True),
        row(at + 3, "stock", "sent", b"shop", b"", flow, receipt),
        row(at + 4, "shop", "delivered", b"\x00hub", b"answer", flow, answer, answer=True, hops=1),
    ]


def make_replay_lake(directory):
    tick = message_id(b"replay.tick")
    note = message_id(b"replay.note", 2, b"eu")
    messages = [
        *whole("flow-a", 0, b"first"),
        *whole("flow-b", 500, b"second"),
        # Two that belong to no flow and are equal byte for byte.
        *(row(600 + step, "shop", "sent", b"stock", b"tick", message=tick) for step in (0, 1)),
        *(row(601 + step, "stock", "received", b"shop", b"tick", message=tick) for step in (0, 1)),
        # A broadcast to two nodes and an actor of its own.
        row(700, "shop", "sent", b"stock", b"all", "flow-c", note, distribution=1),
        row(700, "shop", "sent", b"till", b"all", "flow-c", note, distribution=1),
        row(701, "shop", "delivered", b"\x01actor", b"all", "flow-c", note, distribution=1),
        # The same without a flow.
        row(702, "shop", "sent", b"stock", b"hear", message=tick, distribution=1),
        row(702, "shop", "sent", b"till", b"hear", message=tick, distribution=1),
        # Dead letters: one that never left, an answer that was late, and one in the midst of a flow.
        row(800, "shop", "dead", b"", b"lost", "flow-d", reason="no_route"),
        row(
            801,
            "shop",
            "dead",
            b"",
            b"late",
            "flow-a",
            message_id(b"replay.answer"),
            reason="late_reply",
            answer=True,
        ),
        row(802, "stock", "dead", b"", b"inner died", "flow-b", message_id(b"replay.inner"), reason="overloaded"),
        # A forgery that a node turned down, in a lake that was made without keys.
        row(850, "stock", "received", b"x", b"injected", "flow-f", signature_state="unsigned"),
        row(851, "stock", "dead", b"", b"injected", "flow-f", reason="bad_signature", signature_state="local"),
        # A forgery.
        row(900, "shop", "sent", b"stock", b"forged", "flow-e", signature_state="invalid"),
    ]
    flows = [flow_row("flow-a", 0), flow_row("flow-b", 500), flow_row("flow-c", 700, message=note)]
    flows += [flow_row("flow-d", 800), flow_row("flow-e", 900), flow_row("flow-f", 850, "stock")]
    assert all(each["at"] >= BEGIN for each in messages)
    return make_lake(directory, messages=messages, flows=flows)
