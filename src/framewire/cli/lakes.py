"""What the commands that read a lake share: their errors, and values of tables as text and as JSON."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from framewire.cli.settings import Wrong
from framewire.operation.exits import Exit
from framewire.wire.explaining import printable
from framewire.wire.message import readable

__all__ = ["cell_text", "json_text", "lake_errors", "raw_text"]


_OF_THE_QUESTION = ("BinderException", "CatalogException", "ParserException", "SyntaxException")
"""What DuckDB raises for a condition or a question that makes no sense."""


@contextmanager
def lake_errors() -> Iterator[None]:
    """Tell what DuckDB says of a lake in one paragraph, on which no recorded name can play tricks."""
    try:
        yield
    except Exception as problem:
        # DuckDB answers while its rows are fetched, so what is wrong with a row or a file comes up only then.
        if type(problem).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
            raise
        told = str(problem).partition("\n\nLINE ")[0]  # where in a query it is; this one is ours
        if type(problem).__name__ == "IOException":
            again = "The pipeline may have replaced files of the lake meanwhile: ask again."
            raise Wrong(f"{told}\n{again}", Exit.FILES) from None
        raise Wrong(told, Exit.USAGE if type(problem).__name__ in _OF_THE_QUESTION else Exit.FAILED) from None


def raw_text(value: object) -> str:
    """A value as text, as it was recorded."""
    if isinstance(value, bytes | bytearray | memoryview):
        return readable(bytes(value))
    if isinstance(value, dt.datetime):
        return value.isoformat(" ", "microseconds" if value.microsecond else "seconds")
    if isinstance(value, list | dict | tuple):
        return json_text(value)
    return str(value)


def cell_text(value: object) -> str:
    """A value as text that cannot do anything to a terminal."""
    return printable(raw_text(value))


def json_text(value: object) -> str:
    """A value as one line of JSON. Bytes are text where they are printable and 0x… otherwise; times are UTC."""
    return json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return readable(bytes(value))
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="microseconds") + ("" if value.tzinfo is not None else "Z")
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)
