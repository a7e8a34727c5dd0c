"""The tables of the lake and every column of them, declared once.

Whatever writes or reads the lake takes its schema from here, and ``docs/tables.md`` is checked against it. A column
that is here keeps its name, type and meaning within a layout (``LAYOUT``).

Bytes are exact and text is what people type: nodes, identities and correlation ids are kept as they are in the
frames, and the columns that people ask for (``message``, ``flow``, ``node_name``, …) stand beside them as text,
which is ``0x…`` where the bytes are not printable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["LAYOUT", "TABLES", "Table"]

LAYOUT = 3
"""The layout of a lake that this code writes. It grows when a column changes its name, type or meaning."""

_BY_BUCKET = {
    "date": ("date", "the UTC day that its row is filed under"),
    "bucket": ("string", "the part of the day that its row is filed under, by its beginning, like 08h00"),
}
_BY_BATCH = {**_BY_BUCKET, "batch": ("bigint", "the batch that brought it; compaction files rows under -1")}
_BY_DAY = {"date": ("date", "the UTC day")}

_ID = {
    "message": ("string", "the message id as text, like orders.place v2 [eu]"),
    "identity": ("binary", "the message's identity"),
    "version": ("int", "its version; null for a V1 version that is no number"),
    "partition": ("binary", "its partition"),
}
_FLOW = {
    "flow": ("string", "the correlation id as text; null where the message belongs to no flow"),
    "correlation_id": ("binary", "the correlation id"),
}
_NODE = {
    "node_name": ("string", "the node as text"),
    "node": ("binary", "the node"),
}
_WAY = {
    "from_name": ("string", "the sending node as text"),
    "to_name": ("string", "the receiving node as text"),
    "from_node": ("binary", "the sending node"),
    "to_node": ("binary", "the receiving node"),
}


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns with Spark's types and their meanings, and those that its files are filed under."""

    name: str
    about: str
    columns: Mapping[str, tuple[str, str]]
    filed_under: Mapping[str, tuple[str, str]]

    @property
    def schema(self) -> str:
        """All columns as Spark's schema, those of the directories last, as Spark reads them."""
        every = {**self.columns, **self.filed_under}
        return ", ".join(f"`{name}` {kind}" for name, (kind, _) in every.items())

    @property
    def names(self) -> list[str]:
        """The names of all columns, in the order of ``schema``."""
        return [*self.columns, *self.filed_under]


_DECLARED = (
    Table(
        "messages",
        "Every message as a node saw it: decoded, verified, each once.",
        {
            "at": ("timestamp", "when it was recorded, by the recording node's clock"),
            **_NODE,
            "direction": ("string", "sent, received, delivered or dead"),
            "peer": ("binary", "the other node; the receiver for delivered"),
            "reason": ("string", "why a dead letter died; null for all others"),
            **_ID,
            "version_raw": ("binary", "the version as the frame has it"),
            **_FLOW,
            "body": ("binary", "the body, all frames of it"),
            "body_frames": ("array<binary>", "the frames of the body where it has none or several; null for one"),
            "ttl_ticks": ("bigint", "what is left of its time, in ticks of 100 ns; 0 for no limit"),
            "distribution": ("int", "0 for one handler, 1 for all"),
            "trace_options": ("bigint", "the trace bits of its format"),
            "receiver_identity": ("binary", "the actor or hub that it is addressed to; empty for any"),
            "receiver_node_identity": ("binary", "the node that it is addressed to; empty for any"),
            "callback_receiver_identity": ("binary", "the hub that waits for the answer"),
            "callback_receiver_node_identity": ("binary", "the node of that hub"),
            "callback_key": ("bigint", "the number of the promise there"),
            "callback_points": (
                "array<struct<identity:binary,version:int,partition:binary>>",
                "the messages that are answers",
            ),
            "routing": (
                "array<struct<uri:string,identity:binary>>",
                "the routers that it passed, the first first; a kino node writes itself first, the rest reversed",
            ),
            "hops": ("int", "how often it went from node to node"),
            "domain": ("string", "its security domain; empty for none"),
            "signature": ("binary", "its signature; empty for none"),
            "signature_state": (
                "string",
                "valid, invalid, unsigned, unknown_domain, unchecked (no keys given) or local (never on a wire)",
            ),
            "socket_identity": ("binary", "the envelope's first frame; empty for what never was on a wire"),
            "wire_version": ("int", "its format: 1, 4 or 5"),
            "answer": ("boolean", "whether it is one of its own callback points"),
            "exception": (
                "struct<type:string,text:string,actor:string,node:string,about:string>",
                "what a KINO.EXCEPTION tells; null for all others",
            ),
            "digest": ("bigint", "a hash of the frames above the envelope: the same for send and receive"),
            "content": ("bigint", "a hash of what stays the same while a message is on one node"),
            "strand": ("bigint", "a hash of its flow; without one, of what stays the same wherever it goes"),
            "frames": ("array<binary>", "the frames as recorded, if the pipeline was told to keep them; else null"),
        },
        _BY_BATCH,
    ),
    Table(
        "quarantine",
        "What is no message, or came too late to be counted, as it was recorded.",
        {
            "at": ("timestamp", "when it was recorded, by the recording node's clock"),
            **_NODE,
            "direction": ("string", "sent, received, delivered or dead"),
            "peer": ("binary", "the other node, as far as the node could tell"),
            "reason": ("string", "why a dead letter died; null for all others"),
            "error": ("string", "why it is here: what decoding says (docs/wire.md), or late"),
            "frames": ("array<binary>", "the frames as recorded"),
        },
        _BY_BATCH,
    ),
    Table(
        "hops",
        "Each send matched with its receive; filed under the time of sending.",
        {
            **_FLOW,
            **_WAY,
            **_ID,
            "sent_at": ("timestamp", "when it was sent, by the sender's clock"),
            "received_at": ("timestamp", "when it was received, by the receiver's clock"),
            "raw_latency_us": ("bigint", "the difference of the two, in microseconds"),
            "skew_us": ("double", "how far the receiver's clock is ahead of the sender's; null where unknown"),
            "latency_us": ("double", "the latency without the skew; the raw one where that is unknown"),
            "fate": (
                "string",
                "what became of it there: delivered, dead, sent (passed on) or vanished; null while that is open",
            ),
            "fate_reason": ("string", "why it died there; null unless it is dead"),
            "fate_at": ("timestamp", "when, by the receiver's clock"),
            "failed": ("boolean", "whether its handler there raised"),
            "wire_version": ("int", "its format"),
        },
        _BY_BUCKET,
    ),
    Table(
        "losses",
        "What was sent and not received, or received and not delivered; filed under `at`.",
        {
            **_FLOW,
            "kind": ("string", "not_received (by a node that records), or not_delivered: nor dead, nor passed on"),
            **_WAY,
            **_ID,
            "at": ("timestamp", "when it was sent, or received for not_delivered, by that node's clock"),
        },
        _BY_BUCKET,
    ),
    Table(
        "handlings",
        "Each message that was handed to an actor or a hub; filed under `at`.",
        {
            **_FLOW,
            **_NODE,
            **_ID,
            "receiver": ("binary", "the actor or hub"),
            "to_hub": ("boolean", "whether it is a hub"),
            "came_from": ("binary", "the node that sent it; null where it never left its node"),
            "received_at": ("timestamp", "when it came, by the node's clock; null where it never left its node"),
            "at": ("timestamp", "when it was handed over, by the node's clock"),
            "service_us": (
                "bigint",
                "until the node did the next thing in the flow; null where there was none, and for hubs",
            ),
            "failed": ("boolean", "whether the handler raised"),
        },
        _BY_BUCKET,
    ),
    Table(
        "traces",
        "Each step of a message whose sender asked for it to be traced; filed under `at`.",
        {
            "at": ("timestamp", "when it was taken, by the node's clock"),
            **_NODE,
            "step": ("string", "received (from a hub or another node), routed, handled, replied, or shortened"),
            "detail": ("string", "from whom, to whom or by whom"),
            **_ID,
            **_FLOW,
            "digest": ("bigint", "a hash of what was recorded: rows that come twice are known by it"),
        },
        _BY_BATCH,
    ),
    Table(
        "clocks",
        "How far clocks are apart, by pair of nodes and bucket.",
        {
            "from_name": ("string", "one node as text"),
            "to_name": ("string", "the other as text"),
            "from_node": ("binary", "one node"),
            "to_node": ("binary", "the other"),
            "hops": ("bigint", "hops from the one to the other that tell of it"),
            "least_us": ("bigint", "the smallest raw latency from the one to the other"),
            "skew_us": ("double", "how far the other's clock is ahead of the one's; null without hops both ways"),
        },
        _BY_BUCKET,
    ),
    Table(
        "flows",
        "One row for each correlation id; filed under the first time that was recorded of it.",
        {
            **_FLOW,
            "outcome": ("string", "completed, expired, failed, dead or open: the first that applies"),
            "exception": ("string", "the type of the first exception that reached a hub, if the flow failed"),
            "exception_text": ("string", "its text"),
            "origin_name": ("string", "the node that it began on as text"),
            "origin": ("binary", "the node that it began on"),
            **_ID,
            "wire_version": ("int", "the format that its messages have on the wire"),
            "started_at": ("timestamp", "when it began, by the reference clock of its bucket"),
            "ended_at": ("timestamp", "when its last row was recorded, by the same clock"),
            "duration_us": ("bigint", "the time between, in microseconds"),
            "messages": ("bigint", "messages, each copy of a broadcast for itself; copies and passing on apart"),
            "hops": ("bigint", "how often one was sent to another node"),
            "rows": ("bigint", "rows of messages that tell of it"),
            "nodes": ("bigint", "nodes that recorded those"),
            "dead_reasons": ("array<string>", "the reasons of its dead letters, each once, sorted"),
            "steps": ("bigint", "how often one of its messages was delivered"),
            "path": (
                "array<struct<at:timestamp,node:binary,node_name:string,identity:binary,message:string>>",
                "where its messages were delivered, in order, by the same clock; the first 1000",
            ),
            "slowest": (
                "struct<us:bigint,node:binary,node_name:string,message:string>",
                "the step of the path that took longest, from the one before it or the beginning",
            ),
        },
        _BY_BUCKET,
    ),
    Table(
        "edges",
        "Who sends what to whom, by hour of sending.",
        {
            **_WAY,
            **_ID,
            "hour": ("timestamp", "the hour"),
            "sent": ("bigint", "messages sent"),
            "received": ("bigint", "those that were received"),
            "lost": ("bigint", "those that are in losses, of either kind"),
            "dead": ("bigint", "those that were received and are dead letters there"),
            "failed": ("bigint", "those whose handler raised"),
            "errors": ("bigint", "dead and failed together"),
            "loss_rate": ("double", "lost / sent"),
            "p50_us": (
                "double",
                "percentiles of the latency, exact and interpolated; null without hops",
            ),
            "p95_us": ("double", "95 % were as quick"),
            "p99_us": ("double", "99 % were as quick"),
        },
        _BY_BUCKET,
    ),
    Table(
        "handlers",
        "What the actors of each node got, by hour.",
        {
            **_NODE,
            **_ID,
            "hour": ("timestamp", "the hour"),
            "delivered": ("bigint", "messages that an actor got"),
            "failed": ("bigint", "those whose handler raised"),
            "rate": ("double", "delivered messages a second, over the whole hour"),
            "p50_us": ("double", "percentiles of service_us, exact and interpolated; null where it is never known"),
            "p95_us": ("double", "95 % were as quick"),
            "p99_us": ("double", "99 % were as quick"),
        },
        _BY_BUCKET,
    ),
    Table(
        "tally",
        "Rows of messages by bucket: what audit and adoption are added up from.",
        {
            **_NODE,
            **_ID,
            "wire_version": ("int", "the format"),
            "domain": ("string", "the domain; empty for none"),
            "signature_state": ("string", "see messages"),
            "rows": ("bigint", "rows of messages"),
        },
        _BY_BUCKET,
    ),
    Table(
        "audit",
        "Signatures by domain, node and hour.",
        {
            **_NODE,
            "hour": ("timestamp", "the hour of recording"),
            "domain": ("string", "the domain; empty for none"),
            "signature_state": ("string", "see messages"),
            "rows": ("bigint", "rows of messages"),
        },
        _BY_BUCKET,
    ),
    Table(
        "adoption",
        "Wire formats and message versions by node and day.",
        {
            **_NODE,
            "day": ("date", "the day of recording"),
            "wire_version": ("int", "the format"),
            **_ID,
            "rows": ("bigint", "rows of messages"),
        },
        _BY_DAY,
    ),
)

TABLES: Mapping[str, Table] = {table.name: table for table in _DECLARED}
"""Every table by its name."""
