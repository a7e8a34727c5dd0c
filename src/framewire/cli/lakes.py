"""What the commands that read a lake share: their errors, and values of tables as text and as JSON."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import click

from framewire.errors import FramewireError
from framewire.wire.explaining import printable
from framewire.wire.message import readable

__all__ = ["cell_text", "json_text", "lake_errors", "raw_text"]

_PACKAGES = ("duckdb", "pyarrow", "numpy", "pyspark")


@contextmanager
def lake_errors() -> Iterator[None]:
    """Tell what went wrong with a lake in one paragraph, on which no recorded name can play tricks."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in _PACKAGES:
            raise
        raise click.ClickException(
            f"this needs {missing.name}, which is not installed: pip install 'framewire[spark]'"
        ) from None
    except BrokenPipeError:
        raise  # whoever read the output has seen enough
    except (FramewireError, OSError) as problem:
        raise click.ClickException(_harmless(problem)) from None
    except Exception as problem:
        # DuckDB answers while its rows are fetched, so what is wrong with a row or a file comes up only then.
        if type(problem).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
            raise
        again = ""
        if type(problem).__name__ == "IOException":
            again = "\nThe pipeline may have replaced files of the lake meanwhile: ask again."
        raise click.ClickException(_harmless(problem) + again) from None


def _harmless(problem: Exception) -> str:
    return "\n".join(map(printable, str(problem).splitlines()))


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
