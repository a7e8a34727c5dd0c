"""One pair of eyes on the live cluster, for everyone who looks at the dashboard.

A node that only looks joins once and asks every node how it is, again and again. What it found is kept for a few
minutes: rates as short lines, and nodes that are gone with the time when they were last seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

from framewire.config import Configuration
from framewire.dashboard.growth import Growth, Lines
from framewire.dashboard.sendings import Sending, Sendings
from framewire.errors import FramewireError
from framewire.node.reports import ActorStats, HandlerStats, NodeStats
from framewire.operation.observing import Observer, Seen

__all__ = ["Gone", "Handled", "Look", "Watch", "is_theirs"]

_log = logging.getLogger("framewire.dashboard")
EVERY = 2.0
"""Seconds between looks."""
_AGAIN = 3.0
"""Seconds after which a cluster that could not be joined is tried again."""
_MOURNED = 300.0
"""Seconds for which a node that is gone is still shown."""
_PENDING, _LETTERS = 100, 100
_SERVICE = ("KINO.", "FRAMEWIRE.")


@dataclass(frozen=True, slots=True)
class Gone:
    """A node that was there, and when it was last seen."""

    name: str
    uri: str
    last_seen: dt.datetime


@dataclass(frozen=True, slots=True)
class Handled:
    """A handler on a node, and how much it does a second."""

    node: str
    actor: ActorStats
    handler: HandlerStats
    rate: float
    took: float | None
    """Seconds for a message, on the average: since the last look where there were any, else in all."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the cluster found."""

    number: int
    at: dt.datetime | None
    nodes: tuple[Seen, ...] = ()
    gone: tuple[Gone, ...] = ()
    handlers: tuple[Handled, ...] = ()
    sendings: tuple[Sending, ...] = ()
    problem: str = ""
    """Why there is nothing to see, and what to do about it."""

    @property
    def everyone(self) -> tuple[Seen | Gone, ...]:
        """Those who are there, and then those who were."""
        return (*self.nodes, *self.gone)

    @property
    def stats(self) -> list[NodeStats]:
        """What the nodes say that say anything."""
        return [node.stats for node in self.nodes if node.stats is not None]

    def total(self, name: str) -> float:
        """A rate of all nodes together."""
        return sum(stats.rates.get(name, 0.0) for stats in self.stats)


class Watch:
    """Looks at the cluster that a configuration names, in the background; ``look`` is the last that was seen."""

    def __init__(self, config: Configuration, *, every: float = EVERY, wait: float = 5.0) -> None:
        self.look = Look(0, None)
        self._config, self._every, self._wait = config, every, wait
        self._lines = Lines()
        self._growth = Growth()
        self._sendings = Sendings()
        self._seen: dict[str, tuple[str, float]] = {}
        self._task: asyncio.Task[None] | None = None

    def line(self, *of: str) -> tuple[float, ...]:
        """A value of the last minutes: of a node and a rate, of a handler, or of all nodes."""
        return self._lines.of(*of)

    def sent_line(self, sender: str, receiver: str) -> tuple[float, ...]:
        """What one node sent to another in a second, over the last minutes."""
        return self._sendings.line(sender, receiver)

    def start(self) -> None:
        """Look from now on."""
        self._task = asyncio.create_task(self._run(), name="framewire dashboard")

    async def stop(self) -> None:
        """Look no more, and leave the cluster."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            try:
                async with Observer(self._config, wait=self._wait, timeout=self._every) as observer:
                    await self._watch(observer)
            except FramewireError as problem:
                self._publish([], str(problem))
            except Exception as problem:  # noqa: BLE001 - nobody waits for this task, and nobody else would tell
                _log.exception("looking at the cluster failed")
                self._publish([], f"looking at it failed, and is tried again: {type(problem).__name__}: {problem}")
            await asyncio.sleep(_AGAIN)

    async def _watch(self, observer: Observer) -> None:
        while True:
            began = time.monotonic()
            try:
                found = await observer.everyone() or await observer.find()
                self._publish(await observer.look(found, pending=_PENDING, letters=_LETTERS), "")
            except FramewireError as problem:
                self._publish([], str(problem))
            await asyncio.sleep(max(0.0, self._every - (time.monotonic() - began)))

    def _publish(self, nodes: Iterable[Seen], problem: str) -> None:
        nodes = tuple(nodes)
        gone = self._gone(nodes)
        sendings = self._sendings.look(nodes, {*(node.name for node in nodes), *(each.name for each in gone)})
        handlers = tuple(self._handled(nodes))
        look = Look(self.look.number + 1, dt.datetime.now(dt.UTC), nodes, gone, handlers, sendings, problem)
        for name in ("sent", "handled", "failed"):
            self._lines.add(("all", name), look.total(name))
            for node in nodes:
                if node.stats is not None:
                    self._lines.add((node.name, name), node.stats.rates.get(name, 0.0))
        for name, value in _gauges(look.stats):
            self._lines.add(("all", name), value)
        self.look = look

    def _gone(self, nodes: tuple[Seen, ...]) -> tuple[Gone, ...]:
        now = time.time()
        here = {node.name: (node.uri, now) for node in nodes}
        known = self._seen | here
        self._seen = {name: (uri, at) for name, (uri, at) in known.items() if now - at < _MOURNED}
        return tuple(
            Gone(name, uri, dt.datetime.fromtimestamp(at, dt.UTC))
            for name, (uri, at) in sorted(self._seen.items())
            if name not in here
        )

    def _handled(self, nodes: tuple[Seen, ...]) -> Iterable[Handled]:
        self._growth.look_again()
        for name, stats in ((node.name, node.stats) for node in nodes if node.stats is not None):
            for actor in stats.actors:
                for handler in filter(is_theirs, actor.handlers):
                    of = (name, actor.identity, handler.name, handler.message)
                    more, seconds = self._growth.since(of, handler.handled, stats.uptime)
                    spent, _ = self._growth.since((*of, "seconds"), handler.seconds, stats.uptime)
                    rate = more / seconds if seconds else 0.0
                    self._lines.add(of, rate)
                    took = spent / more if more else handler.seconds / handler.handled if handler.handled else None
                    yield Handled(name, actor, handler, rate, took)


def _gauges(stats: list[NodeStats]) -> Iterable[tuple[str, float]]:
    yield "nodes", len(stats)
    yield "queued", sum(actor.queued for each in stats for actor in each.actors)
    yield "pending", sum(each.totals.get("pending", 0) for each in stats)
    yield "dead", sum(sum(each.dead_letters.values()) for each in stats)


def is_theirs(handler: HandlerStats) -> bool:
    """Whether a handler is the program's, and not one by which nodes run the cluster."""
    return not handler.message.startswith(_SERVICE)
