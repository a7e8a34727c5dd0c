"""Questions to the lake, asked in threads of their own, and once for everybody who asks the same.

A page that several people open at the same time, or one that is opened again, costs one question. Answers are
bounded by the questions themselves, and only the last of them are kept, for seconds: a pipeline may be writing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from framewire.history import History

__all__ = ["Questions"]

T = TypeVar("T")
_THREADS = 3
_KEPT = 48
_SECONDS = 15.0


@dataclass(slots=True)
class _Asked:
    answer: asyncio.Future[Any]
    until: float = float("inf")
    """While it is being answered it is good for everybody."""


class Questions:
    """A lake that many may ask at the same time."""

    def __init__(self, lake: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._history = History(lake)
        self._clock = clock
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="framewire lake")
        self._asked: dict[Hashable, _Asked] = {}

    async def ask(self, key: Hashable, question: Callable[[History], T]) -> T:
        """The answer to a question that ``key`` stands for; ``UsageError`` where the lake has none."""
        found = self._asked.pop(key, None)
        if found is None or found.until < self._clock():
            loop = asyncio.get_running_loop()
            found = _Asked(loop.run_in_executor(self._pool, question, self._history))
            found.answer.add_done_callback(lambda done: self._done(key, done))
        self._asked[key] = found
        while len(self._asked) > _KEPT:
            del self._asked[next(iter(self._asked))]
        # Whoever closes a page must not take the answer away from the others.
        answer: T = await asyncio.shield(found.answer)
        return answer

    async def once(self, question: Callable[[History], T]) -> T:
        """The answer to a question that is too long to be kept."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, question, self._history)

    def _done(self, key: Hashable, answer: asyncio.Future[Any]) -> None:
        found = self._asked.get(key)
        if found is None or found.answer is not answer:
            return
        if answer.cancelled() or answer.exception() is not None:
            # What is wrong with a lake can be mended, and then the next one who asks should see it.
            del self._asked[key]
        else:
            found.until = self._clock() + _SECONDS

    def close(self) -> None:
        """Ask no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._history.close()
