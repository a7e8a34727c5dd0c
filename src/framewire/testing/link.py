"""One direction between two nodes: messages in order, what the nodes know of each other, and what goes wrong."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from framewire.node.clock import Clock, Timer
from framewire.node.mailbox import Room
from framewire.node.transport import Port, Registration
from framewire.routing import Route
from framewire.testing.faults import Dice, Faults, corrupted
from framewire.testing.journal import Fate, Journal
from framewire.testing.pipe import Pipe
from framewire.wire import MessageId

__all__ = ["Interceptor", "Link", "Medium"]

Interceptor = Callable[[bytes, bytes, list[bytes]], "list[bytes] | None"]
"""Sees sender, receiver and frames of every message; returns the frames to send on, or None for nothing."""


@dataclass(slots=True)
class Medium:
    """What all links of a network share."""

    clock: Clock
    journal: Journal
    limit: int
    """Messages that a link holds before senders must wait."""
    ports: dict[bytes, Port] = field(default_factory=dict)
    """The nodes that are connected."""
    interceptors: list[Interceptor] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    """What nodes raised when something was handed to them; a node should never raise there."""


@dataclass(frozen=True, slots=True)
class _Letter:
    """A message under way."""

    number: int
    frames: list[bytes]


_News = Callable[[Port], object]
"""What a node tells another about itself."""


class Link:
    """The way from one node to another.

    Messages and news share one pipe, so a node that says goodbye is heard after its last message.
    """

    def __init__(self, medium: Medium, sender: bytes, receiver: bytes, faults: Faults) -> None:
        self.sender = sender
        self.receiver = receiver
        self.cut = False
        self.told: dict[Route, frozenset[MessageId]] = {}
        """What the receiver knows of the sender."""
        self._medium = medium
        self._dice = Dice(faults, sender, receiver)
        self._pipe: Pipe[_Letter | _News] = Pipe(medium.clock, self._arrive)
        self._letters = 0
        self._outside: OrderedDict[Room, list[bytes]] = OrderedDict()
        self._sent = 0
        self._notice: Timer | None = None

    def disturb(self, faults: Faults) -> None:
        """Let other faults work from now on."""
        self._dice = Dice(faults, self.sender, self.receiver)

    @property
    def under_way(self) -> int:
        """How many messages and news have not arrived yet."""
        return len(self._pipe) + len(self._outside)

    @property
    def due(self) -> float | None:
        """When the next of them arrives, on the clock."""
        return self._pipe.due

    @property
    def missed(self) -> bool:
        """Whether the receiver will notice soon that the sender cannot be heard."""
        return self._notice is not None

    # --- messages

    def send(self, frames: Sequence[bytes]) -> Room | None:
        """Take a message; what is returned is done when there is room for it."""
        copied = list(map(bytes, frames))
        if self.cut:
            self._lost(copied, Fate.CUT_OFF)
        elif self.receiver not in self._medium.ports:
            self._lost(copied, Fate.LOST)
        elif self._outside or self._letters >= self._medium.limit:
            room: Room = asyncio.get_running_loop().create_future()
            self._outside[room] = copied
            room.add_done_callback(self._gave_up)
            return room
        else:
            self._enter(copied)
        return None

    def _enter(self, frames: list[bytes]) -> None:
        self._sent = number = self._sent + 1
        throw = self._dice.throw()
        passed = self._intercepted(number, frames)
        if passed is None:
            return
        if throw.drop:
            self._record(number, passed, Fate.DROPPED)
            return
        overtaking = self._overtaking(throw.place) if throw.overtake else 0
        arriving, flipped = corrupted(passed, throw.bit) if throw.corrupt else (passed, "")
        done = {
            Fate.CORRUPTED: flipped,
            Fate.DELAYED: f"by {throw.delay:.3f} s" if throw.delay else "",
            Fate.REORDERED: f"ahead of {overtaking}" if overtaking else "",
            Fate.DUPLICATED: "to arrive twice" if throw.duplicate else "",
        }
        for fate, detail in done.items():
            if detail:
                self._record(number, passed, fate, detail)
        if not any(done.values()):
            self._record(number, passed, Fate.PASSED)
        for copy in range(1 + throw.duplicate):
            self._letters += 1
            self._pipe.put(_Letter(number, list(arriving)), throw.delay, overtaking=0 if copy else overtaking)

    def _intercepted(self, number: int, frames: list[bytes]) -> list[bytes] | None:
        passed: list[bytes] | None = frames
        for interceptor in self._medium.interceptors:
            if passed is not None:
                passed = interceptor(self.sender, self.receiver, list(passed))
        if passed != frames:
            self._record(number, frames, Fate.ALTERED, "" if passed is not None else "and taken away")
        return passed

    def _overtaking(self, place: float) -> int:
        """How many messages to overtake. Nothing overtakes news: a goodbye must stay the last word."""
        ahead = self._pipe.last(lambda item: isinstance(item, _Letter))
        return min(ahead, 1 + int(place * ahead))

    def _let_in(self) -> None:
        while self._outside and self._letters < self._medium.limit:
            room, frames = self._outside.popitem(last=False)
            if not room.done():
                room.set_result(None)
                self._enter(frames)

    def _gave_up(self, room: Room) -> None:
        # Those that were let in are gone already; this is for senders that ran out of time or patience.
        self._outside.pop(room, None)

    # --- news

    def announce(self, registrations: Iterable[Registration]) -> None:
        """Tell the receiver what the sender handles."""
        new = _as_dict(registrations)

        def register(port: Port) -> None:
            for route, messages in new.items():
                self.told[route] = self.told.get(route, frozenset()) | messages
            port.peer_registered(self.sender, _as_list(new))

        self.tell(register)

    def withdraw(self, registrations: Iterable[Registration], grace: float | None = None) -> None:
        """Tell the receiver what the sender no longer handles; no messages means the whole receiver is gone."""
        gone = _as_dict(registrations)

        def unregister(port: Port) -> None:
            for route, messages in gone.items():
                left = self.told.pop(route, frozenset()) - messages
                if left and messages:
                    self.told[route] = left
            port.peer_unregistered(self.sender, _as_list(gone), grace)

        self.tell(unregister)

    def say_goodbye(self) -> None:
        """Tell the receiver that the sender leaves."""
        self.tell(self._lose)

    def tell(self, news: _News) -> None:
        """Tell the receiver something about the sender, in its turn."""
        if not self.cut:
            self._pipe.put(news)

    def _lose(self, port: Port) -> None:
        self.told.clear()
        port.peer_lost(self.sender)

    # --- partitions and deaths

    def sever(self, fate: Fate, noticed_after: float) -> None:
        """Lose everything that is under way, and let the receiver miss the sender after so many seconds."""
        self.cut = True
        self.clear(fate)
        self._call_off_notice()
        if noticed_after <= 0:
            self._notice = asyncio.get_running_loop().call_soon(self.notice)
        elif noticed_after != math.inf:
            self._notice = self._medium.clock.call_later(noticed_after, self.notice)

    def notice(self) -> None:
        """The receiver has missed the sender for long enough."""
        self._call_off_notice()
        self._hand_over(self._lose)

    def restore(self, registrations: Sequence[Registration] | None) -> None:
        """Connect again, and tell the receiver what has changed meanwhile; None where the sender has left."""
        self.cut = False
        self._call_off_notice()
        if registrations is None:
            if self.told:
                self.say_goodbye()
            return
        current = _as_dict(registrations)
        vanished = {route: frozenset[MessageId]() for route in self.told if route not in current}
        fewer = {route: self.told[route] - current[route] for route in self.told if route in current}
        stale = {**vanished, **{route: gone for route, gone in fewer.items() if gone}}
        if stale:
            self.withdraw(_as_list(stale))
        self.announce(registrations)

    def forget(self) -> None:
        """The receiver is gone, with all that it knew."""
        self.clear(Fate.LOST)
        self._call_off_notice()
        self.told.clear()

    def clear(self, fate: Fate) -> None:
        """Lose everything that is under way."""
        outside, self._outside = self._outside, OrderedDict()
        for item in self._pipe.clear():
            if isinstance(item, _Letter):
                self._record(item.number, item.frames, fate)
        self._letters = 0
        for room, frames in outside.items():
            if not room.done():
                room.set_result(None)
                self._lost(frames, fate)

    def _call_off_notice(self) -> None:
        if self._notice is not None:
            self._notice.cancel()
            self._notice = None

    # --- arriving

    def _arrive(self, item: _Letter | _News) -> None:
        if not isinstance(item, _Letter):
            self._hand_over(item)
            return
        self._letters -= 1
        self._let_in()
        if self.receiver in self._medium.ports:
            self._hand_over(lambda port: port.receive(self.sender, item.frames))
        else:
            self._record(item.number, item.frames, Fate.LOST)

    def _hand_over(self, news: _News) -> None:
        port = self._medium.ports.get(self.receiver)
        if port is None:
            return
        try:
            news(port)
        except Exception as problem:  # noqa: BLE001 - kept for the test to see, and the network goes on
            self._medium.failures.append(problem)

    def _lost(self, frames: list[bytes], fate: Fate) -> None:
        self._sent += 1
        self._record(self._sent, frames, fate)

    def _record(self, number: int, frames: list[bytes], fate: Fate, detail: str = "") -> None:
        at = self._medium.clock.time()
        self._medium.journal.add(number, at, self.sender, self.receiver, frames, fate, detail)


def _as_dict(registrations: Iterable[Registration]) -> dict[Route, frozenset[MessageId]]:
    return {route: frozenset(messages) for route, messages in registrations}


def _as_list(routes: dict[Route, frozenset[MessageId]]) -> list[Registration]:
    return [(route, tuple(messages)) for route, messages in routes.items()]
