"""What a network did to which message: the first place to look when a test with faults fails."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from framewire.errors import WireError
from framewire.wire import MessageId, decode
from framewire.wire.message import readable

__all__ = ["Fate", "Journal", "Record"]


class Fate(StrEnum):
    """What became of a message on the network."""

    PASSED = "passed"
    """Nothing was done to it."""
    DROPPED = "dropped"
    DUPLICATED = "duplicated"
    DELAYED = "delayed"
    REORDERED = "reordered"
    CORRUPTED = "corrupted"
    ALTERED = "altered"
    """A test's own function changed it, or took it away."""
    CUT_OFF = "cut off"
    """Lost to a partition."""
    LOST = "lost"
    """Lost because its sender was killed, or its receiver is gone."""


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that was done to one message. ``number`` counts the messages of a link from 1."""

    number: int
    at: float
    """Seconds on the network's clock."""
    sender: bytes
    receiver: bytes
    message: MessageId | None
    correlation_id: bytes
    fate: Fate
    detail: str = ""

    def __str__(self) -> str:
        link = f"{readable(self.sender)} → {readable(self.receiver)} #{self.number}"
        flow = f" (flow {readable(self.correlation_id)})" if self.correlation_id else ""
        detail = f" {self.detail}" if self.detail else ""
        return f"{self.at:.3f} {link}: {self.message or 'no message'}{flow}: {self.fate}{detail}"


class Journal:
    """The records of a network: all counted, the last ``keep`` at hand, the oldest first."""

    def __init__(self, keep: int) -> None:
        self.counts: Counter[Fate] = Counter()
        self._kept: deque[Record] = deque(maxlen=keep)

    def __iter__(self) -> Iterator[Record]:
        return iter(tuple(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def __str__(self) -> str:
        return "\n".join(map(str, self._kept))

    def of(self, *fates: Fate | str) -> list[Record]:
        """The records of certain fates that are still at hand."""
        return [record for record in self._kept if record.fate in fates]

    def add(
        self,
        number: int,
        at: float,
        sender: bytes,
        receiver: bytes,
        frames: Sequence[bytes],
        fate: Fate,
        detail: str = "",
    ) -> None:
        """Record what was done to a message."""
        self.counts[fate] += 1
        try:
            message = decode(frames)
        except WireError:
            self._kept.append(Record(number, at, sender, receiver, None, b"", fate, detail))
        else:
            flow = message.correlation_id
            self._kept.append(Record(number, at, sender, receiver, message.message_id, flow, fate, detail))
