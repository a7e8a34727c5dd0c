"""The tables of truth and their columns. ``docs/synth.md`` says what is in each, and a test compares the two."""

from __future__ import annotations

import pyarrow as pa

from framewire.synth.block import TIME

__all__ = ["TABLES"]

_MESSAGE = [("identity", pa.binary()), ("version", pa.int32()), ("partition", pa.binary())]
_FLOW = [("correlation_id", pa.binary())]
_WAY = [("from_node", pa.binary()), ("to_node", pa.binary())]
_STEP = pa.struct([("node", pa.binary()), ("identity", pa.binary())])

TABLES = {
    "flows": pa.schema(
        [
            *_FLOW,
            ("shape", pa.string()),
            ("outcome", pa.string()),
            ("exception", pa.string()),
            ("origin", pa.binary()),
            *_MESSAGE,
            ("wire_version", pa.int32()),
            ("started_at", TIME),
            ("ended_at", TIME),
            ("messages", pa.int64()),
            ("hops", pa.int64()),
            ("rows", pa.int64()),
            ("nodes", pa.int64()),
            ("path", pa.list_(_STEP)),
            ("dead_reasons", pa.list_(pa.string())),
        ]
    ),
    "hops": pa.schema(
        [*_FLOW, *_WAY, *_MESSAGE, ("sent_at", TIME), ("received_at", TIME), ("latency_us", pa.int64())]
    ),
    "losses": pa.schema([*_FLOW, ("kind", pa.string()), ("cause", pa.string()), *_WAY, *_MESSAGE, ("at", TIME)]),
    "tampered": pa.schema([*_FLOW, ("node", pa.binary()), ("at", TIME), *_WAY, *_MESSAGE, ("domain", pa.string())]),
    "malformed": pa.schema(
        [
            ("node", pa.binary()),
            ("at", TIME),
            ("direction", pa.string()),
            *_WAY,
            ("wire_version", pa.int32()),
            ("error", pa.string()),
        ]
    ),
    "duplicates": pa.schema(
        [*_FLOW, *_WAY, *_MESSAGE, ("first_at", TIME), ("second_at", TIME), ("then", pa.string())]
    ),
    "dead": pa.schema([*_FLOW, ("node", pa.binary()), ("at", TIME), ("reason", pa.string()), *_MESSAGE]),
    "skew": pa.schema(
        [("node", pa.binary()), ("uri", pa.string()), ("hub", pa.binary()), ("offset_us", pa.int64())]
    ),
    "edges": pa.schema(
        [
            *_WAY,
            *_MESSAGE,
            ("hour", TIME),
            ("sent", pa.int64()),
            ("received", pa.int64()),
            ("lost", pa.int64()),
            ("dead", pa.int64()),
            ("failed", pa.int64()),
            ("p50_us", pa.float64()),
            ("p95_us", pa.float64()),
            ("p99_us", pa.float64()),
        ]
    ),
    "handlers": pa.schema([("node", pa.binary()), *_MESSAGE, ("delivered", pa.int64()), ("failed", pa.int64())]),
    "audit": pa.schema(
        [
            ("node", pa.binary()),
            ("hour", TIME),
            ("domain", pa.string()),
            ("signature", pa.string()),
            ("rows", pa.int64()),
        ]
    ),
    "adoption": pa.schema(
        [("node", pa.binary()), ("day", TIME), ("wire_version", pa.int32()), ("rows", pa.int64())]
    ),
}
"""The schema of every table."""
