"""The life of an actor: how it is made, started, stopped, and made again.

Hooks are an author's code, so they may fail, or never end. A start is tried again, later each time; an end is
waited for, then hurried, then left to itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any

from framewire.errors import UsageError
from framewire.node.actor import Actor
from framewire.node.core import Core, Flow, Hook, handling
from framewire.node.exceptions import text_of

__all__ = ["PATIENCE", "Life"]

log = logging.getLogger("framewire.node")

PATIENCE = 1.0
"""Seconds that a task which was cancelled has for its end."""


class Life:
    """One actor and those that come after it when it is restarted."""

    def __init__(self, core: Core, make: Callable[[], Actor], prepare: Callable[[Actor], None]) -> None:
        self._core = core
        self._make = make
        self._prepare = prepare
        self._begun = False
        # Workers begin when messages come, but what they know is not to depend on who happened to send the first.
        self.context = copy_context()
        self.context.run(handling.set, None)
        self.actor = self._made()
        self.name = type(self.actor).__qualname__

    def renew(self) -> None:
        """Make another actor, or the same again where only one was given."""
        self.actor = self._made()

    async def begin(self) -> None:
        """Run the ``started`` hook, as often as the actor's policy allows.

        It belongs to no flow, even where a handler hosts the actor: what the hook starts lasts longer than that.
        """
        if not isinstance(handling.get(), Flow):
            await self._begin()
            return
        within = handling.set(Hook(under_way=True))
        try:
            await self._begin()
        finally:
            handling.reset(within)

    async def _begin(self) -> None:
        policy = self.actor.restart
        for attempt in range(1, policy.attempts + 1):
            try:
                await self.actor.started()
            except Exception as problem:
                if attempt == policy.attempts:
                    raise
                delay = policy.delay(attempt)
                log.warning("%s did not start (%s); next try in %.1f s", self.name, text_of(problem), delay)
                await self._core.sleep(delay)
            else:
                self._begun = True
                return

    def begin_at_once(self) -> None:
        """For an actor that has no ``started`` hook to wait for."""
        self._begun = True

    async def end(self, patience: float) -> None:
        """Run the ``stopping`` hook, once for each time the actor was started."""
        if not self._begun:
            return
        self._begun = False
        hook = self.task(self.actor.stopping(), "stops")
        await self.ended({hook}, patience, PATIENCE)
        if hook.done() and not hook.cancelled() and (problem := hook.exception()) is not None:
            log.error("the stopping hook of %s failed", self.name, exc_info=problem)

    async def ended(self, tasks: set[asyncio.Task[None]], patience: float, more: float) -> None:
        """Wait for tasks; cancel them after a while, and leave them alone if even that does not help."""
        tasks = {task for task in tasks if not task.done()}
        if tasks and patience:
            _, tasks = await asyncio.wait(tasks, timeout=patience)
        for task in tasks:
            task.cancel()
        if tasks:
            _, tasks = await asyncio.wait(tasks, timeout=more)
        for task in tasks:
            log.error("%s does not end although it was cancelled: %s", self.name, task)

    def task(self, work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
        """A task of this actor's; it may send while the node stops, as handlers may."""
        context = self.context.copy()
        context.run(handling.set, Hook())
        return asyncio.get_running_loop().create_task(work, name=f"framewire {self.name} {what}", context=context)

    def _made(self) -> Actor:
        actor = self._make()
        if not isinstance(actor, Actor):
            raise UsageError(f"what was to make an actor made {actor!r}, which is no actor")
        self._prepare(actor)
        return actor
