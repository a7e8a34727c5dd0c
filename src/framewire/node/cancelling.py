"""Callers that give up: what waits for their answers is dropped, and what works on them is cancelled, on all nodes.

The nodes are told by a message of our own, which kino nodes do not handle and so are not sent. A flow is named by
who asked, the callback key and the correlation id: nobody who has not seen its messages can cancel it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from framewire.node.deadletters import Reason
from framewire.node.parcel import Parcel
from framewire.node.payloads import message, type_of
from framewire.node.worker import CutShort
from framewire.wire import Distribution

if TYPE_CHECKING:
    from framewire.node.core import Core

__all__ = ["MAX_CANCELLED", "Cancel", "Cancellations", "Token"]

Token = tuple[bytes, int, bytes]
"""Who asked, the callback key and the correlation id."""

_REMEMBERED = 10_000
"""Cancelled asks that are remembered, for messages of theirs that are still under way."""
MAX_CANCELLED = 500
"""Asks that are named in one message."""
_MAX_SEARCHED = 10_000
"""Messages of a mailbox that are looked through for cancelled ones."""
_TOLD_FOR_S = 5.0
"""Seconds after which the message is worth nothing."""


@message("FRAMEWIRE.CANCEL")
class Cancel(msgspec.Struct):
    """Asks whose callers have given up: who asked, the callback key and the correlation id of each."""

    asks: list[Token]


class Cancellations:
    """The asks of all nodes that were given up, as far as one node knows."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._new: list[Token] = []
        self.known: OrderedDict[Token, None] = OrderedDict()
        """What was cancelled lately."""
        self.drop_held: Callable[[Callable[[Parcel], bool]], list[Parcel]] = lambda _: []
        """Takes messages out of those that are held for a route; the router's, once there is one."""

    def add(self, token: Token) -> None:
        """Cancel an ask of this node; others are told when the event loop comes round."""
        if not self._new:
            asyncio.get_running_loop().call_soon(self._tell)
        self._new.append(token)

    def _tell(self) -> None:
        tokens, self._new = self._new, []
        self.apply(tokens)
        core = self._core
        if not core.has_peers():
            return
        for first in range(0, len(tokens), MAX_CANCELLED):
            core.send(
                Parcel(
                    type_of(Cancel).message_id,
                    Cancel(tokens[first : first + MAX_CANCELLED]),
                    deadline=core.now() + _TOLD_FOR_S,
                    distribution=Distribution.BROADCAST,
                )
            )

    def apply(self, tokens: Iterable[Token]) -> None:
        """Drop what waits for these asks on this node, and cancel what works on them."""
        core, cancelled = self._core, set(tokens)
        self.known.update(dict.fromkeys(cancelled))
        while len(self.known) > _REMEMBERED:
            self.known.popitem(last=False)

        def is_cancelled(parcel: Parcel) -> bool:
            return _token(parcel) in cancelled

        gone = self.drop_held(is_cancelled)
        for cell in tuple(core.cells.values()):
            if len(cell.mailbox) <= _MAX_SEARCHED:  # in a longer one they are found when their turn comes
                gone += cell.mailbox.remove(is_cancelled)
            for worker in cell.active:
                if worker.parcel is not None and is_cancelled(worker.parcel):
                    cell.cut_short(worker, CutShort.CANCELLED)
        for parcel in gone:
            self.drop(parcel)

    def drops(self, parcel: Parcel) -> bool:
        """Whether a message came of an ask that was cancelled meanwhile; then it is dropped."""
        if _token(parcel) not in self.known:
            return False
        self.drop(parcel)
        return True

    def drop(self, parcel: Parcel) -> None:
        """Record a message that nobody waits for any more."""
        self._core.dead_letters.add(Reason.CANCELLED, CutShort.CANCELLED.value, parcel)


def _token(parcel: Parcel) -> Token | None:
    """Name the ask that a message works for; None for one that nobody waits for, and for answers."""
    callback = parcel.callback
    if callback is None or parcel.receiver == callback.receiver:
        return None
    return (callback.receiver, callback.key, parcel.correlation_id)
