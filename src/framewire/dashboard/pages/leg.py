"""One message of a flow: where it went, who handled it, and every row that nodes recorded of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framewire._counts import counted
from framewire.dashboard.board import Board
from framewire.dashboard.drawings import fate_of
from framewire.dashboard.elements import block, link, text
from framewire.dashboard.frames import frame_view
from framewire.dashboard.shell import section, state
from framewire.dashboard.showing import address, moment, shown, span
from framewire.history import Recorded, Told
from framewire.spark.legs import Leg
from framewire.wire.message import Distribution, readable

__all__ = ["leg_view"]

_MOST = 12
"""Rows of one message that are shown; a message that was sent once has three."""
_SIGNED = {"valid": "good", "invalid": "bad", "unknown_domain": "warn"}
_TICKS = 10_000_000


def leg_view(board: Board, leg: Leg, at: int, told: Told, began: float) -> None:
    """Everything about one message."""
    fate, tone = fate_of(leg)
    with section(f"Message {at + 1}: {shown(leg.message, 80)}", classes="fw-leg"):
        with block("p", "fw-row"):
            text("span", f"{shown(leg.from_name, 60)} → {shown(leg.to_name, 60)}", "mono")
            text("span", fate, f"fw-badge {tone}")
            handler = f"The handler of {shown(leg.message, 60)} on {shown(leg.to_name, 60)}"
            where = address("/topology", node=leg.to_name, message=leg.message)
            if len(where) < 2000 and leg.fate == "delivered" and not leg.to_hub:
                link(f"{handler} →", where)
        text("p", " · ".join(_times(leg, began)), "soft")
        rows = [row for row in told.messages if _tells_of(row, leg)]
        if not rows:
            state(
                "No row of it is there",
                "The nodes that had it did not record it, or there are too many rows to look at here.",
            )
        for row in rows[:_MOST]:
            _row(board, row)
        if len(rows) > _MOST:
            text("p", f"… and {len(rows) - _MOST:,} more rows of messages like it between these nodes", "soft")


def _times(leg: Leg, began: float) -> Iterator[str]:
    for name, moment_of in (
        ("sent", leg.sent),
        ("received", leg.received),
        ("handed over", leg.handed),
        ("done", leg.done),
    ):
        if moment_of is not None:
            yield f"{name} +{span((moment_of - began) / 1e6)}"


def _tells_of(row: Recorded, leg: Leg) -> bool:
    """Whether a row may be of a message: the same name, and the same nodes at its ends."""
    if row.message != leg.message:
        return False
    if row.direction == "sent":
        return row.node == leg.from_name and row.peer == leg.to_node
    return row.node == leg.to_name and (row.direction != "received" or row.peer == leg.from_node)


def _row(board: Board, row: Recorded) -> None:
    other = f" to {shown(row.peer_name, 60)}" if row.direction in ("sent", "delivered") and row.peer else ""
    origin = f" from {shown(row.peer_name, 60)}" if row.direction == "received" and row.peer else ""
    with block("article", "fw-recorded", aria_label=f"{row.direction} by {shown(row.node, 60)}"):
        with block("div", "fw-section-head"):
            text("h3", f"{row.direction}{other}{origin}")
            text("span", f"{shown(row.node, 60)}, {moment(row.at)} UTC by its clock", "soft")
        with block("dl"):
            for name, value, tone in _facts(row):
                text("dt", name)
                text("dd", value, tone)
        _body(board, row)
        if row.frames:
            with block("details"):
                text("summary", counted(len(row.frames), "frame"))
                frame_view(
                    row.message, row.frames, bodies=board.bodies is not None, signature=row.signature_state or ""
                )


def _facts(row: Recorded) -> Iterator[tuple[str, str, str]]:
    state_of = row.signature_state or "not known"
    domain = f" in {shown(row.domain, 60)}" if row.domain else ""
    yield "signature", f"{shown(state_of, 40)}{domain}", _SIGNED.get(state_of, "")
    yield "format", f"V{row.wire_version}" if row.wire_version else "—", ""
    if row.reason:
        yield "died of", shown(row.reason), "bad"
    if row.distribution is not None:
        known = row.distribution in set(Distribution)
        yield (
            "goes to",
            "all handlers" if known and row.distribution == Distribution.BROADCAST else "one handler",
            "",
        )
    yield "time left", span(row.ttl_ticks / _TICKS) if row.ttl_ticks else "no limit", ""
    for name, raw in (
        ("receiver", row.receiver_identity),
        ("at node", row.receiver_node_identity),
        ("answers to hub", row.callback_receiver_identity),
        ("of node", row.callback_receiver_node_identity),
    ):
        if raw:
            yield name, _name(raw), "mono"
    if row.callback_points:
        points = ", ".join(f"{_name(each['identity'])} v{each['version']}" for each in row.callback_points[:10])
        yield "is answered by", points, ""
    yield "passed", " → ".join(map(_router, row.routing[:20])) or "no router", "mono"
    if row.exception:
        yield "exception", shown(row.exception.get("type")), "bad"


def _router(entry: Mapping[str, Any]) -> str:
    return f"{shown(entry['uri'], 60)} ({_name(entry['identity'])})"


def _name(raw: bytes) -> str:
    return shown(readable(raw[:200]), 80)


def _body(board: Board, row: Recorded) -> None:
    if board.bodies is None:
        text("p", "The body is hidden: this dashboard was started with --no-bodies.", "soft")
        return
    body = board.bodies.read(row.body or b"", row.identity, row.version, row.partition)
    text("p", f"body: {body.how}", "soft")
    if body.content:
        text("pre", body.content, "fw-body", tabindex="0")
