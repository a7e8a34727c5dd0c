"""The promises of a hub that have not ended yet, and what ends them: an answer, the time, a lost node, the end."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TypeVar, cast

from framewire.errors import (
    BadBody,
    BadSignature,
    Expired,
    MessageError,
    NodeStopped,
    NoRoute,
    RemoteError,
    Unreachable,
)
from framewire.node.clock import DeadlineQueue, DeadlineWheel
from framewire.node.core import Core
from framewire.node.deadletters import Reason
from framewire.node.exceptions import EXCEPTION, ExceptionMessage, error_from
from framewire.node.likeness import Likeness
from framewire.node.parcel import Callback, Parcel
from framewire.node.payloads import type_of
from framewire.node.plans import Plan
from framewire.node.promises import Gathering, Pending
from framewire.routing import Route
from framewire.wire.message import readable
from framewire.wire.moulds import contents

__all__ = ["OpenPromises"]

E = TypeVar("E", bound=MessageError)

_REMEMBERED = 10_000
"""Promises that were given up and whose answers are still known to be late."""


class OpenPromises:
    """What one hub waits for, by callback key."""

    def __init__(self, core: Core, identity: bytes) -> None:
        self.core = self._core = core
        self._identity = identity
        self._pending: dict[int, Pending] = {}
        self._given_up: OrderedDict[int, None] = OrderedDict()
        self._usual = core.settings.timeout
        self._limit = core.settings.promises
        self._queue = DeadlineQueue(core.clock, self._usual, self._usually_waiting, self._expire)
        self._wheel = DeadlineWheel(core.clock, self._expire)
        self.last_key = 0
        """The callback key of the promise that was made last."""
        self.new_future: Callable[[], asyncio.Future[None]] = self._first_future

    def _first_future(self) -> asyncio.Future[None]:
        """Only this one asks for the event loop, which takes a system call; the others are made by it."""
        self.new_future = asyncio.get_running_loop().create_future
        return self.new_future()

    def __iter__(self) -> Iterator[Pending]:
        return iter(tuple(self._pending.values()))

    def __len__(self) -> int:
        return len(self._pending)

    def post(self, waiting: Pending, plan: Plan, limit: float) -> None:
        """Send a message off, and wait for its answer for so many seconds."""
        core, pending, parcel, key = self._core, self._pending, waiting.parcel, waiting.key
        if len(pending) >= self._limit:
            raise core.overloaded(parcel, f"{len(pending)} promises are open already")
        parcel.callback = Callback(self._identity, core.identity, key, plan.points, plan.receipt)
        pending[key] = waiting
        try:
            room = core.send(parcel)
        except BaseException:
            self._forget(waiting)  # what cannot be written never leaves, so nothing would end the promise
            raise
        if not waiting.done:
            # The promise ends in time whether or not there is room; the wait for room ends with the promise.
            if room is not None:
                waiting.room = room
            if limit != self._usual:
                waiting.slot = self._wheel.add(waiting, waiting.started + limit)
            elif not self._queue.watching:
                self._queue.watch(waiting.started)

    def _usually_waiting(self) -> Iterator[tuple[Pending, float]]:
        """Those that wait as long as is usual, and since when."""
        return ((waiting, waiting.started) for waiting in self._pending.values() if waiting.slot is None)

    def accept(self, parcel: Parcel, *, at_once: bool = True) -> None:  # noqa: ARG002 - a hub always does
        """Take a message that is addressed to the hub: an answer."""
        core, callback = self._core, parcel.callback
        waiting = self._pending.get(callback.key) if callback is not None else None
        if waiting is None:
            self._nobody_waits(parcel, callback)
            return
        if parcel.correlation_id != waiting.parcel.correlation_id:
            core.dead_letters.add(Reason.UNKNOWN_REPLY, "the answer to a question of another flow", parcel)
            return
        message_type = waiting.types.get(parcel.message_id)
        failed = message_type is None
        if failed and parcel.message_id != EXCEPTION:
            core.dead_letters.add(Reason.UNKNOWN_REPLY, "not what was asked for", parcel)
            return
        try:
            answer = parcel.read(message_type or type_of(ExceptionMessage))
        except BadBody as problem:
            core.dead_letters.add(Reason.BAD_BODY, problem.detail, parcel)
            ended = waiting.fail(self._completed(problem, waiting, parcel))
        else:
            if core.tap is not None:
                core.tap.delivered(self._identity, parcel, core.now())
            if failed:
                error = self._completed(error_from(cast("ExceptionMessage", answer)), waiting, parcel)
                # A handler of many may fail and the gathering goes on; that nobody handles it is the end.
                ended = waiting.end(error) if isinstance(error, NoRoute) else waiting.fail(error)
            else:
                ended = waiting.reply(answer)
                core.counters.replies += 1
                if not waiting.key % core.samples.every:
                    self._sample(waiting)
        if ended:
            self._forget(waiting)

    def accept_all(self, parcels: list[Parcel]) -> None:
        """Take several answers."""
        for parcel in parcels:
            self.accept(parcel)

    def accept_alike(
        self,
        like: Likeness,
        messages: list[list[bytes]],
        source: bytes,
        otherwise: Callable[[bytes, list[bytes]], None],
    ) -> None:
        """Take several answers of one kind that another node sent; ``otherwise`` has those that are not good.

        Most of them end a promise and are done with, so they do not even become parcels (bench/cluster.py).
        """
        core, pending = self._core, self._pending
        counters, samples, unsigned = core.counters, core.samples, not like.signed
        now, tap, message_id = core.now(), core.tap, like.pattern.message_id
        for frames in messages:
            opened = contents(frames)
            if opened is None or not (unsigned or like.is_genuine(opened, now, source)):
                otherwise(source, frames)
                continue
            if tap is not None:
                tap.received(like.peer or core.sender_of(source, like.pattern.routing), frames)
            body, _, correlation_id, key, _ = opened
            waiting = pending.get(key)
            if (
                waiting is None
                or waiting.parcel.correlation_id != correlation_id
                or (message_type := waiting.types.get(message_id)) is None
            ):
                self.accept(like.made(opened, frames, now, source))
                continue
            try:
                answer = message_type.decode(body)
            except BadBody:
                self.accept(like.made(opened, frames, now, source))
                continue
            if tap is not None:
                tap.handed(self._identity, frames)
            ended = waiting.reply(answer)
            counters.replies += 1
            if not key % samples.every:
                self._sample(waiting)
            if ended:
                del pending[key]
                if waiting.slot is not None or waiting.room is not None:
                    self._forget(waiting)

    def _sample(self, waiting: Pending) -> None:
        core, asked = self._core, waiting.parcel
        if asked.sent_to is not None and asked.sent_to.node:
            core.samples.answered(asked.sent_to.node, asked.message_id, core.now() - waiting.started)

    def moved(self, key: int, route: Route | None) -> None:
        """A message that is waited for was sent elsewhere."""
        if (waiting := self._pending.get(key)) is not None:
            waiting.parcel.sent_to = route

    def node_lost(self, node: bytes) -> None:
        """End what waits for an answer from a node that is gone."""
        for waiting in self:
            route = waiting.parcel.sent_to
            if route is not None and route.node == node and not isinstance(waiting, Gathering):
                gone = Unreachable(f"node {readable(node)} is gone")
                if waiting.end(self._completed(gone, waiting)):
                    self.give_up(waiting)

    def close(self, detail: str) -> None:
        """End whatever is still open."""
        self._queue.close()
        self._wheel.close()
        for waiting in self:
            if waiting.end(self._completed(NodeStopped(detail), waiting)):
                self.give_up(waiting)

    def _expire(self, waiting: Pending) -> None:
        elapsed = self._core.now() - waiting.started
        if waiting.expire(self._completed(Expired(f"no answer in {elapsed:.1f} s"), waiting)):
            self.give_up(waiting)

    def _forget(self, waiting: Pending) -> None:
        self._pending.pop(waiting.key, None)
        if (slot := waiting.slot) is not None:
            self._wheel.discard(waiting, slot)
        if (room := waiting.room) is not None and not room.done():
            room.cancel()

    def give_up(self, waiting: Pending) -> None:
        """Wait no longer: an answer that comes now is late."""
        if waiting.key in self._pending:
            self._forget(waiting)
            self._given_up[waiting.key] = None
            if len(self._given_up) > _REMEMBERED:
                self._given_up.popitem(last=False)

    def cancelled(self, waiting: Pending) -> None:
        """Wait no longer, and let nobody work on an answer."""
        if waiting.key in self._pending:
            self.give_up(waiting)
            self._core.cancellations.add((self._identity, waiting.key, waiting.parcel.correlation_id))

    def fail(self, waiting: Pending, error: MessageError) -> None:
        """End a promise with an error that was found here."""
        if waiting.end(self._completed(error, waiting)):
            route = waiting.parcel.sent_to
            cell = None if route is None or route.node else self._core.cells.get(route.receiver)
            if cell is not None:
                cell.mailbox.discard(waiting.parcel)  # no worker is to take it in this turn
            self.cancelled(waiting)

    async def answered(self) -> None:
        """Wait until no answer of another node is awaited."""
        while elsewhere := [
            waiting for waiting in self if (route := waiting.parcel.sent_to) is not None and route.node
        ]:
            await asyncio.wait([waiting.ended() for waiting in elsewhere])

    def _nobody_waits(self, parcel: Parcel, callback: Callback | None) -> None:
        if callback is None or not 0 < callback.key <= self.last_key:
            self._core.dead_letters.add(Reason.UNKNOWN_REPLY, "nobody asked for this", parcel)
        elif callback.key in self._given_up:
            self._core.dead_letters.add(Reason.LATE_REPLY, "the asker has given up", parcel)
        else:
            self._core.dead_letters.add(Reason.DUPLICATE_REPLY, "the answer is already there", parcel)

    def _completed(self, error: E, waiting: Pending, answer: Parcel | None = None) -> E:
        """An error with all that is known here about the message that it is about."""
        about, error.message_id = error.message_id, waiting.parcel.message_id
        if about is not None and str(about) != str(error.message_id) and not isinstance(error, RemoteError):
            error.detail = f"{about}, which came of it: {error.detail}"
        error.correlation_id = waiting.parcel.correlation_id
        error.target = error.target or waiting.target
        error.node = error.node or self._core.identity
        error.elapsed = self._core.now() - waiting.started
        if isinstance(error, BadSignature) and not error.domain and self._core.keyring is not None:
            error.domain = self._core.keyring.domain_of(waiting.parcel.message_id.identity)
        if answer is not None and (sender := self._core.sender(answer.source, answer.routing)) is not None:
            error.last_hop = sender.uri
        elif (route := waiting.parcel.sent_to) is not None:
            error.last_hop = f"node {readable(route.node)}" if route.node else f"actor {route.receiver.hex()} here"
        else:
            error.last_hop = f"node {readable(self._core.identity)}"
        return error
