"""Made-up captures read back without any of the code that wrote them: pyarrow, the Python codec, and counting."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import bson
import pyarrow.parquet as pq

from framewire.errors import WireError
from framewire.wire import Message, MessageId, decode

EXCEPTION = MessageId(b"KINO.EXCEPTION")
NO_FLOW = (b"", b"00000000-0000-0000-0000-000000000000")
MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(slots=True)
class Seen:
    """One row of a capture."""

    at: dt.datetime
    true_at: dt.datetime
    node: bytes
    direction: str
    peer: bytes
    reason: str | None
    frames: tuple[bytes, ...]
    message: Message | None
    error: str | None

    @property
    def id(self):
        """The message id as truth writes it: V1's text as the number that it stands for."""
        version = self.message.version
        number = version if isinstance(version, int) else int(version.removesuffix(b".0"))
        return MessageId(self.message.identity, number, self.message.partition)

    @property
    def point(self):
        """Whether the message is one of the answers that somebody waits for."""
        message = self.message
        own = (message.identity, message.version, message.partition)
        return own in [(point.identity, point.version, point.partition) for point in message.callback_points]


@dataclass
class MadeUp:
    """A directory that ``synthesise`` filled."""

    directory: Path
    tables: dict[str, list[dict]] = field(default_factory=dict)

    @property
    def segments(self):
        return sorted((self.directory / "captures").glob("recorder=*/date=*/segment-*.parquet"))

    def truth(self, name):
        if name not in self.tables:
            self.tables[name] = pq.read_table(self.directory / "truth" / f"{name}.parquet").to_pylist()
        return self.tables[name]

    @cached_property
    def offsets(self):
        return {row["node"]: row["offset_us"] for row in self.truth("skew")}

    @cached_property
    def rows(self):
        return [self._seen(row) for path in self.segments for row in pq.ParquetFile(path).read().to_pylist()]

    def _seen(self, row):
        message = error = None
        try:
            message = decode(row["frames"])
        except WireError as problem:
            error = problem.reason
        true_at = row["at"] - self.offsets[row["node"]] * MICROSECOND
        frames = tuple(row["frames"])
        known = (row["node"], row["direction"], row["peer"], row["reason"])
        return Seen(row["at"], true_at, *known, frames, message, error)

    @cached_property
    def decoded(self):
        return [row for row in self.rows if row.error is None]

    @cached_property
    def flows(self):
        """The rows of each flow, in order of true time."""
        flows = defaultdict(list)
        for row in self.decoded:
            if row.message.correlation_id not in NO_FLOW:
                flows[row.message.correlation_id].append(row)
        for rows in flows.values():
            rows.sort(key=lambda row: row.true_at)
        return flows

    @cached_property
    def matches(self):
        """Each send with its receive, or None: same frames above the envelope, the n-th with the n-th."""
        received = defaultdict(list)
        for row in sorted(self.decoded, key=lambda row: row.at):
            if row.direction == "received":
                received[row.frames[2:]].append(row)
        pairs = []
        for row in sorted(self.decoded, key=lambda row: row.at):
            if row.direction == "sent":
                waiting = received[row.frames[2:]]
                pairs.append((row, waiting.pop(0) if waiting else None))
        return pairs


def outcome(rows):
    """What became of a flow, by the rules of docs/synth.md."""
    to_hub = [row for row in rows if row.direction == "delivered" and row.peer[0] == 0 and row.point]
    reasons = {row.reason for row in rows if row.direction == "dead"} - {"duplicate_reply"}
    if any(row.message.identity != EXCEPTION.identity for row in to_hub):
        return "completed", None
    if reasons & {"expired", "late_reply"}:
        return "expired", None
    if to_hub:
        return "failed", bson.decode(to_hub[0].message.body)["ExceptionType"]
    return ("dead" if reasons else "open"), None
