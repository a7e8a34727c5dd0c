"""Captured rows to rows of the lake: decoded, verified, named, and told apart from what is no message.

The result has the columns of ``messages`` and ``fault``: ``none`` for a message, else why the row belongs in
quarantine. Nothing is shuffled here, so a batch of captures is read, decoded and written in a single pass. All that
comes after decoding is one step, because each step copies all bytes of a row, and that is most of what it takes.
"""

from __future__ import annotations

import datetime as dt

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.capture.schema import COLUMNS, Direction
from framewire.security import KeyRing
from framewire.spark.columns import quoted
from framewire.spark.decoding import decode_all
from framewire.spark.exceptions import EXCEPTION, told_by
from framewire.spark.given import is_before
from framewire.spark.shapes import literal
from framewire.spark.signatures import verify
from framewire.spark.tables import TABLES
from framewire.spark.texts import flow_text, is_flow, message_text, readable

__all__ = ["FINE", "LATE", "arriving"]

LATE = "late"
"""The fault of a row that is older than the pipeline takes in."""
FINE = "none"
"""The fault of a message."""
_UNSIGNABLE = 1
"""The wire format that has no room for a signature."""


def arriving(
    captured: DataFrame, keys: KeyRing | None, oldest: dt.datetime, *, keep_frames: bool = False
) -> DataFrame:
    """Captured rows as rows of ``messages``, with ``fault``; rows before ``oldest`` are late."""
    decoded = decode_all(captured.select(*COLUMNS))
    late = is_before(F.col("at"), oldest)
    fault = F.when(late, LATE).otherwise(F.coalesce(F.col("error"), F.lit(FINE)))
    kept = F.lit(keep_frames) | (fault != FINE)
    identity = ("identity", "version", "version_raw", "partition")
    made = _hashes() | {
        "fault": fault,
        "node_name": readable(F.col("node")),
        "message": message_text(*map(F.col, identity)),
        "flow": flow_text(F.col("correlation_id")),
        "answer": _answers(),
        "exception": F.when(F.col("identity") == literal(EXCEPTION), F.expr(told_by("body"))),
        "body_frames": F.when(F.array_size("body_frames") != 1, F.col("body_frames")),
        "frames": F.when(kept, F.col("frames")),
    }
    named = _with_signature_state(decoded, keys).withColumns(made)
    return named.select(*map(quoted, TABLES["messages"].columns), "fault")


def _with_signature_state(decoded: DataFrame, keys: KeyRing | None) -> DataFrame:
    """Only what was on a wire can be signed: what a node wrote for itself has no domain to be judged by."""
    unchecked = F.when(F.length("signature") > 0, "unchecked").otherwise("unsigned")
    judged = decoded.withColumn("signature_state", unchecked) if keys is None else verify(decoded, keys)
    state = (
        F.when(F.col("error").isNotNull(), None)
        .when(F.coalesce(F.length("socket_identity"), F.lit(0)) == 0, "local")
        .when(F.col("wire_version") == _UNSIGNABLE, "unsigned")
        .otherwise(F.col("signature_state"))
    )
    return judged.withColumn("signature_state", state)


def _hashes() -> dict[str, Column]:
    frames, routing = F.col("frames"), F.col("routing")
    above = F.when(F.col("socket_identity").isNotNull(), F.slice(frames, 3, F.array_size(frames))).otherwise(frames)
    # A router adds itself when it sends a message on; without that, what comes and what leaves are the same.
    passed = F.when(F.col("direction") == Direction.SENT, F.slice(routing, 1, _but_one(routing))).otherwise(routing)
    numbered = F.when(F.col("version").isNull(), F.col("version_raw"))
    told = [F.col("identity"), F.col("version"), numbered, F.col("partition"), F.col("body")]
    flow = F.col("correlation_id")
    return {
        "digest_a": F.xxhash64(F.lit(1), above),
        "digest_b": F.xxhash64(F.lit(2), above),
        "content": F.xxhash64(flow, *told, passed),
        "strand": F.when(is_flow(flow), F.xxhash64(flow)).otherwise(F.xxhash64(*told)),
    }


def _but_one(entries: Column) -> Column:
    return F.greatest(F.array_size(entries) - 1, F.lit(0))


def _answers() -> Column:
    same = "point.identity = identity AND point.version <=> version AND point.partition = `partition`"
    return F.expr(f"exists(callback_points, point -> {same})")
