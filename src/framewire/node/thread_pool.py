"""Threads for handlers that are plain functions. While some of them wait for an answer, others take their place.

A pool of a fixed size would be used up by handlers that wait for other handlers of the same pool, and all of them
would wait until their time is over.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from framewire.errors import Overloaded

__all__ = ["HandlerThreads", "waiting"]

T = TypeVar("T")


class _Here(threading.local):
    pool: HandlerThreads | None = None


_here = _Here()
"""The pool that the current thread belongs to."""


class HandlerThreads:
    """Runs functions in at most ``size`` threads that do not wait, and ``most`` in all."""

    def __init__(self, size: int, most: int) -> None:
        self.size = size
        self.most = max(size, most)
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._numbers = itertools.count()
        self._idle = 0
        self._waiting = 0
        self._unfinished = 0

    @property
    def unfinished(self) -> int:
        """Functions that run, or wait for a thread."""
        return self._unfinished

    @property
    def count(self) -> int:
        """Threads that there are."""
        return len(self._threads)

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Run a function as soon as a thread is free."""
        future: Future[T] = Future()
        with self._lock:
            if self._waiting >= self.most:
                raise Overloaded(f"all {self.most} threads of the node wait already (max_threads)")
            self._unfinished += 1
            self._jobs.put((future, lambda: function(*args)))
            if self._idle:
                self._idle -= 1
            else:
                self._start_another()
        return future

    @contextlib.contextmanager
    def waits(self) -> Iterator[None]:
        """Let another thread take the place of the current one, which belongs to this pool and is about to wait."""
        with self._lock:
            if self._waiting + 1 >= self.most and not self._jobs.empty():
                raise Overloaded(f"all {self.most} threads of the node wait already (max_threads)")
            self._waiting += 1
            if not self._jobs.empty():
                self._start_another()
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1

    def close(self, *, wait: bool) -> None:
        """Run nothing more, and end the threads; those that still run something end after it."""
        with contextlib.suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    job[0].cancel()
                    self._finished()
        with self._lock:
            threads = tuple(self._threads)
        for _ in threads:
            self._jobs.put(None)
        if wait:
            for thread in threads:
                thread.join()

    def _start_another(self) -> None:
        if len(self._threads) - self._waiting < self.size and len(self._threads) < self.most:
            thread = threading.Thread(target=self._run, name=f"framewire handler {next(self._numbers)}")
            self._threads.add(thread)
            thread.start()

    def _run(self) -> None:
        _here.pool = self
        try:
            while (job := self._next()) is not None:
                future, call = job
                if future.set_running_or_notify_cancel():
                    self._call(future, call)
                else:
                    self._finished()
                del future, call, job  # a thread that is idle holds nothing
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _call(self, future: Future[Any], call: Callable[[], Any]) -> None:
        # It counts as finished before anybody can see that it is.
        try:
            result = call()
        except BaseException as problem:  # noqa: BLE001 - whatever it is, the one who waits gets it
            self._finished()
            future.set_exception(problem)
        else:
            self._finished()
            future.set_result(result)

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._lock:
            if len(self._threads) - self._waiting > self.size:
                return None  # those that waited go on, so there is one too many
            try:
                return self._jobs.get_nowait()
            except queue.Empty:
                self._idle += 1
        return self._jobs.get()

    def _finished(self) -> None:
        with self._lock:
            self._unfinished -= 1


def waiting() -> contextlib.AbstractContextManager[None]:
    """What a thread is in while it waits for an answer, be it a handler's or not."""
    return contextlib.nullcontext() if _here.pool is None else _here.pool.waits()
