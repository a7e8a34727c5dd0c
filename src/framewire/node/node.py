"""A node: the actors, hubs and router of one process, and their common life."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import uuid
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from framewire.errors import NodeStopped, NoRoute, UsageError
from framewire.node.actor import Actor, FunctionActor, Partitions
from framewire.node.cell import Cell
from framewire.node.clock import Clock, LoopClock
from framewire.node.core import Core, Hook, handling, settings_from
from framewire.node.deadletters import DeadLetter, DeadLetters, Reason
from framewire.node.deadlocks import WaitGraph, Waits
from framewire.node.forks import forked_error, mark_when_forked
from framewire.node.hub import MessageHub, is_seconds
from framewire.node.introspection import Introspection, NodeStats, Rates, stats
from framewire.node.mailbox import Overflow
from framewire.node.payloads import type_of
from framewire.node.port import NodePort
from framewire.node.router import Router
from framewire.node.signals import NodeSignals
from framewire.node.stalls import Stall, StallWatch
from framewire.node.tap import Recorder, Tap
from framewire.node.thread_pool import HandlerThreads
from framewire.node.tracing import TraceStep
from framewire.node.transport import Transport
from framewire.node.turns import Turns
from framewire.routing import Route
from framewire.security import KeyRing

__all__ = ["Node"]

log = logging.getLogger("framewire.node")

F = TypeVar("F", bound=Callable[..., Any])

_GATHER_S = 0.5
"""Seconds that other nodes have to tell what waits there."""


class Node:
    """Hosts actors, and sends messages to them and to those of other nodes.

    Use it with ``async with``. Under ``fw.run`` SIGTERM and SIGINT stop it in good order; in any other program it
    leaves signals alone, unless ``signals=True`` has it take them. Settings are those of ``Settings``.
    """

    def __init__(
        self,
        *,
        identity: str | bytes | None = None,
        keyring: KeyRing | None = None,
        recorder: Recorder | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        signals: bool | None = None,
        **settings: Any,
    ) -> None:
        raw = identity.encode() if isinstance(identity, str) else identity
        if raw is not None and (not raw or raw[0] == 0 or len(raw) > 255):
            raise UsageError(f"identity: {identity!r} must be 1 to 255 bytes and not start with a zero byte")
        self._core = Core(raw or str(uuid.uuid4()).encode(), settings_from(settings), clock or LoopClock(), keyring)
        self._recorder = recorder
        self._transport = transport
        self._router = Router(self._core, transport)
        self._cells: dict[Route, Cell] = {}
        self._hubs: list[MessageHub] = []
        self.port = NodePort(self._core, self._router, self._hubs)
        """What a transport tells this node, see ``framewire.node.transport``."""
        self._functions: list[Callable[[], None]] = []
        self._leaving: dict[Route, asyncio.Task[None]] = {}
        self._rates = Rates(self._core.clock, self._core.counters, self._core.samples)
        self._turns = Turns()
        threshold = self._core.settings.stall_after
        self._watch = StallWatch(threshold, self._handlers) if threshold is not None else None
        self._signals = NodeSignals(taken=signals)
        self._began: float | None = None
        self._stopped: asyncio.Event | None = None
        self._stopping: asyncio.Task[None] | None = None
        self.starting = False
        """Whether its program is still being hosted; ``framewire node`` says so, and ``state`` tells it."""
        self._forked = False
        mark_when_forked(self)

    # --- what it is

    @property
    def identity(self) -> bytes:
        """What other nodes know this one by."""
        return self._core.identity

    @property
    def uri(self) -> str:
        """Where other nodes reach this one; empty where they cannot."""
        return self._transport.uri if self._transport is not None else ""

    @property
    def hub(self) -> MessageHub:
        """The node's own message hub."""
        if not self._hubs:
            if self._forked:
                raise forked_error("node")
            raise UsageError("this node is not running; use `async with Node() as node`")
        return self._hubs[0]

    @property
    def dead_letters(self) -> DeadLetters:
        return self._core.dead_letters

    @property
    def running(self) -> bool:
        return self._began is not None and self._stopping is None

    @property
    def has_joined(self) -> bool:
        """Whether it has found the cluster that it was told of; a node of its own needs none."""
        return True

    @property
    def state(self) -> str:
        """How far it is: starting, joining (no rendezvous server was reached yet), ready or draining."""
        if self._stopping is not None:
            return "draining"
        if self._began is None or self.starting:
            return "starting"
        return "ready" if self.has_joined else "joining"

    def stats(self, *, pending: int = 100) -> NodeStats:
        """What the node is doing and has done; ``pending`` limits the list of open promises."""
        return stats(
            self._core,
            uptime=self._core.now() - self._began if self._began is not None else 0.0,
            cells=list(self._cells.values()),
            hubs=self._hubs,
            rates=self._rates,
            peers=self._router.table.nodes,
            watch=self._watch,
            transport=self._transport,
            pending=pending,
            state=self.state,
        )

    # --- what it hosts

    async def host(
        self,
        actor: Actor | Callable[[], Actor],
        *,
        concurrency: int | None = None,
        mailbox: int | None = None,
        overflow: Overflow | None = None,
        local: bool = False,
        cancel_late: bool | None = None,
        reentrant: bool | None = None,
    ) -> Route:
        """Start an actor and let messages come to it; the address that is returned is its own.

        Given a class or a function that makes an actor, a restart makes a new one. A ``local`` actor is not
        announced to other nodes.
        """
        self._must_run()
        if isinstance(actor, Actor):
            one = actor
            make: Callable[[], Actor] = lambda: one  # noqa: E731 - one expression, used once
            if any(cell.actor is actor for cell in self._cells.values()):
                raise UsageError(f"this {type(actor).__qualname__} is hosted already; host another, or its class")
        elif callable(actor):
            make = actor
        else:
            raise UsageError(f"actor: {actor!r} is neither an actor nor something that makes one")
        cell = self._cell(
            make,
            concurrency=concurrency,
            mailbox=mailbox,
            overflow=overflow,
            local=local,
            cancel_late=cancel_late,
            reentrant=reentrant,
        )
        await cell.start()
        if self._stopping is not None:
            await cell.stop(Reason.NODE_STOPPED, NodeStopped("the node was stopped"))
            self._must_run()
        self._open(cell)
        return cell.route

    async def unhost(self, address: Route) -> None:
        """Let no more messages come to an actor, finish those it has, and stop it.

        In a handler of that actor this returns at once, and the rest happens when the handler is done.
        """
        if self._forked:
            raise forked_error("node")
        cell = self._cells.get(address)
        if cell is None:
            raise UsageError(f"no actor with the address {address} is hosted here")
        self._router.remove(address)
        leaving = self._leaving.get(address)
        if leaving is None:
            leaving = asyncio.create_task(self._let_go(cell), name=f"framewire {cell.name} leaves")
            self._leaving[address] = leaving
        if not cell.works_in(asyncio.current_task()):
            await asyncio.shield(leaving)

    async def _let_go(self, cell: Cell) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._core.settings.stop_timeout):
                await cell.quiet()
        await cell.stop(Reason.HANDLER_GONE, NoRoute(f"{cell.name} was stopped"))
        self._forget(cell)

    def handler(
        self,
        *types: type,
        inline: bool = False,
        partitions: Partitions | None = None,
        concurrency: int | None = None,
        mailbox: int | None = None,
        overflow: Overflow | None = None,
        local: bool = False,
        cancel_late: bool | None = None,
        reentrant: bool | None = None,
    ) -> Callable[[F], F]:
        """Let a plain function handle messages, in these partitions if given. Options are those of ``host``."""

        def decorate(function: F) -> F:
            actor = FunctionActor(function, types, inline=inline, partitions=partitions)
            actor.__class__ = type(getattr(function, "__qualname__", "function"), (FunctionActor,), {})

            def host() -> None:
                cell = self._cell(
                    lambda: actor,
                    concurrency=concurrency,
                    mailbox=mailbox,
                    overflow=overflow,
                    local=local,
                    cancel_late=cancel_late,
                    reentrant=reentrant,
                )
                cell.start_at_once()
                self._open(cell)

            if self._began is None:
                self._functions.append(host)
            else:
                self._must_run()
                host()
            return function

        return decorate

    async def new_hub(self, *, local: bool = False) -> MessageHub:
        """Another message hub on this node."""
        self._must_run()
        hub = MessageHub(self._core)
        self._hubs.append(hub)
        self._router.add(Route(hub.identity), hub, (), local=local)
        return hub

    # --- who it trusts

    def use_keys(self, keyring: KeyRing | None) -> None:
        """Sign and verify with other keys from now on.

        To rotate a key without a failed message, let every node accept the new one before any node signs with it,
        and drop the old one when none does any more: docs/security.md.
        """
        if keyring is not None and not isinstance(keyring, KeyRing):
            raise UsageError(f"keyring: {type(keyring).__name__} is not a KeyRing; KeyRing.from_file reads one")
        self._router.use_keys(keyring)

    # --- who listens

    def on_dead_letter(self, hook: Callable[[DeadLetter], object]) -> Callable[[DeadLetter], object]:
        """Call a function with every dead letter."""
        self._core.dead_letters.listen(_plain(hook))
        return hook

    def on_trace(self, hook: Callable[[TraceStep], object]) -> Callable[[TraceStep], object]:
        """Call a function with every step of a traced message."""
        self._core.trace.listen(_plain(hook))
        return hook

    def on_stall(self, hook: Callable[[Stall], object]) -> Callable[[Stall], object]:
        """Call a function, on the watcher's thread, whenever something blocks the event loop."""
        if self._watch is None:
            raise UsageError("stall_after: is None, so nothing is watched")
        self._watch.listen(_plain(hook))
        return hook

    # --- how it lives

    async def start(self) -> None:
        """Begin: needed only where ``async with`` does not fit."""
        if self._forked:  # even if it was not started before: its identity is the parent's
            raise forked_error("node")
        if self._began is not None:
            raise UsageError("a node lives once; make a new one")
        self._stopped = asyncio.Event()
        self._core.threads = HandlerThreads(self._core.settings.threads, self._core.settings.max_threads)
        self._began = self._core.now()
        self._rates.start()
        self._turns.start()
        if self._watch is not None:
            self._watch.start()
        try:
            if self._recorder is not None:
                self._record(self._recorder)
            await self.new_hub()
            await self.host(Introspection())
            self._core.deadlocks.ask_all = self._all_wait_graphs
            for host in self._functions:
                host()
            if self._transport is not None:
                await self._transport.start(self.port)
        except BaseException:
            await self.stop(0)
            raise

    async def stop(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the time that draining has
        """Stop accepting, finish what runs, answer, unregister, close; then end what is still open.

        In a handler this returns at once, and the handler can finish.
        """
        limit = self._core.settings.stop_timeout if timeout is None else timeout
        if not (is_seconds(limit) and limit >= 0):
            raise UsageError(f"timeout: {timeout!r} is not a number of seconds")
        if self._forked:
            raise forked_error("node")
        if self._began is None:
            return
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(limit), name="framewire stop")
        task = asyncio.current_task()
        if not any(cell.works_in(task) for cell in self._cells.values()):
            await asyncio.shield(self._stopping)

    async def serve(self) -> None:
        """Wait until the node is stopped."""
        if self._stopped is None or self._forked:
            self._must_run()
        else:
            await self._stopped.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        self._signals.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._forked:  # it is the parent's, and is stopped there
            return False
        interrupted = self._signals.end()
        await self.stop()
        return interrupted and isinstance(error, asyncio.CancelledError)

    async def _stop(self, limit: float) -> None:
        for hub in self._hubs:
            hub.drain()
        self._router.retire()
        cells = list(self._cells.values())
        try:
            try:
                async with asyncio.timeout(limit):
                    await self._drained(cells)
            except TimeoutError:
                log.warning("stopping after %.1f s with handlers still at work", limit)
            stopped = NodeStopped("the node was stopped before it was handled")
            for cell in cells:
                self._router.remove(cell.route)
            await asyncio.gather(
                *(cell.stop(Reason.NODE_STOPPED, stopped) for cell in cells), *self._leaving.values()
            )
            self._router.close()
            if self._transport is not None:
                async with asyncio.timeout(max(limit, 5.0)):
                    await self._transport.stop()
        except Exception:
            log.exception("the node did not stop as it should")
        finally:
            self._close()
            if self._core.tap is not None and self._recorder is not None:
                self._core.tap = None
                await asyncio.to_thread(self._recorder.close)
            if self._stopped is not None:
                self._stopped.set()

    async def _drained(self, cells: list[Cell]) -> None:
        """Wait until others send nothing more, all is handled, and what was asked of others is answered."""
        if self._transport is not None:
            await self._transport.settle()
        while True:
            await self._router.handlers_returned()
            for hub in self._hubs:
                await hub.answered()
            if not self._router.expects and all(cell.is_quiet for cell in cells):
                return
            for cell in cells:  # each may get work from any other
                await cell.quiet()

    async def _all_wait_graphs(self, asked: Waits) -> list[WaitGraph]:
        handling.set(Hook(under_way=True))  # the search has a task of its own, and belongs to no flow
        nodes = sum(1 for _ in self._router.table.all(type_of(Waits).message_id))
        return await self.hub.gather(asked, WaitGraph, timeout=_GATHER_S, stop_after=max(nodes, 1))

    def _record(self, recorder: Recorder) -> None:
        recorder.open(self.identity)
        self._core.tap = Tap(recorder)
        self._core.dead_letters.listen(self._core.tap.dead)
        self._core.trace.listen(self._core.tap.step)

    def _close(self) -> None:
        """What is done whether or not the rest went well, and does not wait for anybody."""
        self._router.close()
        for hub in self._hubs:
            hub.close("the node was stopped before the answer came")
        self._rates.stop()
        self._turns.stop()
        self._core.deadlocks.close()
        if self._watch is not None:
            self._watch.stop()
        if self._core.threads is not None:
            busy = self._core.threads.unfinished
            if busy:
                log.warning("%d handlers still run in threads, which nothing can stop", busy)
            self._core.threads.close(wait=not busy)
            self._core.threads = None

    # --- inside

    def forked(self) -> None:
        """Mark as the copy in a forked child, where every use raises ``UsageError``."""
        self._forked = True
        self._core.send = self._core.answer = self._refuse
        for hub in self._hubs:
            hub.forked()

    def _refuse(self, *_: object) -> NoReturn:
        raise forked_error("node")

    def _must_run(self) -> None:
        if self._forked:
            raise forked_error("node")
        if self._began is None:
            raise UsageError("this node is not running; use `async with Node() as node`")
        if self._stopping is not None:
            raise NodeStopped("this node is stopping", node=self.identity)

    def _cell(self, make: Callable[[], Actor], **options: Any) -> Cell:
        return Cell(self._core, make, prepare=self._adopt, withdraw=self._withdraw, gone=self._forget, **options)

    def _open(self, cell: Cell) -> None:
        self._cells[cell.route] = self._core.cells[cell.route.receiver] = cell
        self._router.add(cell.route, cell, cell.handlers, local=cell.local)

    def _adopt(self, actor: Actor) -> None:
        actor.node = self

    def _withdraw(self, cell: Cell) -> None:
        self._router.remove(cell.route)

    def _forget(self, cell: Cell) -> None:
        self._cells.pop(cell.route, None)
        self._core.cells.pop(cell.route.receiver, None)
        self._leaving.pop(cell.route, None)

    def _handlers(self) -> Iterator[Any]:
        for cell in tuple(self._cells.values()):
            yield from cell.by_kind.values()


def _plain(hook: F) -> F:
    if inspect.iscoroutinefunction(hook):
        raise UsageError(
            f"{hook.__qualname__} is async; a hook is called in the middle of things: make it a plain def"
        )
    return hook
