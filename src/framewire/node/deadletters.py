"""Messages that could not be delivered: counted, kept for a while, logged and handed to whoever wants them."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from framewire.node.parcel import Parcel
from framewire.wire import Message

__all__ = ["DeadLetter", "DeadLetters", "Reason"]

log = logging.getLogger("framewire.deadletters")


class Reason(StrEnum):
    """Why a message died."""

    NO_ROUTE = "no_route"
    EXPIRED = "expired"
    OVERLOADED = "overloaded"
    UNREACHABLE = "unreachable"
    BAD_BODY = "bad_body"
    BAD_SIGNATURE = "bad_signature"
    REPLAYED = "replayed"
    MALFORMED = "malformed"
    OVERSIZED = "oversized"
    UNREAD = "unread"
    """There was no memory to read it, or framewire itself failed at it."""
    THROTTLED = "throttled"
    HANDLER_GONE = "handler_gone"
    LATE_REPLY = "late_reply"
    DUPLICATE_REPLY = "duplicate_reply"
    UNKNOWN_REPLY = "unknown_reply"
    NODE_STOPPED = "node_stopped"
    CANCELLED = "cancelled"
    DUPLICATE_IDENTITY = "duplicate_identity"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that could not be delivered. ``message`` is None where its frames were not even one."""

    reason: Reason
    detail: str
    at: float
    """Seconds on the node's clock."""
    message: Message | None
    frames: tuple[bytes, ...] = ()


class DeadLetters:
    """The dead letters of one node: all counted, the last ``keep`` at hand, the log never flooded."""

    def __init__(self, keep: int, now: Callable[[], float], *, log_every: float = 1.0) -> None:
        self.counts: Counter[Reason] = Counter()
        self._kept: deque[DeadLetter] = deque(maxlen=keep)
        self._now = now
        self._log_every = log_every
        self._logged: dict[Reason, tuple[float, int]] = {}
        self._hooks: list[Callable[[DeadLetter], object]] = []
        self._handing = False

    def __iter__(self) -> Iterator[DeadLetter]:
        """The letters that are still at hand, the oldest first."""
        return iter(tuple(self._kept))

    def __len__(self) -> int:
        return self.counts.total()

    def listen(self, hook: Callable[[DeadLetter], object]) -> None:
        """Call a function with every letter from now on."""
        self._hooks.append(hook)

    def add(self, reason: Reason, detail: str, parcel: Parcel) -> None:
        """Record a parcel that goes nowhere."""
        now = self._now()
        try:
            message = parcel.to_message(now)
        except Exception:  # a payload that cannot even be encoded must not stop the record of its death
            log.debug("a dead letter's payload cannot be encoded", exc_info=True)
            parcel.body_frames = ()
            message = parcel.to_message(now)
        self._record(DeadLetter(reason, detail, now, message))

    def add_frames(self, reason: Reason, detail: str, frames: list[bytes]) -> None:
        """Record frames that are not a message."""
        self._record(DeadLetter(reason, detail, self._now(), None, tuple(frames)))

    def _record(self, letter: DeadLetter) -> None:
        self.counts[letter.reason] += 1
        self._kept.append(letter)
        self._log(letter)
        if self._handing:
            return  # a hook that makes dead letters of its own would never come to an end
        self._handing = True
        try:
            for hook in self._hooks:
                try:
                    hook(letter)
                except Exception:
                    log.exception("a dead letter hook failed")
        finally:
            self._handing = False

    def _log(self, letter: DeadLetter) -> None:
        last, count = self._logged.get(letter.reason, (float("-inf"), 0))
        if letter.at - last < self._log_every:
            return
        total = self.counts[letter.reason]
        self._logged[letter.reason] = (letter.at, total)
        about = letter.message.message_id if letter.message else f"{len(letter.frames)} frames"
        more = f" (and {total - count - 1} like it)" if total - count > 1 else ""
        log.warning("dead letter, %s: %s: %s%s", letter.reason, about, letter.detail, more)
