"""Callers that are no part of the cluster: what is addressed to one is handed back to the transport."""

from __future__ import annotations

from collections.abc import Callable

from framewire.errors import BadBody, MessageError, Overloaded
from framewire.node.core import Core
from framewire.node.deadletters import Reason
from framewire.node.parcel import Parcel
from framewire.wire import Message

__all__ = ["Guest"]


class Guest:
    """A receiver on this node that stands for somebody elsewhere."""

    def __init__(self, core: Core, identity: bytes, deliver: Callable[[Message], None]) -> None:
        self._core = core
        self._identity = identity
        self._deliver = deliver

    def accept(self, parcel: Parcel, *, at_once: bool = True) -> None:  # noqa: ARG002 - nothing waits here
        """Pass an answer on."""
        try:
            self._deliver(parcel.to_message(now := self._core.now()))
        except MessageError as problem:
            reason = _REASONS.get(type(problem), Reason.UNREACHABLE)
            self._core.dead_letters.add(reason, problem.detail, parcel)
        else:
            if self._core.tap is not None:
                self._core.tap.delivered(self._identity, parcel, now)

    def accept_all(self, parcels: list[Parcel]) -> None:
        """Pass several on."""
        for parcel in parcels:
            self.accept(parcel)


_REASONS = {BadBody: Reason.BAD_BODY, Overloaded: Reason.OVERLOADED}
