"""The same hub for code that does not use asyncio: scripts, notebooks, thread pools.

A client owns a node on an event loop in a thread of its own. Its methods may be called from any thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from framewire.errors import FramewireError, NodeStopped, UsageError
from framewire.node.actor import Actor
from framewire.node.forks import forked_error, mark_when_forked
from framewire.node.introspection import NodeStats
from framewire.node.loops import new_event_loop
from framewire.node.node import Node
from framewire.node.promises import Gathered
from framewire.node.thread_pool import waiting
from framewire.routing import Route

__all__ = ["Client"]

T = TypeVar("T")


class Client:
    """A blocking message hub. Options are those of ``Node`` and of the hub's methods."""

    _node_type: ClassVar[type[Node]] = Node

    def __init__(self, **options: Any) -> None:
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._run, name="framewire client", daemon=True)
        self._closing = threading.Lock()
        self._closed = False
        self._forked = False
        mark_when_forked(self)
        self._thread.start()
        try:
            self._node = self._wait(self._started(options))
        except BaseException:
            self._end()
            raise

    def ask(self, payload: object, *types: type[T], **options: Any) -> T:
        """Send a message and wait for the first that is one of the types."""
        return self._wait(self._node.hub.ask(payload, *types, **options))

    def start(self, payload: object, *types: type[T], **options: Any) -> concurrent.futures.Future[T]:
        """Send a message and return the future of its answer."""
        return self._submit(self._node.hub.ask(payload, *types, **options))

    def send(self, payload: object, **options: Any) -> None:
        """Send a message and wait until the node that handles it has confirmed that it is there."""
        self._wait(self._node.hub.send(payload, **options))

    def tell(self, payload: object, **options: Any) -> None:
        """Send a message and forget it."""
        self._wait(self._node.hub.tell(payload, **options))

    def broadcast(self, payload: object, **options: Any) -> None:
        """Send a message to every handler on every node."""
        self._wait(self._node.hub.broadcast(payload, **options))

    def gather(self, payload: object, *types: type[T], **options: Any) -> Gathered[T]:
        """Broadcast a message and collect the replies."""
        return self._wait(self._node.hub.gather(payload, *types, **options))

    def host(self, actor: Actor | Callable[[], Actor], **options: Any) -> Route:
        """Start an actor on the client's own node."""
        return self._wait(self._node.host(actor, **options))

    def stats(self) -> NodeStats:
        """What the client's node is doing."""

        async def stats() -> NodeStats:
            return self._node.stats()

        return self._wait(stats())

    @property
    def node(self) -> Node:
        """The client's own node. It lives on another thread: look, and use the client to touch."""
        return self._node

    def close(self) -> None:
        """Stop the client's node and end its thread. Closing twice is fine."""
        self._must_be_usable()
        with self._closing:
            closed, self._closed = self._closed, True
        if closed:
            self._thread.join()
            return
        try:
            _result(asyncio.run_coroutine_threadsafe(self._node.stop(), self._loop))
        finally:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._forked:  # else it is the parent's, and is closed there
            self.close()

    def forked(self) -> None:
        """Mark as the copy in a forked child, where every use raises ``UsageError``."""
        self._forked = True

    async def _started(self, options: dict[str, Any]) -> Node:
        node = self._node_type(**{"signals": False, **options})
        await node.start()
        return node

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with contextlib.closing(self._loop):
            self._loop.run_forever()
            self._loop.run_until_complete(_ended())

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        try:
            self._must_be_usable()
            with self._closing:  # what is submitted before the end is there when the end comes, and is ended
                if self._closed:
                    raise NodeStopped("this client is closed")
                return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except FramewireError:
            coroutine.close()
            raise

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        with waiting():  # in a handler's thread, another takes its place meanwhile
            return _result(self._submit(coroutine))

    def _must_be_usable(self) -> None:
        if self._forked:
            raise forked_error("client")
        if threading.current_thread() is self._thread:
            raise UsageError("a client blocks, so it cannot be used in its own handlers; use the context there")

    def _end(self) -> None:
        self._closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


def _result(future: concurrent.futures.Future[T]) -> T:
    try:
        return future.result()
    except BaseException:
        future.cancel()  # Ctrl-C while waiting gives the promise up
        raise


async def _ended() -> None:
    """Let no one wait for a loop that does not run any more."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=1.0)
    await asyncio.get_running_loop().shutdown_asyncgens()
