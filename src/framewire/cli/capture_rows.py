"""Recorded messages one by one: which of them are asked for, and how they are told to a person or a program."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

import click

from framewire.capture.schema import Direction
from framewire.cli.capture_quantities import moment
from framewire.errors import WireError
from framewire.wire import Message, decode
from framewire.wire.explaining import printable
from framewire.wire.message import readable

if TYPE_CHECKING:
    import pyarrow as pa

    from framewire.capture.reading import Wanted

__all__ = ["Question", "Row", "filters", "json_line", "rows", "text_line"]

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--message", "messages", multiple=True, metavar="PATTERN", help="Identities such as 'orders.*'."),
    click.option("--node", "nodes", multiple=True, metavar="ID", help="Recorded by this node; 0x… for hex."),
    click.option("--direction", "directions", multiple=True, type=click.Choice([str(way) for way in Direction])),
    click.option("--flow", "flows", multiple=True, metavar="ID", help="Correlation ids; 0x… for hex."),
    click.option("--reason", "reasons", multiple=True, metavar="WORD", help="Dead letters, such as no_route."),
    click.option("--since", type=moment, metavar="WHEN", help="2026-03-01T12:00 (UTC), or 15m for so long ago."),
    click.option("--until", type=moment, metavar="WHEN", help="Same; the first moment that is left out."),
)


def filters(command: F) -> F:
    """The options that say which messages are asked for; the command gets them as keywords of ``Question``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Row:
    """One recorded message."""

    at: dt.datetime
    node: bytes
    direction: str
    peer: bytes
    reason: str | None
    frames: list[bytes]
    message: Message | None
    """None where the frames are no message; then ``error`` says why."""
    error: WireError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which messages are asked for; what is empty does not matter."""

    messages: tuple[str, ...]
    nodes: tuple[str, ...]
    directions: tuple[str, ...]
    flows: tuple[str, ...]
    reasons: tuple[str, ...]
    since: dt.datetime | None
    until: dt.datetime | None

    def wanted(self) -> Wanted:
        """The part of it that can be told without looking into messages."""
        from framewire.capture.reading import Wanted  # noqa: PLC0415 - pyarrow comes with it

        return Wanted(
            since=self.since,
            until=self.until,
            nodes=tuple(map(_raw, self.nodes)),
            directions=self.directions,
            reasons=self.reasons,
        )

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
        """The messages that are asked for, in batches of which ``wanted`` was told."""
        flows = frozenset(map(_raw, self.flows))
        for row in rows(batches):
            identity = readable(row.message.identity) if row.message is not None else None
            if flows and (row.message is None or row.message.correlation_id not in flows):
                continue
            if self.messages and not any(identity and fnmatchcase(identity, name) for name in self.messages):
                continue
            yield row


def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Recorded messages, decoded."""
    for batch in batches:
        for found in batch.to_pylist():
            message, error = None, None
            try:
                message = decode(found["frames"])
            except WireError as problem:
                error = problem
            yield Row(**found, message=message, error=error)


def json_line(row: Row) -> str:
    """A message as a line of JSON, that ``framewire inspect`` reads as a recording."""
    message = row.message
    return json.dumps(
        {
            "at": row.at.isoformat(timespec="microseconds"),
            "node": readable(row.node),
            "direction": row.direction,
            "peer": readable(row.peer),
            "reason": row.reason,
            "name": str(message.message_id) if message is not None else None,
            "flow": readable(message.correlation_id) if message is not None else None,
            "error": row.error.reason if row.error is not None else None,
            "frames": [frame.hex() for frame in row.frames],
        }
    )


def text_line(row: Row) -> str:
    """A message in one line."""
    message = row.message
    name = f"malformed: {row.error}" if message is None else str(message.message_id)
    size = sum(map(len, row.frames))
    told = [
        f"{row.at:%H:%M:%S.%f}",
        f"{row.direction:<9}",
        f"{_short(row.node)} {_ARROWS.get(row.direction, '·')} {_short(row.peer)}",
        name,
        f"{size:,} B",
    ]
    if row.reason is not None:
        told.append(row.reason)
    if message is not None and row.direction == Direction.TRACE:
        told.append(" ".join(readable(bytes(frame)) for frame in message.body_frames))
    if message is not None and message.correlation_id:
        told.append(f"flow {readable(message.correlation_id)}")
    return printable("  ".join(told))


_ARROWS: dict[str, str] = {
    Direction.SENT: "→",
    Direction.RECEIVED: "←",
    Direction.DELIVERED: "⇒",
    Direction.DEAD: "✗",
}


def _short(raw: bytes) -> str:
    text = readable(raw)
    return f"{text[:8]}…" if len(text) > 12 else text


def _raw(text: str) -> bytes:
    """Bytes as they were shown: hex after 0x, text otherwise."""
    if text.startswith("0x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise click.UsageError(f"{text!r} is not hex.") from None
    return text.encode()
