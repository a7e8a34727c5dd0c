"""What a node has done, for Prometheus: its text format, written from ``NodeStats``.

Labels come from classes and message types of the program, never from what a peer sends; and however many of them
there are, each metric has a bounded number of series: the rest are counted together as ``(others)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from framewire.node.reports import ActorStats, HandlerStats, NodeStats

__all__ = ["METRICS", "Metric", "exposition"]

MOST = 200
"""Series of one metric for each node."""
OTHERS = "(others)"
_SERVICE = ("KINO.", "FRAMEWIRE.")

Labels = tuple[str, ...]
Series = Iterable[tuple[Labels, float]]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: how it is called, what it means, and what a node has of it."""

    name: str
    kind: str
    meaning: str
    labels: Labels
    read: Callable[[NodeStats], Series]
    merge: Callable[[float, float], float] = float.__add__
    """How two become one where there are too many, or where two actors have one name."""


def _total(name: str) -> Callable[[NodeStats], Series]:
    return lambda stats: [((), stats.totals.get(name, 0))]


def _one(value: Callable[[NodeStats], float]) -> Callable[[NodeStats], Series]:
    return lambda stats: [((), value(stats))]


def _each_actor(value: Callable[[ActorStats], float]) -> Callable[[NodeStats], Series]:
    return lambda stats: [
        ((actor.name,), value(actor)) for actor in stats.actors if any(map(_is_theirs, actor.handlers))
    ]


def _each_handler(value: Callable[[HandlerStats], float]) -> Callable[[NodeStats], Series]:
    return lambda stats: [
        ((handler.name, handler.message), value(handler))
        for actor in stats.actors
        for handler in filter(_is_theirs, actor.handlers)
    ]


def _is_theirs(handler: HandlerStats) -> bool:
    """Whether a handler is the program's, and not one by which nodes run the cluster."""
    return not handler.message.startswith(_SERVICE)


_HANDLER = ("handler", "message")
METRICS = (
    Metric(
        "framewire_info",
        "gauge",
        "Always 1; who this is.",
        ("node", "version"),
        lambda stats: [((stats.node, stats.version), 1)],
    ),
    Metric("framewire_uptime_seconds", "gauge", "Since the node was started.", (), _one(lambda s: s.uptime)),
    Metric("framewire_sent_total", "counter", "Messages that hubs and handlers sent.", (), _total("sent")),
    Metric("framewire_received_total", "counter", "Messages from other nodes.", (), _total("received")),
    Metric("framewire_forwarded_total", "counter", "Messages to other nodes.", (), _total("forwarded")),
    Metric(
        "framewire_routing_entries_dropped_total",
        "counter",
        "Routing entries left out of messages to other nodes that had more than 255.",
        (),
        _one(lambda s: s.totals.get("entries_dropped", 0)),
    ),
    Metric("framewire_replies_total", "counter", "Promises that ended with a reply.", (), _total("replies")),
    Metric("framewire_pending", "gauge", "Promises that are open.", (), _total("pending")),
    Metric(
        "framewire_pending_oldest_seconds",
        "gauge",
        "For how long the oldest of them has been.",
        (),
        _one(lambda stats: max((each.age for each in stats.pending), default=0.0)),
        max,
    ),
    Metric(
        "framewire_handled_total",
        "counter",
        "Messages handled.",
        _HANDLER,
        _each_handler(lambda each: each.handled),
    ),
    Metric(
        "framewire_failed_total",
        "counter",
        "Messages whose handler raised.",
        _HANDLER,
        _each_handler(lambda each: each.failed),
    ),
    Metric(
        "framewire_handler_seconds_total",
        "counter",
        "Time that handlers took.",
        _HANDLER,
        _each_handler(lambda each: each.seconds),
    ),
    Metric(
        "framewire_handler_longest_seconds",
        "gauge",
        "The longest time that one message took.",
        _HANDLER,
        _each_handler(lambda each: each.longest),
        max,
    ),
    Metric(
        "framewire_mailbox_messages",
        "gauge",
        "Messages in the mailbox.",
        ("actor",),
        _each_actor(lambda each: each.queued),
    ),
    Metric(
        "framewire_mailbox_limit",
        "gauge",
        "Messages that fit into it.",
        ("actor",),
        _each_actor(lambda each: each.limit),
    ),
    Metric(
        "framewire_mailbox_waiting",
        "gauge",
        "Messages that wait for room in it.",
        ("actor",),
        _each_actor(lambda each: each.waiting),
    ),
    Metric(
        "framewire_busy",
        "gauge",
        "Messages that are being handled.",
        ("actor",),
        _each_actor(lambda each: each.busy),
    ),
    Metric(
        "framewire_restarts_total",
        "counter",
        "Restarts of the actor.",
        ("actor",),
        _each_actor(lambda each: each.restarts),
    ),
    Metric(
        "framewire_dead_letters_total",
        "counter",
        "Messages that could not be delivered.",
        ("reason",),
        lambda stats: [((reason,), count) for reason, count in stats.dead_letters.items()],
    ),
    Metric("framewire_stalls_total", "counter", "Times the event loop stood still.", (), _one(lambda s: s.stalls)),
    Metric(
        "framewire_turned_away_total",
        "counter",
        "Connections that were refused for their key.",
        (),
        _one(lambda s: s.totals.get("turned_away", 0)),
    ),
    Metric("framewire_peers", "gauge", "Other nodes that are known.", (), _one(lambda s: len(s.peers))),
    Metric("framewire_captured_total", "counter", "Messages recorded, on disk.", (), _one(lambda s: s.captured)),
    Metric(
        "framewire_capture_dropped_total",
        "counter",
        "Messages that should have been recorded, and were not.",
        (),
        _one(lambda stats: stats.capture_dropped),
    ),
)
"""Every metric of a node."""


def exposition(nodes: Mapping[str, NodeStats], extra: Iterable[str] = ()) -> str:
    """The state of some nodes; where they are workers, their numbers tell them apart, else the name is empty."""
    return "\n".join([*_lines(nodes), *extra, ""])


def _lines(nodes: Mapping[str, NodeStats]) -> Iterator[str]:
    for metric in METRICS:
        yield f"# HELP {metric.name} {metric.meaning}"
        yield f"# TYPE {metric.name} {metric.kind}"
        for worker, stats in nodes.items():
            names = (("worker",) if worker else ()) + metric.labels
            for labels, value in _bounded(metric, stats).items():
                told = ((worker,) if worker else ()) + labels
                yield f"{metric.name}{written(names, told)} {value!r}"


def _bounded(metric: Metric, stats: NodeStats) -> dict[Labels, float]:
    found: dict[Labels, float] = {}
    others = tuple(OTHERS for _ in metric.labels)
    for labels, value in metric.read(stats):
        where = labels if labels in found or len(found) < MOST else others
        found[where] = metric.merge(float(found[where]), float(value)) if where in found else value
    return found


def written(names: Iterable[str], values: Iterable[str]) -> str:
    """Labels as Prometheus wants them; nothing where there are none."""
    pairs = [f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
