"""Every option of a node and of a rendezvous server: the one table from which all else about them is made.

Reading, checking, ``framewire config show`` and the reference page come from it. Its defaults are those of the
settings classes themselves.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from framewire.capture.schema import Direction
from framewire.capture.settings import CaptureSettings
from framewire.cluster.settings import ClusterSettings
from framewire.config.kinds import (
    ADVERTISED,
    BODIES,
    CONNECT,
    CURVE,
    ENDPOINT,
    FLAG,
    KEY_FILE,
    LISTEN,
    SERVERS,
    SHARE,
    V1_NODES,
    VERSIONS,
    Kind,
    choice,
    many,
    or_never,
    seconds,
    text,
    whole,
)
from framewire.node.core import Settings

__all__ = ["BY_KEY", "BY_VARIABLE", "OPTIONS", "TABLES", "Option", "Table"]

_OVERFLOW = choice("wait", "reject", "drop_oldest")
_PLACES = many(CONNECT, "a list of addresses like tcp://host:port")
_CAPTURES = text("a directory, or a URI such as s3://bucket/captures")


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that can be told. ``default`` is None where nothing is done unless it is told."""

    table: str
    name: str
    kind: Kind
    default: Any
    meaning: str

    @property
    def key(self) -> str:
        """As it is called in errors, and after ``--set``."""
        return f"{self.table}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that it can be told by."""
        return f"FRAMEWIRE_{self.table}_{self.name}".upper()


@dataclass(frozen=True, slots=True)
class Table:
    """A part of the file. ``settings`` is the class that has the defaults, and judges once more."""

    name: str
    meaning: str
    settings: type | None
    rows: tuple[tuple[str, Kind, str], ...]
    defaults: tuple[tuple[str, Any], ...] = ()

    def options(self) -> tuple[Option, ...]:
        """Its options, with their defaults."""
        known = dict(self.defaults)
        if self.settings is not None:
            known |= {field.name: _default(field) for field in dataclasses.fields(self.settings)}
        return tuple(Option(self.name, name, kind, known.get(name), told) for name, kind, told in self.rows)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


TABLES = (
    Table(
        "node",
        "A node, and the program that runs on it.",
        Settings,
        (
            ("app", text("module:name, such as shop.orders:app"), "What runs on the node; see operating.md."),
            (
                "identity",
                text("1 to 255 bytes of text", lambda told: 0 < len(told.encode()) <= 255 and told[0] != "\0"),
                "What other nodes know it by; made up unless given. Workers get -1, -2 and so on after it.",
            ),
            ("workers", whole(0, 1024), "Processes that run the app, each a node; 0 for this process alone."),
            (
                "reload_workers",
                FLAG,
                "SIGHUP starts the workers anew, one by one; otherwise they only read their keys anew.",
            ),
            ("spans", FLAG, "A span of OpenTelemetry's for everything that a handler does."),
            ("timeout", seconds(), "What ask, send and gather wait; also the longest wait for room."),
            ("mailbox", whole(1), "Messages that begin a flow and that an actor's mailbox holds."),
            ("overflow", _OVERFLOW, "What a full mailbox does with more."),
            (
                "max_queued",
                whole(1),
                "Messages that a mailbox, or the queue to a peer, holds at most, flows under way included.",
            ),
            ("max_queued_bytes", whole(1), "The bytes of those beyond `mailbox`, or beyond `send_queue`."),
            ("promises", whole(1), "Promises that a hub may have open at a time."),
            ("threads", whole(1), "Threads for handlers that are plain functions."),
            ("max_threads", whole(1), "Threads that there are at most while handlers wait in theirs."),
            ("keep_dead_letters", whole(0), "Dead letters that are kept at hand."),
            (
                "route_grace",
                seconds(zero=True),
                "How long a message without a route is held; unless set, 10 s if its handler has left, else 1.",
            ),
            ("hold", whole(0), "Messages that are held like this at a time."),
            (
                "stall_after",
                or_never(seconds()),
                "After how long a handler that blocks the loop is reported.",
            ),
            ("stop_timeout", seconds(zero=True), "How long stopping waits for what is still running."),
            ("max_hops", whole(1, 0xFFFE), "Nodes that a message may pass before it is taken to go in circles."),
            (
                "replay_window",
                seconds(zero=True),
                "For how long signed messages are known again; 0 for not at all.",
            ),
            ("replay_memory", whole(2), "Signed messages that are known again, at most."),
        ),
        (("workers", 0), ("reload_workers", False), ("spans", False)),
    ),
    Table(
        "cluster",
        "How a node is connected to others. Without any of these it is a world of its own.",
        ClusterSettings,
        (
            ("rendezvous", SERVERS, "The rendezvous servers; any of them will do."),
            (
                "peers",
                _PLACES,
                "Other nodes, without a rendezvous.",
            ),
            (
                "bind",
                LISTEN,
                "Where it listens; any port of the local address of the route to its server or peer unless given.",
            ),
            (
                "advertise",
                ADVERTISED,
                "Where others reach it, if not where it listens; if that is everywhere, at the same address.",
            ),
            ("health", LISTEN, "Where its heartbeats are heard; any port of the same host unless given."),
            ("advertise_health", ADVERTISED, "Where others hear them, if that is somewhere else."),
            ("heartbeat", seconds(), "Between signs of life."),
            ("misses", whole(1), "Signs of life that may be missing before a node is taken to be gone."),
            ("send_queue", whole(1), "Messages that wait for a peer that cannot take them."),
            ("send_overflow", _OVERFLOW, "What happens when there are more."),
            (
                "vigil",
                seconds(zero=True, most=0.01),
                "For how long it looks for the answer to its only question before it sleeps.",
            ),
            ("max_message_bytes", whole(1024), "The largest message that it sends and takes."),
            ("max_frames", whole(32), "The most frames of one."),
            ("rediscover", seconds(), "Between questions to everyone about everything."),
            (
                "wire_version",
                Kind("4 or 5", int, lambda value: value in (4, 5) and not isinstance(value, bool)),
                "The format that is written, except to peers that are known to write an older one.",
            ),
            ("curve", CURVE, "The keys of CURVE; see security.md. With them only members get anywhere."),
            (
                "open",
                FLAG,
                "Whether nodes are believed that neither sign nor have CURVE keys; see security.md.",
            ),
            ("peer_rate", or_never(whole(1)), "Messages that are taken from one connection in a second."),
            ("versions", VERSIONS, "The numbers of message versions in V1 that are neither N nor N.0."),
            (
                "v1_nodes",
                V1_NODES,
                "Nodes that know nothing but V1, and what they handle; see joining-kino.md.",
            ),
        ),
    ),
    Table(
        "security",
        "Domains and their keys. Keys themselves are never in this file, and never shown.",
        None,
        (("keys", KEY_FILE, "The key file; FRAMEWIRE_KEYS holds the same text instead."),),
    ),
    Table(
        "capture",
        "What is recorded of a node.",
        CaptureSettings,
        (
            (
                "path",
                text("a directory, or a URI such as s3://bucket/captures"),
                "Where; nothing is recorded without.",
            ),
            (
                "identities",
                many(
                    text("", lambda told: bool(told) and "*" not in told[:-1]),
                    "a list of names such as orders.place, or orders.* with the * at the end",
                ),
                "Only messages with these identities.",
            ),
            (
                "directions",
                many(choice(*Direction), f"a list of {', '.join(Direction)}"),
                "Only these.",
            ),
            ("sample", SHARE, "The share of flows that is recorded."),
            (
                "traced",
                FLAG,
                "Whether flows with a traced message are recorded whole, and their steps, whatever the rest says.",
            ),
            ("bodies", BODIES, "Whether bodies are recorded, or how much of each."),
            ("on_full", choice("drop", "wait"), "What happens to a message when the queue is full."),
            ("wait_limit", seconds(), "How long the node waits at most before it goes on without recording."),
            ("queue_records", whole(1), "Messages that may wait to be written."),
            ("queue_bytes", whole(65536), "Memory, roughly, that they may take."),
            ("batch_seconds", seconds(), "How long a message waits at most: what a process that is killed loses."),
            ("seal_seconds", seconds(), "After how long an open segment becomes a Parquet file."),
            ("seal_bytes", whole(1024), "After how many bytes it does."),
            ("keep_seconds", or_never(seconds()), "After how long a segment is removed."),
            ("keep_bytes", or_never(whole(0)), "The oldest segments are removed while there are more bytes."),
            ("spool", text("a local directory"), "Where open segments lie, if not beside the sealed ones."),
        ),
    ),
    Table(
        "endpoints",
        "What orchestrators and Prometheus ask over HTTP. Nothing listens unless told to; both may be one address.",
        None,
        (
            ("health", ENDPOINT, "Where /live and /ready answer."),
            ("metrics", ENDPOINT, "Where /metrics answers."),
        ),
    ),
    Table(
        "log",
        "What a node and a rendezvous server write to the standard error.",
        None,
        (
            ("level", choice("debug", "info", "warning", "error"), "The least that is written."),
            ("format", choice("human", "json"), "Lines for people, or an object a line for machines."),
        ),
        (("level", "info"), ("format", "human")),
    ),
    Table(
        "rendezvous",
        "A rendezvous server: `framewire rendezvous`.",
        None,
        (
            ("address", LISTEN, "Where it listens; it speaks at the next port, and to partners at the one after."),
            ("broadcast", LISTEN, "Where it speaks, if not at the next port."),
            (
                "partners",
                _PLACES,
                "Servers to relay to and from.",
            ),
            ("heartbeat", seconds(), "Between signs of life."),
            ("curve", CURVE, "The keys of CURVE, as for a node."),
            ("health", ENDPOINT, "Where /live and /ready answer over HTTP; nothing listens unless told to."),
        ),
        (("partners", ()), ("heartbeat", 1.0)),
    ),
)
"""The file, table by table."""

OPTIONS = tuple(option for table in TABLES for option in table.options())
BY_KEY = {option.key: option for option in OPTIONS}
BY_VARIABLE = {option.variable: option for option in OPTIONS}
