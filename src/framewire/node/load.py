"""How fast an actor works, from the counters that it has anyway: a message costs nothing here."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import median

from framewire.node.actor import Handler
from framewire.wire import MessageId

__all__ = ["LoadEstimate"]

_WINDOW_S = 0.1
"""Seconds that a window of measurement has at least."""
_FIRST_MESSAGES, _MESSAGES = 4, 8
"""Messages that end in it at least, while nothing is known and later: of 4, one more or less is a quarter, and for
that messages would be refused that have waited already."""
_LONG_WINDOW_S = 1.0
"""Seconds after which it ends though few messages were handled in it."""
_WINDOWS = 3
"""Windows whose median counts: an event loop that stands still for a moment falls into one of them."""
_STUCK_S = 0.1
"""Seconds without a handler that ends after which messages are taken to be slower than they were."""
_HOGGED = 0.3
"""The part of a window from which on the event loop was kept busy, by the actor itself or by others."""
_RISE = 1.1
"""How fast the time that a quick message takes may grow in the time of the shortest window."""


class LoadEstimate:
    """Recent seconds for each message of one actor."""

    def __init__(self, concurrency: int, now: float) -> None:
        self._concurrency = concurrency
        self._began = now
        self._handled = 0
        self._by_kind: dict[MessageId, tuple[int, float]] = {}
        self._backlogged = False
        self._windows: deque[float] = deque(maxlen=_WINDOWS)
        self._late = 0.0
        self._looked = now
        self._refused: dict[MessageId, tuple[int, float]] = {}
        self._asked = 0.0
        self.asked = 0.0
        """Seconds that handlers have waited for answers to what they asked."""
        self.service = 0.0
        """Seconds until the next message of a backlog is begun; 0 while nothing is known."""
        self.handling: dict[MessageId, float] = {}
        """Seconds that a message of a kind takes, where it is quick."""

    def resume(self, now: float) -> None:
        """Begin a window: the actor has something to do again.

        That a handler took long once is forgotten then, or the actor would refuse what it can do and never learn.
        """
        if now - self._looked > _LONG_WINDOW_S:
            self._windows.clear()
        self.service = median(self._windows) if len(self._windows) == _WINDOWS else 0.0
        self._began, self._late, self._backlogged = now, 0.0, False

    def refused(self, message_id: MessageId, seconds: float) -> None:
        """Leave a message out that ended after so many seconds because an actor that it leads to was overloaded.

        Such messages end soon. If they counted, an actor would seem to be the quicker the more of them there are,
        and would let in what is refused further on.
        """
        count, spent = self._refused.get(message_id, (0, 0.0))
        self._refused[message_id] = (count + 1, spent + seconds)

    def look(
        self, handlers: Iterable[tuple[MessageId, Handler]], now: float, late: float, stuck: float, backlog: int
    ) -> None:
        """Read the counters.

        ``late`` is how many seconds ago this was due, ``stuck`` for how long no handler has ended, ``backlog`` how
        many messages wait.
        """
        elapsed = now - self._began
        self._looked = now
        self._late += late
        kinds = {key: (handler.figures.handled, handler.figures.seconds) for key, handler in handlers}
        for key, (count, spent) in self._refused.items():
            handled, seconds = kinds.get(key, (count, spent))
            kinds[key] = (handled - count, seconds - spent)
        total = sum(handled for handled, _ in kinds.values())
        done = total - self._handled
        least = _MESSAGES if len(self._windows) == _WINDOWS else _FIRST_MESSAGES
        enough = elapsed >= _WINDOW_S and done >= max(2 * self._concurrency, least)
        if not (enough or (done and elapsed >= _LONG_WINDOW_S)):
            if not done and stuck >= _STUCK_S:
                # Nothing has ended since, so a message takes at least this long.
                self.service = max(self.service, stuck / self._concurrency)
            if not backlog:
                self._backlogged = False
            return
        took = 0.0
        rise = _RISE ** min(elapsed / _WINDOW_S, 100.0)
        for key, (handled, seconds) in kinds.items():
            before, spent = self._by_kind.get(key, (0, 0.0))
            if handled > before:
                took += seconds - spent
                mean = (seconds - spent) / (handled - before)
                self.handling[key] = min(mean, rise * self.handling.get(key, mean))
        # Where something waited all the time, how many were handled tells what concurrency is worth.
        each = elapsed / done if self._backlogged and backlog else took / done / self._concurrency
        # An event loop that others kept busy tells nothing of this actor.
        own = took - (self.asked - self._asked)
        if self._late < _HOGGED * elapsed or own > _HOGGED * elapsed:
            self._windows.append(each)
            if len(self._windows) == _WINDOWS:
                self.service = median(self._windows)
        self._late, self._asked = 0.0, self.asked
        self._began, self._handled, self._by_kind = now, total, kinds
        self._backlogged = backlog > 0
