"""Captured rows to rows of the lake: decoded, verified, named, and told apart from what is no message.

The result has the columns of ``messages`` and ``fault``: ``none`` for a message, ``step`` for a trace step, else
why the row belongs in quarantine. Nothing is shuffled here, so a batch of captures is read, decoded and written in
a single pass.

Each step copies all columns of a row, and that is most of what it takes. So keys are looked up before anything is
decoded, what is only taken along is one column until the end, and all fields and what is made of them are one step:
Spark works out once what such a step says twice.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.capture.schema import COLUMNS, Direction
from framewire.security import KeyRing
from framewire.spark.columns import own
from framewire.spark.decoding import checked, domain_text, field_texts, told_formats
from framewire.spark.exceptions import EXCEPTION, told_by
from framewire.spark.given import is_before
from framewire.spark.shapes import literal
from framewire.spark.signatures import signature_state, with_keys
from framewire.spark.tables import TABLES
from framewire.spark.texts import flow_text, is_flow, message_text, readable

__all__ = ["FINE", "LATE", "STEP", "arriving"]

Row = Mapping[str, Column]
"""The columns of a row by their names."""

LATE = "late"
"""The fault of a row that is older than the pipeline takes in."""
FINE = "none"
"""The fault of a message."""
STEP = "step"
"""That of a trace step, which is no message and belongs in ``traces``."""
_FRAMES = "frames"
_UNSIGNABLE = 1
"""The wire format that has no room for a signature."""


def arriving(
    captured: DataFrame, keys: KeyRing | None, oldest: dt.datetime, *, keep_frames: bool = False
) -> DataFrame:
    """Captured rows as rows of ``messages``, with ``fault``; rows before ``oldest`` are late."""
    given = [name for name in COLUMNS if name != _FRAMES]
    told = told_formats(captured.select(_FRAMES, F.struct(*given).alias(own("given"))), _FRAMES)
    keyed = told if keys is None else with_keys(told, F.expr(domain_text(_FRAMES)), keys)
    texts = field_texts(_FRAMES)
    row = {name: F.expr(text) for name, text in texts.items()} | {_FRAMES: F.col(_FRAMES)}
    row |= {name: F.col(own("given"))[name] for name in given}
    late = is_before(row["at"], oldest)
    is_step = row["direction"] == Direction.TRACE
    fault = F.when(late, LATE).otherwise(F.coalesce(row["error"], F.when(is_step, STEP).otherwise(FINE)))
    kept = F.lit(keep_frames) | (fault != FINE)
    made = _hashes(row) | {
        "fault": fault,
        "signature_state": _signature_state(row, keys),
        "node_name": readable(row["node"]),
        "message": message_text(*[row[name] for name in ("identity", "version", "version_raw", "partition")]),
        "flow": flow_text(row["correlation_id"]),
        "answer": _answers(row),
        "exception": F.when(row["identity"] == literal(EXCEPTION), F.expr(told_by(texts["body"]))),
        "body_frames": F.when(F.array_size(row["body_frames"]) != 1, row["body_frames"]),
        _FRAMES: F.when(kept, row[_FRAMES]),
    }
    every = row | made
    return checked(keyed, _FRAMES).select(
        *[every[name].alias(name) for name in (*TABLES["messages"].columns, "fault")]
    )


def _signature_state(row: Row, keys: KeyRing | None) -> Column:
    """Only what was on a wire can be signed: what a node wrote for itself has no domain to be judged by."""
    unchecked = F.when(F.length(row["signature"]) > 0, "unchecked").otherwise("unsigned")
    return (
        F.when(row["error"].isNotNull(), None)
        .when(F.coalesce(F.length(row["socket_identity"]), F.lit(0)) == 0, "local")
        .when(row["wire_version"] == _UNSIGNABLE, "unsigned")
        .otherwise(unchecked if keys is None else signature_state(keys, row))
    )


def _hashes(row: Row) -> dict[str, Column]:
    frames, routing = row[_FRAMES], row["routing"]
    on_wire = row["socket_identity"].isNotNull()
    above = F.when(on_wire, F.slice(frames, 3, F.array_size(frames))).otherwise(frames)
    # A router adds itself when it sends a message on; without that, what comes and what leaves are the same.
    is_sent = row["direction"] == Direction.SENT
    passed = F.when(is_sent, F.slice(routing, 1, _but_one(routing))).otherwise(routing)
    numbered = F.when(row["version"].isNull(), row["version_raw"])
    told = [row["identity"], row["version"], numbered, row["partition"], row["body"]]
    flow = row["correlation_id"]
    return {
        "digest": F.xxhash64(above),
        "content": F.xxhash64(flow, *told, passed),
        "strand": F.when(is_flow(flow), F.xxhash64(flow)).otherwise(F.xxhash64(*told)),
    }


def _but_one(entries: Column) -> Column:
    return F.greatest(F.array_size(entries) - 1, F.lit(0))


def _answers(row: Row) -> Column:
    """Whether the message is one that somebody waits for."""
    point = F.struct(*[row[name].alias(name) for name in ("identity", "version", "partition")])
    return F.array_contains(row["callback_points"], point)
