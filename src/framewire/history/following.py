"""The tables of a lake, read while a pipeline goes on writing them.

DuckDB is opened for the files that are there and told to read nothing else, which takes longer than most answers.
So one opening serves many questions, from many threads. When files have come or gone it is replaced by a new one,
and closed when the last question that it answers is done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import duckdb

from framewire.errors import UsageError
from framewire.history.windows import Conditions
from framewire.spark.asking import Days, files_of, open_lake
from framewire.spark.tables import TABLES
from framewire.wire.explaining import printable

__all__ = ["Following"]

_LOOK_EVERY = 2.0
_PART_FOR_LOOKING = 0.05
_TRIES = 3
_OUR_FAULT = (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException)
T = TypeVar("T")
Rows = list[tuple[Any, ...]]


class _Opening:
    """DuckDB, open for the files that a lake had at one time."""

    def __init__(self, lake: str, files: object) -> None:
        self.files = files
        self.users = 0
        self._context: AbstractContextManager[duckdb.DuckDBPyConnection] = open_lake(lake)
        self.connection = self._context.__enter__()

    def close(self) -> None:
        self._context.__exit__(None, None, None)


class Following:
    """Answers questions about a lake as it is now, give or take two seconds. Any thread may ask."""

    def __init__(self, lake: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.lake = lake
        self._clock = clock
        self._lock = threading.Lock()
        # A lake that is not on this machine is a set of objects that only one connection of DuckDB knows.
        self._one_at_a_time = threading.Lock() if "://" in lake else None
        self._opening: _Opening | None = None
        self._look_at = 0.0
        self._closed = False

    def rows(self, sql: str, values: Sequence[object] = ()) -> Rows:
        """All rows of an answer, which the question must have bounded."""

        def ask() -> Rows:
            with self._connection() as connection:
                return connection.execute(sql, list(values)).fetchall()

        return self._tried(ask)

    def select(self, what: str, table: str, where: Conditions, rest: str = "", *more: object) -> Rows:
        """The rows of one table, or of what is put together like one. Texts are our own; all values are bound."""
        return self.rows(f"select {what} from {table} where {where} {rest}", [*where.values, *more])  # noqa: S608

    def one(self, what: str, table: str, where: Conditions) -> tuple[Any, ...]:
        """The row of an answer that always has exactly one."""
        return self.select(what, table, where)[0]

    def apart(self, tables: Sequence[str], days: Days | None, told: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """What is told on a connection of its own, which may keep things in it, and reads some days only."""

        def ask() -> T:
            with open_lake(self.lake, tables, days) as connection:
                return told(connection)

        return self._tried(ask)

    def close(self) -> None:
        """End it. Questions that are being answered are answered."""
        with self._lock:
            self._closed = True
            self._replace(None)

    def _tried(self, ask: Callable[[], T]) -> T:
        """An answer, in spite of a pipeline that replaces files between the listing and the reading of them."""
        for left in reversed(range(_TRIES)):
            try:
                return ask()
            except _OUR_FAULT:
                raise
            except duckdb.IOException as problem:
                if not left:
                    raise _unreadable(self.lake, problem) from None
                with self._lock:
                    self._look_at = 0.0
            except duckdb.Error as problem:
                raise _unreadable(self.lake, problem) from None
        raise AssertionError  # pragma: no cover - the last try returns or raises

    @contextmanager
    def _connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._lock:
            opening = self._current()
            opening.users += 1
        try:
            if self._one_at_a_time is not None:
                with self._one_at_a_time:
                    yield opening.connection
            else:
                with opening.connection.cursor() as cursor:
                    yield cursor
        finally:
            with self._lock:
                opening.users -= 1
                if opening is not self._opening and not opening.users:
                    opening.close()

    def _current(self) -> _Opening:
        if self._closed:
            raise UsageError(f"the history of {self.lake} is closed")
        if self._opening is not None and self._clock() < self._look_at:
            return self._opening
        began = time.perf_counter()
        files = [files_of(self.lake, name) for name in TABLES]
        # Where looking takes long, as on a store far away, it is done less often.
        took = time.perf_counter() - began
        self._look_at = self._clock() + max(_LOOK_EVERY, took / _PART_FOR_LOOKING)
        if self._opening is None or self._opening.files != files:
            self._replace(self._opened(files))
        assert self._opening is not None  # noqa: S101 - for the type checker
        return self._opening

    def _opened(self, files: object) -> _Opening:
        try:
            return _Opening(self.lake, files)
        except duckdb.IOException:
            raise
        except (duckdb.Error, ValueError) as problem:
            if isinstance(problem, UsageError):
                raise
            raise _unreadable(self.lake, problem) from None

    def _replace(self, opening: _Opening | None) -> None:
        before, self._opening = self._opening, opening
        if before is not None and not before.users:
            before.close()


def _unreadable(lake: str, problem: Exception) -> UsageError:
    # What follows tells where in our own question it came up.
    told = printable(" ".join(str(problem).partition("\nLINE ")[0].split()))
    return UsageError(
        f"the lake {lake} cannot be read: {told}. If a file of it is damaged, or not written by this framewire, "
        f"run the captures into a new lake: framewire pipeline run --captures captures/ --lake new-lake/"
    )
