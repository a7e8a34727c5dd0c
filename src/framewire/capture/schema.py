"""What a capture looks like on disk: its columns, and where its files lie.

Plain data without pyarrow or Spark, so that whoever writes captures and whoever reads them share this page.
"""

from __future__ import annotations

import datetime as dt
from enum import StrEnum

__all__ = ["ARROW_TYPES", "COLUMNS", "SPARK_SCHEMA", "Direction", "segment_path"]


class Direction(StrEnum):
    """Which way a message went, as seen by the node that recorded it."""

    SENT = "sent"
    """To another node."""
    RECEIVED = "received"
    """From another node."""
    DELIVERED = "delivered"
    """To a handler or hub of the node itself."""
    DEAD = "dead"
    """Nowhere: a dead letter."""
    TRACE = "trace"
    """No message, but a step of a traced one: its id and flow, with the step and its detail as body frames."""


COLUMNS: dict[str, tuple[str, str]] = {
    "at": ("timestamp", "when it was recorded, by the recording node's clock, in UTC with microseconds"),
    "node": ("binary", "the node that recorded it"),
    "direction": ("string", "sent, received, delivered, dead, or trace for a step of a traced message"),
    "peer": ("binary", "the other node; for a delivered message the receiver"),
    "reason": ("string", "why it died, for dead letters; null for all others"),
    "frames": ("array<binary>", "the whole message, its envelope included"),
}
"""The columns of a capture: Spark's type, and what is in it."""

SPARK_SCHEMA = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
"""The columns as Spark's schema, for ``spark.read.schema`` and ``spark.readStream.schema``."""

ARROW_TYPES = {"timestamp": "timestamp[us, tz=UTC]", "binary": "binary", "string": "string"}
"""What the types of the flat columns are called in Arrow; ``frames`` is a list of binary."""


def segment_path(node: bytes, at: dt.datetime, ulid: str) -> str:
    """Where a sealed segment lies below the directory of captures."""
    return f"recorder={node.hex()}/date={at:%Y-%m-%d}/segment-{ulid}.parquet"
