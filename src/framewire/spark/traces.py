"""Flows as traces for Jaeger, Tempo and others: OTLP in its JSON form, an ExportTraceServiceRequest a line.

A flow is a trace. Its root span is the flow itself; a message on its way to another node is a span of the sender,
and its handling is a span of the receiver, below it. What was sent is below what was being handled on that node:
the last message of the flow that an actor there had been given. The lake does not know which of two that were given
to actors of one node at the same time sent it; then the later one gets it.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from framewire._version import __version__
from framewire.spark.legs import Leg, Story
from framewire.wire.message import readable

__all__ = ["export_lines", "trace_id"]

_INTERNAL, _PRODUCER, _CONSUMER = 1, 4, 5
_ERROR = 2
_SPANS_A_LINE = 500
"""Some hundred kilobytes: readers of lines, and servers that take requests, have limits."""
_BAD_OUTCOMES = ("failed", "expired", "dead")
_WRONG = {"lost": "never received", "vanished": "received and never delivered"}


def trace_id(correlation_id: bytes) -> str:
    """The trace that a flow is: always the same, and spread evenly, which samplers and stores count on."""
    return hashlib.sha256(correlation_id).hexdigest()[:32]


def export_lines(stories: Iterable[Story]) -> Iterator[str]:
    """The lines of a file for some flows; a long flow has several."""
    for story in stories:
        spans = list(_spans(story))
        for first in range(0, len(spans), _SPANS_A_LINE):
            yield json.dumps(_request(spans[first : first + _SPANS_A_LINE]), separators=(",", ":"))


def _request(spans: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    by_node: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for node, span in spans:
        by_node[node].append(span)
    scope = {"name": "framewire", "version": __version__}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes({"service.name": node, "service.instance.id": node})},
                "scopeSpans": [{"scope": scope, "spans": listed}],
            }
            for node, listed in by_node.items()
        ]
    }


def _spans(story: Story) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each span with the node that it belongs to."""
    facts = story.facts
    trace = trace_id(facts["correlation_id"])
    common = {"messaging.system": "framewire", "messaging.message.conversation_id": facts["flow"]}
    root = _span_id(trace, "flow")
    yield facts["origin_name"] or "", _root(story, trace, root, common)
    causes = _Causes(story.legs)
    sends, works = _span_ids(story.legs, trace, "send"), _span_ids(story.legs, trace, "work")
    for number, leg in enumerate(story.legs):
        cause = causes.of(number)
        parent = root
        if cause is not None:
            passed_on = story.legs[cause].fate == "sent"
            parent = sends[cause] if passed_on else works[cause]
        about = common | {
            "messaging.destination.name": readable(leg.identity or b""),
            "messaging.destination.partition.id": readable(leg.partition) if leg.partition else None,
            "framewire.message.version": leg.version,
            "framewire.fate": leg.fate,
        }
        if leg.sent is not None:
            way = about | {"framewire.peer": leg.to_name} | _operation("send")
            sent = _span(
                trace, sends[number], parent, f"send {leg.message}", _PRODUCER, leg.sent, leg.received, way
            )
            yield leg.from_name, _failed(sent, _WRONG.get(leg.fate or ""), leg.fate)
            parent = sends[number]
        if leg.handed is not None:
            yield leg.to_name, _work(leg, trace, works[number], parent, about)


def _root(story: Story, trace: str, root: str, common: dict[str, Any]) -> dict[str, Any]:
    facts = story.facts
    about = common | {
        "framewire.outcome": facts["outcome"],
        "framewire.messages": facts["messages"],
        "framewire.hops": facts["hops"],
        "framewire.nodes": facts["nodes"],
        "framewire.left_out": story.left_out or None,
    }
    span = _span(trace, root, "", facts["message"] or "flow", _INTERNAL, story.began, story.ended, about)
    if facts["outcome"] not in _BAD_OUTCOMES:
        return span
    reasons = ", ".join(facts["dead_reasons"] or ())
    text = facts["exception_text"] or reasons or facts["outcome"]
    if facts["exception"]:
        told = {"exception.type": facts["exception"], "exception.message": facts["exception_text"]}
        event = {"timeUnixNano": span["endTimeUnixNano"], "name": "exception", "attributes": _attributes(told)}
        span["events"] = [event]
    return _failed(span, text, facts["exception"] or facts["outcome"])


def _work(leg: Leg, trace: str, span_id: str, parent: str, about: dict[str, Any]) -> dict[str, Any]:
    """What became of a message where it came to."""
    operation = "receive" if leg.to_hub else "process"
    name = f"{operation} {leg.message}"
    about = about | _operation(operation) | {"framewire.receiver": readable(leg.receiver) if leg.receiver else None}
    start = leg.received if leg.received is not None else leg.handed
    span = _span(trace, span_id, parent, name, _CONSUMER, start, leg.done or leg.handed, about)
    if leg.fate == "dead":
        return _failed(span, f"dead letter: {leg.reason}", leg.reason)
    return _failed(span, "its handler raised" if leg.failed else None, "handler_failed")


def _operation(name: str) -> dict[str, Any]:
    return {"messaging.operation.name": name, "messaging.operation.type": name}


def _span(
    trace: str,
    span_id: str,
    parent: str,
    name: str,
    kind: int,
    start: float | None,
    end: float | None,
    about: dict[str, Any],
) -> dict[str, Any]:
    begin = start or 0.0
    span = {
        "traceId": trace,
        "spanId": span_id,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": _nanos(begin),
        # A span that ended before it began is what a clock did that nobody could correct.
        "endTimeUnixNano": _nanos(max(begin, begin if end is None else end)),
        "attributes": _attributes(about),
    }
    return span | {"parentSpanId": parent} if parent else span


def _failed(span: dict[str, Any], why: str | None, kind: str | None) -> dict[str, Any]:
    """The same span, marked as an error if there is a reason to."""
    if why is None:
        return span
    marked = span | {"status": {"code": _ERROR, "message": why}}
    marked["attributes"] = span["attributes"] + _attributes({"error.type": kind})
    return marked


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: object) -> dict[str, Any]:
    # Numbers of 64 bits are text in this form of OTLP.
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}


def _nanos(microseconds: float) -> str:
    return str(round(microseconds) * 1000)


def _span_id(trace: str, *what: object) -> str:
    return hashlib.sha256("|".join([trace, *map(str, what)]).encode()).hexdigest()[:16]


def _span_ids(legs: Iterable[Leg], trace: str, kind: str) -> list[str]:
    return [_span_id(trace, kind, number) for number, _ in enumerate(legs)]


class _Causes:
    """Which message of a flow another one came of."""

    def __init__(self, legs: Iterable[Leg]) -> None:
        self._legs = list(legs)
        self._given: dict[bytes, list[tuple[float, int]]] = defaultdict(list)
        self._passing: dict[tuple[bytes, str], list[tuple[float, int]]] = defaultdict(list)
        for number, leg in enumerate(self._legs):
            if leg.fate == "sent" and leg.received is not None:
                self._passing[leg.to_node, leg.message].append((leg.received, number))
            elif leg.fate == "delivered" and leg.handed is not None and not leg.to_hub:
                self._given[leg.to_node].append((leg.handed, number))
        for listed in (*self._given.values(), *self._passing.values()):
            listed.sort()

    def of(self, number: int) -> int | None:
        """The message that a message came of, by its number; None for the flow itself."""
        leg = self._legs[number]
        passed = self._last(self._passing.get((leg.from_node, leg.message)), leg, number)
        return passed if passed is not None else self._last(self._given.get(leg.from_node), leg, number)

    def _last(self, listed: list[tuple[float, int]] | None, leg: Leg, number: int) -> int | None:
        if not listed:
            return None
        place = bisect_right(listed, (leg.began, number))
        # Only what comes before it in the order of the flow can be a cause, so there are no circles.
        return next((cause for _, cause in reversed(listed[:place]) if cause < number), None)
