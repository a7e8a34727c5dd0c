"""The bounded queue in front of an actor, and the order in which it is emptied.

While an actor keeps up, this is a plain queue. Only what begins a flow may wait or be refused: a message that a
handler sent within a flow (``caller`` is None) always gets a place, up to a second and hard bound, so that no cycle
of actors can wait for itself. As soon as there is a backlog, three rules hold for it:

- What cannot be handled in the time it has left is refused when it comes, and not when it is too late.
- Flows that are under way go before flows that begin; one in eight turns is kept for the latter.
- Callers take turns, so that a greedy one waits for itself and not for the others.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sized
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple, get_args

from framewire.errors import MessageError, UsageError
from framewire.node.parcel import Parcel
from framewire.wire import MessageId

__all__ = ["Mailbox", "Overflow", "Refusal", "Room", "fulfilled", "together"]

Overflow = Literal["wait", "reject", "drop_oldest"]
Room = asyncio.Future[None]

_UNORDERED_S = 0.05
"""Seconds of work that stay a plain queue in front of the backlog: ordering them would gain nothing."""
_MARGIN = 1.5
"""How much longer than estimated a flow that begins must be able to wait: estimates are of the recent past."""
_MARGIN_UNDER_WAY = 1.25
"""The same for a flow under way: what was let in and turns out to be hopeless has waited for nothing."""
_UNDER_WAY_IN_A_ROW = 7
"""Turns of flows under way before one that begins has its turn: an actor that always sends to itself must not
starve its callers."""
_BROUGHT_FORWARD = 16
"""Messages of the backlog that are put in order before they are taken."""
_MAX_PASSED_OVER = 8
"""Callers without room that are passed over when somebody is to be let in."""
_RETRY_AFTER_S = 0.1
"""What is told as ``retry_after`` while nothing is known of how fast the actor works."""


class Refusal(NamedTuple):
    """Why a message was not taken, and after how many seconds another try makes sense."""

    detail: str
    retry_after: float


class _Caller:
    """What one caller has in a backlog: messages inside, and outside those whose senders wait for room."""

    __slots__ = ("inside", "name", "outside")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.inside: deque[Parcel] = deque()
        self.outside: OrderedDict[Room, tuple[Parcel, int]] = OrderedDict()


class Mailbox:
    """Messages for one actor: ``limit`` that begin flows, and ``most`` in all.

    Beyond ``limit`` a caller is let in that has less than its share of it: there are never more than twice as many,
    and the few that come next.

    ``arrived`` is called when there is something to take, ``refused`` with each message that has to go after all.
    """

    def __init__(
        self,
        limit: int,
        overflow: Overflow,
        *,
        most: int = 100_000,
        most_bytes: int = 256 * 1024 * 1024,
        now: Callable[[], float],
        idle: Sized = (),
        arrived: Callable[[], None],
        refused: Callable[[Parcel, Refusal], MessageError | None],
        filled: Callable[[bool], None] = lambda _: None,
        pressed: Callable[[], None] = lambda: None,
    ) -> None:
        """``idle`` are the workers that have nothing to do.

        ``filled`` is called with True when flows under way alone have reached the limit, and with False when they
        are below it, ``pressed`` when a message of such a flow is put beyond it. What begins does not count there:
        it may wait for others, and nobody may wait for what waits.
        """
        if limit < 1:
            raise UsageError(f"mailbox: {limit} is no room at all; give at least 1")
        if overflow not in get_args(Overflow):
            raise UsageError(f"overflow: {overflow!r}; there are {', '.join(get_args(Overflow))}")
        self.limit = limit
        self.overflow = overflow
        self.most = max(most, limit)
        self.most_bytes = most_bytes
        self._now = now
        self._idle = idle
        self._arrived = arrived
        self._refused = refused
        self._filled = filled
        self._pressed = pressed
        self.under_way: deque[Parcel] = deque()
        self.ready: deque[Parcel] = deque()
        """What begins flows and comes next."""
        self._sole: bytes | None = None
        """The caller of everything in ``ready``; None where there may be several, so that they must take turns."""
        self._gate = limit
        """Messages in each of these below which nothing need be decided; 0 while there is a backlog behind them."""
        self._front = limit
        """Messages that begin flows and are kept in front of the backlog."""
        self._sizes: dict[int, int] = {}
        """Bytes of the messages of flows under way that are beyond the limit."""
        self._callers: dict[bytes, _Caller] = {}
        self._turns: deque[_Caller] = deque()
        """Callers with something inside, the next one first."""
        self._doors: deque[_Caller] = deque()
        """Callers with something outside, the next one first."""
        self.inside = 0
        """Messages in the backlog that begin flows."""
        self._outside = 0
        self._bytes = 0
        self._in_a_row = 0
        self._full = False
        self.closed_to_new = False
        """Whether flows that begin stay where they are: an actor that their flows lead to has no room."""
        self.delay = 0.0
        """Seconds that a flow waits at the actors that it leads to, where those are full."""
        self.service = 0.0
        """Seconds that the actor takes for each message that is ahead; 0 while that is not known."""
        self.handling: Mapping[MessageId, float] = {}
        """Seconds that a message of a kind takes itself, where it is quick."""

    def __len__(self) -> int:
        return len(self.ready) + len(self.under_way) + self.inside

    def __iter__(self) -> Iterator[Parcel]:
        """Everything inside and outside, in no order that means anything."""
        yield from self.under_way
        yield from self.ready
        for caller in self._callers.values():
            yield from caller.inside
            for room, (parcel, _) in caller.outside.items():
                if not room.done():
                    yield parcel

    @property
    def waiting(self) -> int:
        """How many messages wait outside for room."""
        if not self._outside:
            return 0
        return sum(not room.done() for caller in self._callers.values() for room in caller.outside)

    @property
    def takeable(self) -> int:
        """How many messages a worker could take now."""
        return len(self.under_way) if self.closed_to_new else len(self)

    # --- taking messages in

    def put(self, parcel: Parcel) -> Room | Refusal | None:
        """Take a message in (None), refuse it, or give what its sender must wait for."""
        caller = parcel.caller
        if caller is None:
            queue = self.under_way
            if not parcel.may_wait:
                return self._put_behind(parcel)
        else:
            queue = self.ready
            if caller is not self._sole and caller != self._sole:
                self._sole = None if queue else caller
        if len(queue) < self._gate:
            queue.append(parcel)
            self._arrived()
            return None
        return self._put_behind(parcel)

    def put_all(self, parcels: list[Parcel]) -> bool:
        """Take several in, where nothing need be decided about any; whoever is to handle them is not called."""
        if len(self.ready) + len(self.under_way) + len(parcels) > self._gate:
            return False
        for parcel in parcels:
            if parcel.caller is None:
                self.under_way.append(parcel)
                continue
            if parcel.caller != self._sole:
                self._sole = None if self.ready else parcel.caller
            self.ready.append(parcel)
        return True

    def _put_behind(self, parcel: Parcel) -> Room | Refusal | None:
        caller = parcel.caller
        if self.service and parcel.deadline != math.inf and not self._idle:
            refusal = self._too_late(parcel, caller)
            if refusal is not None:
                return refusal
        if caller is None:
            if not parcel.may_wait and (self.closed_to_new or len(self) >= self.limit):
                return self._refusal(f"{self._is_full}, and a flow that a handler begins cannot wait")
            if self._full:
                size = parcel.size
                if len(self) >= self.most or self._bytes + size > self.most_bytes:
                    return self._refusal(f"holds {len(self)} messages, and {self._bytes} bytes beyond its limit")
                self._sizes[id(parcel)] = size
                self._bytes += size
                self._pressed()
            self.under_way.append(parcel)
            if not self._full and len(self.under_way) >= self.limit:
                self._full = True
                self._filled(True)
        else:
            if not self._callers:
                self._reopen()  # what was behind the front has been taken since
                if len(self.ready) < self._gate:
                    self.ready.append(parcel)
                    self._arrived()
                    return None
            if caller != self._sole and not self.inside:
                while self.ready:
                    self._sort_in(self.ready.pop())  # callers take turns from now on, and have their shares
            mine = self._callers.get(caller) or _Caller(caller)
            if self.closed_to_new or mine.outside or self._has_no_room_for(mine):
                return self._overflowed(parcel, mine)
            if not mine.inside:
                self._turns.append(mine)
                self._callers[caller] = mine
            mine.inside.append(parcel)
            self.inside += 1
        self._gate = 0
        self._arrived()
        return None

    def _has_no_room_for(self, mine: _Caller) -> bool:
        if len(self.ready) + len(self.under_way) + self.inside < self.limit:
            return False
        # A caller that has less than its share is let in: others have taken its room before it came.
        callers = len(self._callers) + (mine.name not in self._callers)
        return len(mine.inside) >= (self.limit // callers if callers > 1 else 0)

    def _let_in(self, mine: _Caller, parcel: Parcel) -> None:
        if not mine.inside:
            self._turns.append(mine)
            self._callers[mine.name] = mine
        mine.inside.append(parcel)
        self.inside += 1

    def _drop_idle(self, mine: _Caller) -> None:
        if not (mine.inside or mine.outside):
            self._callers.pop(mine.name, None)

    def _overflowed(self, parcel: Parcel, mine: _Caller) -> Room | Refusal | None:
        if self.overflow == "drop_oldest" and not self.closed_to_new:
            oldest = self._pop_oldest()
            if oldest is None:
                return self._refusal("is full of flows under way")
            self._let_in(mine, parcel)
            self._gate = 0
            self._refused(oldest, self._refusal(self._is_full))
            return None
        if self.overflow == "reject":
            return self._refusal(self._is_full)
        if not parcel.may_wait:
            return self._refusal(f"{self._is_full}, and a flow that a handler begins cannot wait")
        size = parcel.size if parcel.source else 0  # what a sender on this node has, it has anyway
        if self._outside >= self.most or self._bytes + size > self.most_bytes:
            return self._refusal(f"{self._is_full}, and {self._outside} more messages wait for room")
        room = asyncio.get_running_loop().create_future()
        if not mine.outside:
            self._doors.append(mine)
            self._callers[mine.name] = mine
        mine.outside[room] = (parcel, size)
        self._outside += 1
        self._bytes += size
        self._gate = 0
        room.add_done_callback(partial(self._gave_up, mine))
        return room

    def _pop_oldest(self) -> Parcel | None:
        """Take out the oldest message that began a flow, of the caller that has the most."""
        counts = Counter(parcel.caller for parcel in self.ready if parcel.caller is not None)
        counts.update({name: len(mine.inside) for name, mine in self._callers.items() if mine.inside})
        if not counts:
            return None
        [(greedy, _)] = counts.most_common(1)
        for place, parcel in enumerate(self.ready):
            if parcel.caller == greedy:
                del self.ready[place]
                return parcel
        mine = self._callers[greedy]
        oldest = mine.inside[0]
        self._keep(mine, deque(islice(mine.inside, 1, None)))
        return oldest

    def _too_late(self, parcel: Parcel, caller: bytes | None) -> Refusal | None:
        """Refuse a message that would not be handled in the time that it has left."""
        ahead = len(self.under_way)
        margin = _MARGIN_UNDER_WAY
        if caller is not None:
            margin = _MARGIN
            mine = self._callers.get(caller)
            own = 0 if mine is None else len(mine.inside) + len(mine.outside)
            callers = len(self._callers) + (mine is None)
            ahead += len(self.ready) + min(self.inside + self._outside, (own + 1) * callers)
        return self._misses(parcel, ahead, margin, self._now())

    def _misses(self, parcel: Parcel, ahead: int, margin: float, now: float) -> Refusal | None:
        left = parcel.deadline - now
        wait = (ahead + 1) * self.service + self.delay  # with what is being handled now
        missing = wait * margin + self.handling.get(parcel.message_id, 0.0) - left
        if missing <= 0:
            return None
        return Refusal(
            f"has {ahead} messages that come first: about {wait:.2f} s, and {max(left, 0.0):.2f} s are left",
            max(missing, self.service),
        )

    @property
    def _is_full(self) -> str:
        return f"is full ({self.limit}, {self.overflow})"

    def _refusal(self, detail: str) -> Refusal:
        wait = len(self) * self.service / 2
        return Refusal(detail, wait or _RETRY_AFTER_S)

    # --- giving them out

    def take(self) -> Parcel | None:
        """The next message, or None where there is none."""
        ready = self.ready
        if not self._gate:
            if not ready or self.under_way or self.closed_to_new or not self.inside:
                return self._choose()
            self._in_a_row = 0
            return ready.popleft()  # in order already; who waits outside is let in when these are taken
        if not self.under_way:
            return ready.popleft() if ready else None
        if ready:
            self._in_a_row += 1
            if self._in_a_row > _UNDER_WAY_IN_A_ROW:
                self._in_a_row = 0
                return ready.popleft()
        return self.under_way.popleft()

    def _choose(self) -> Parcel | None:
        parcel = self._next()
        self._empty_enough()
        if self._doors:
            self._admit()
        if not self.ready:
            self._bring_forward()
        self._reopen()
        return parcel

    def _empty_enough(self) -> None:
        if self._full and len(self.under_way) <= self.limit * 3 // 4:
            self._full = False
            self._filled(False)

    def _next(self) -> Parcel | None:
        begins = (self.ready or self.inside) and not self.closed_to_new
        if self.under_way and not (begins and self._in_a_row >= _UNDER_WAY_IN_A_ROW):
            self._in_a_row += 1
            parcel = self.under_way.popleft()
            self._bytes -= self._sizes.pop(id(parcel), 0)
            return parcel
        self._in_a_row = 0
        if not begins:
            return None
        return self.ready.popleft() if self.ready else self._next_of_callers()

    def _next_of_callers(self) -> Parcel:
        mine = self._turns.popleft()
        parcel = mine.inside.popleft()
        self.inside -= 1
        if mine.inside:
            self._turns.append(mine)
        else:
            self._drop_idle(mine)
        return parcel

    def _bring_forward(self) -> None:
        front = min(self._front, _BROUGHT_FORWARD)
        if self.inside:
            self._sole = None
        while self.inside and len(self.ready) < front:
            if len(self._turns) > 1:
                self.ready.append(self._next_of_callers())
                continue
            mine = self._turns[0]
            alone = mine.inside
            for _ in range(min(front - len(self.ready), len(alone))):
                self.ready.append(alone.popleft())
            self.inside = len(alone)
            if not alone:
                self._turns.clear()
                self._drop_idle(mine)

    def _admit(self) -> None:
        """Let in who waits outside, in turns, while there is room."""
        passed_over = 0
        while passed_over < min(len(self._doors), _MAX_PASSED_OVER) and not self.closed_to_new:
            mine = self._doors.popleft()
            if self._has_no_room_for(mine):
                self._doors.append(mine)
                passed_over += 1
                continue
            room, (parcel, size) = mine.outside.popitem(last=False)
            self._outside -= 1
            self._bytes -= size
            if mine.outside:
                self._doors.append(mine)
            if room.done():  # one that has just given up is not yet out of the queue
                self._drop_idle(mine)
                continue
            if self.ready and not self.inside and mine.name == self._sole:
                self.ready.append(parcel)
                self._drop_idle(mine)
            else:
                self._let_in(mine, parcel)
            room.set_result(None)

    def _reopen(self) -> None:
        if not (self.inside or self._outside or self._sizes or self.closed_to_new or self._full):
            self._gate = self._front

    # --- keeping up

    def use(self, service: float, handling: Mapping[MessageId, float]) -> None:
        """Estimate with these seconds from now on, and refuse what will not be handled in time after all."""
        self.service, self.handling = service, handling
        self._front = min(self.limit, int(_UNORDERED_S / service)) if service else self.limit
        while len(self.ready) > self._front:
            self._sort_in(self.ready.pop())
        self._bring_forward()
        self._gate = 0
        self._reopen()
        if service and (self.under_way or self.inside or self._outside):
            self._shed()

    def close_to_new(self, closed: bool, delay: float = 0.0) -> None:
        """Keep what begins a flow where it is, or let it go on; it waits elsewhere for so many seconds."""
        self.delay = delay
        if closed:
            self.closed_to_new = True
            self._gate = 0
        elif self.closed_to_new:
            self.closed_to_new = False
            self._admit()
            self._reopen()

    def _sort_in(self, parcel: Parcel) -> None:
        """Put the last message of the plain queue where it belongs in the backlog: before what is there."""
        name = parcel.caller or b""
        mine = self._callers.get(name) or _Caller(name)
        self._let_in(mine, parcel)
        mine.inside.rotate(1)

    def _shed(self) -> None:
        now, gone = self._now(), []
        rooms: dict[int, Room] = {}
        kept: deque[Parcel] = deque()
        for parcel in self.under_way:
            if (refusal := self._misses(parcel, len(kept), 1.0, now)) is not None:
                gone.append((parcel, refusal))
                self._bytes -= self._sizes.pop(id(parcel), 0)
            else:
                kept.append(parcel)
        self.under_way = kept
        ahead = len(kept) + len(self.ready)
        callers, total = len(self._callers), self.inside + self._outside
        for mine in tuple(self._callers.values()):
            staying: deque[Parcel] = deque()
            for parcel in mine.inside:
                behind = ahead + min(total, len(staying) * callers)
                if (refusal := self._misses(parcel, behind, 1.0, now)) is not None:
                    gone.append((parcel, refusal))
                else:
                    staying.append(parcel)
            self._keep(mine, staying)
            own = len(staying)
            for room, (parcel, _) in tuple(mine.outside.items()):
                behind = ahead + min(total, own * callers)
                if not room.done() and (refusal := self._misses(parcel, behind, 1.0, now)) is not None:
                    gone.append((parcel, refusal))
                    rooms[id(parcel)] = room
                else:
                    own += 1
        for parcel, refusal in gone:
            error, waiting = self._refused(parcel, refusal), rooms.get(id(parcel))
            if waiting is not None and not waiting.done():
                waiting.set_exception(error or MessageError(refusal.detail))
                waiting.exception()  # whoever sent it may be gone
        self._empty_enough()
        self._admit()
        self._reopen()

    # --- taking messages out

    def remove(self, unwanted: Callable[[Parcel], bool]) -> list[Parcel]:
        """Take out all messages of a kind; who waits for room for one is let go."""
        gone = [parcel for parcel in self if unwanted(parcel)]
        if not gone:
            return []
        known = set(map(id, gone))
        self.ready = deque(parcel for parcel in self.ready if id(parcel) not in known)
        self._bytes -= sum(self._sizes.pop(id(parcel), 0) for parcel in gone)
        self.under_way = deque(parcel for parcel in self.under_way if id(parcel) not in known)
        for mine in tuple(self._callers.values()):
            self._keep(mine, deque(parcel for parcel in mine.inside if id(parcel) not in known))
            for room, (parcel, _) in tuple(mine.outside.items()):
                if id(parcel) in known:
                    room.cancel()
        self._empty_enough()
        self._admit()
        self._reopen()
        return gone

    def discard(self, parcel: Parcel) -> None:
        """Take out a message of a flow under way that was put in lately."""
        for place in range(len(self.under_way) - 1, -1, -1):
            if self.under_way[place] is parcel:
                del self.under_way[place]
                self._bytes -= self._sizes.pop(id(parcel), 0)
                return

    def _keep(self, mine: _Caller, staying: deque[Parcel]) -> None:
        """Let a caller have only these messages inside."""
        self.inside -= len(mine.inside) - len(staying)
        if mine.inside and not staying:
            self._turns.remove(mine)
        mine.inside = staying
        self._drop_idle(mine)

    def clear(self, why: MessageError) -> list[Parcel]:
        """Everything that is inside or waits outside, taken out; who waits for room is told that it is in vain."""
        left = [*self.under_way, *self.ready]
        for mine in self._callers.values():
            left.extend(mine.inside)
        outside = [entry for mine in self._callers.values() for entry in mine.outside.items()]
        for mine in self._callers.values():
            mine.outside.clear()
        for room, (parcel, _) in outside:
            if not room.done():
                left.append(parcel)
                room.set_exception(type(why)(why.detail, message_id=parcel.message_id))
                room.exception()  # whoever sent it may be gone
        self.ready.clear()
        self.under_way.clear()
        self._sizes.clear()
        self._callers.clear()
        self._turns.clear()
        self._doors.clear()
        self.inside = self._outside = self._bytes = 0
        self.closed_to_new = False
        self._empty_enough()
        self._reopen()
        return left

    def _gave_up(self, mine: _Caller, room: Room) -> None:
        # Those who were let in are gone already; this is for senders that ran out of time or patience.
        left = mine.outside.pop(room, None)
        if left is None:
            return
        self._outside -= 1
        self._bytes -= left[1]
        if not mine.outside:
            self._doors.remove(mine)
            self._drop_idle(mine)
        self._reopen()


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
