"""A bounded queue of parcels in front of an actor.

What happens when it is full is the actor's choice: senders wait, or are told off, or the oldest parcel goes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Literal, get_args

from framewire.errors import MessageError, UsageError
from framewire.node.parcel import Parcel

__all__ = ["Mailbox", "Overflow", "Room", "fulfilled", "together"]

Overflow = Literal["wait", "reject", "drop_oldest"]
Room = asyncio.Future[None]


class Mailbox:
    """First in, first out, never more than ``limit`` parcels; senders may wait outside for room.

    ``arrived`` is called when there is something to take, ``refused`` with each parcel that has to go.
    """

    def __init__(
        self,
        limit: int,
        overflow: Overflow,
        *,
        arrived: Callable[[], None],
        refused: Callable[[Parcel], None],
    ) -> None:
        if limit < 1:
            raise UsageError(f"mailbox: {limit} is no room at all; give at least 1")
        if overflow not in get_args(Overflow):
            raise UsageError(f"overflow: {overflow!r}; there are {', '.join(get_args(Overflow))}")
        self.limit = limit
        self.overflow = overflow
        self._arrived = arrived
        self._refused = refused
        self._parcels: deque[Parcel] = deque()
        self._outside: OrderedDict[Room, Parcel] = OrderedDict()

    def __len__(self) -> int:
        return len(self._parcels)

    @property
    def waiting(self) -> int:
        """How many senders wait outside for room."""
        return len(self._outside)

    def put(self, parcel: Parcel) -> bool | Room:
        """Take a parcel in (True), refuse it (False), or give what its sender must wait for.

        A parcel from another node has no sender here that could wait; it waits by itself, but only so many do.
        """
        if len(self._parcels) < self.limit:
            self._parcels.append(parcel)
            self._arrived()
            return True
        if self.overflow == "drop_oldest":
            oldest = self._parcels.popleft()
            self._parcels.append(parcel)
            self._refused(oldest)
            return True
        if self.overflow == "reject" or (parcel.source and len(self._outside) >= self.limit):
            self._refused(parcel)
            return False
        room = asyncio.get_running_loop().create_future()
        self._outside[room] = parcel
        room.add_done_callback(self._gave_up)
        return room

    def put_all(self, parcels: list[Parcel]) -> bool:
        """Take several in, where there is room for all; whoever is to handle them is not called."""
        if len(self._parcels) + len(parcels) > self.limit:
            return False
        self._parcels.extend(parcels)
        return True

    def take(self) -> Parcel | None:
        """The next parcel, or None where there is none."""
        if not self._parcels:
            return None
        parcel = self._parcels.popleft()
        while self._outside:
            room, waiting = self._outside.popitem(last=False)
            if not room.done():  # one that has just given up is not yet out of the queue
                self._parcels.append(waiting)
                room.set_result(None)
                break
        return parcel

    def clear(self, why: MessageError) -> list[Parcel]:
        """Everything that is inside or waits outside, taken out; who waits for room is told that it is in vain."""
        left = [*self._parcels]
        self._parcels.clear()
        outside, self._outside = self._outside, OrderedDict()
        for room, parcel in outside.items():
            if not room.done():
                left.append(parcel)
                room.set_exception(type(why)(why.detail, message_id=parcel.message_id))
                room.exception()  # whoever sent it may be gone
        return left

    def _gave_up(self, room: Room) -> None:
        # Those who were let in are gone already; this is for senders that ran out of time or patience.
        self._outside.pop(room, None)


def together(rooms: list[Room], *, theirs: bool = True) -> Room:
    """Done when all of several rooms are.

    If they are for messages of whoever waits (``theirs``), it fails as the first of them does, and cancelling it
    cancels them all. Otherwise it only keeps the one who waits from going on too fast.
    """
    if theirs and len(rooms) == 1:
        return rooms[0]
    whole: Room = asyncio.get_running_loop().create_future()
    left = len(rooms)

    def settled(_: Room) -> None:
        nonlocal left
        left -= 1
        if left or whole.done():
            return
        error = next((error for room in rooms if not room.cancelled() and (error := room.exception())), None)
        if error is None or not theirs:
            whole.set_result(None)
        else:
            whole.set_exception(error)
            whole.exception()  # whoever sent it may be gone

    def called_off(_: Room) -> None:
        for room in rooms:
            room.cancel()

    for room in rooms:
        room.add_done_callback(settled)
    if theirs:
        whole.add_done_callback(called_off)
    return whole


def fulfilled(done: Room) -> bool:
    """Whether there was room in the end."""
    return not done.cancelled() and done.exception() is None
