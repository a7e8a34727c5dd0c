"""The steps of a message that asked to be traced, as log records and to hooks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from framewire.wire import MessageId

__all__ = ["Trace", "TraceStep"]

log = logging.getLogger("framewire.trace")


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One thing that happened to a traced message.

    ``step`` is "received" (from a hub or another node), "routed", "handled", "replied", or "shortened" where
    routing entries were dropped.
    """

    step: str
    at: float
    node: bytes
    message_id: MessageId
    correlation_id: bytes
    detail: str = ""


class Trace:
    """Where the steps of one node go."""

    def __init__(self, node: bytes, now: Callable[[], float]) -> None:
        self._node = node
        self._now = now
        self._hooks: list[Callable[[TraceStep], object]] = []

    def listen(self, hook: Callable[[TraceStep], object]) -> None:
        """Call a function with every step from now on."""
        self._hooks.append(hook)

    def step(self, step: str, message_id: MessageId, correlation_id: bytes, detail: str = "") -> None:
        """Record one step."""
        taken = TraceStep(step, self._now(), self._node, message_id, correlation_id, detail)
        log.info("%s %s %s", step, message_id, detail, extra={"framewire": taken})
        for hook in self._hooks:
            try:
                hook(taken)
            except Exception:
                log.exception("a trace hook failed")
