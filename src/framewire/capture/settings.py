"""Everything that a recorder can be told."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from framewire.capture.schema import Direction
from framewire.errors import ConfigError

__all__ = ["Bodies", "CaptureSettings", "OnFull", "settings_from"]

Bodies = Literal["keep", "drop"] | int
OnFull = Literal["drop", "wait"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    """How a node is recorded, with what is done if nothing is said."""

    identities: tuple[str, ...] = ()
    """Only messages with these identities; a trailing * stands for any ending. All of them, if empty."""
    directions: tuple[str, ...] = ()
    """Only these: sent, received, delivered, dead. All of them, if empty."""
    sample: float = 1.0
    """The share of flows that is recorded, each of them whole and on every node."""
    traced: bool = True
    """Whether flows with a traced message are recorded whole, and their steps, whatever the others leave out."""
    bodies: Bodies = "keep"
    """Whether bodies are recorded: keep, drop, or as many bytes of each body frame as this number says."""
    on_full: OnFull = "drop"
    """What happens to a message when the queue is full: it is not recorded, or the node waits for room."""
    wait_limit: float = 30.0
    """Seconds that the node waits at most before it goes on without recording."""
    queue_records: int = 200_000
    """Messages that may wait to be written."""
    queue_bytes: int = 128 * 1024 * 1024
    """Memory, roughly, that they may take."""
    batch_seconds: float = 0.2
    """Seconds that a message waits at most: what a process that is killed loses."""
    seal_seconds: float = 5.0
    """Seconds after which an open segment becomes a Parquet file."""
    seal_bytes: int = 64 * 1024 * 1024
    """Bytes after which it does."""
    keep_seconds: float | None = None
    """Sealed segments that are older are removed, whoever recorded them; None keeps them."""
    keep_bytes: int | None = None
    """The oldest sealed segments are removed while there are more bytes than this; None keeps them."""
    spool: str | os.PathLike[str] | None = None
    """Where open segments lie, if not in .open beside the sealed ones: a local directory."""

    def __post_init__(self) -> None:
        problems = [
            f"{name}: {value!r}; must be {accepted}"
            for name, accepted, good in _RULES
            if not good(value := getattr(self, name))
        ]
        if problems:
            raise ConfigError("capture settings", problems)

    @property
    def body_limit(self) -> int | None:
        """How many bytes of a body frame are kept; None for all of them."""
        if isinstance(self.bodies, int):
            return self.bodies
        return 0 if self.bodies == "drop" else None


def settings_from(options: Mapping[str, Any]) -> CaptureSettings:
    """Settings from options by name, or one error that lists all that is wrong with them."""
    known = {field.name for field in dataclasses.fields(CaptureSettings)}
    listed = ", ".join(sorted(known))
    problems = [f"{name}: no such option; there are {listed}" for name in sorted(options.keys() - known)]
    given = {name: _many(value) if name in _LISTS else value for name, value in options.items() if name in known}
    settings = CaptureSettings()
    try:
        settings = CaptureSettings(**given)
    except ConfigError as wrong:
        problems += wrong.problems
    if problems:
        raise ConfigError("capture settings", problems)
    return settings


_LISTS = ("identities", "directions")


def _many(value: Any) -> Any:
    """One name stands for a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list | set | frozenset) else value


def _identities(value: object) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(name, str) and name and "*" not in name[:-1] for name in value
    )


def _directions(value: object) -> bool:
    return isinstance(value, tuple) and all(direction in tuple(Direction) for direction in value)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _seconds(value: Any) -> bool:
    return _number(value) and value > 0


def _count(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def _or_none(good: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or good(value)


def _bodies(value: object) -> bool:
    return value in ("keep", "drop") if isinstance(value, str) else _count(0)(value)


_POSITIVE = "a positive number of seconds"
_RULES: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("identities", "names such as 'orders.place', or 'orders.*' with the * at the end", _identities),
    ("directions", f"some of {', '.join(Direction)}", _directions),
    ("sample", "a share from 0 to 1", lambda value: _number(value) and 0 <= value <= 1),
    ("traced", "true or false", lambda value: isinstance(value, bool)),
    ("bodies", "keep, drop, or a number of bytes", _bodies),
    ("on_full", "drop or wait", lambda value: value in get_args(OnFull)),
    ("wait_limit", _POSITIVE, _seconds),
    ("queue_records", "a whole number, at least 1", _count(1)),
    ("queue_bytes", "a whole number, at least 65536", _count(65536)),
    ("batch_seconds", _POSITIVE, _seconds),
    ("seal_seconds", _POSITIVE, _seconds),
    ("seal_bytes", "a whole number, at least 1024", _count(1024)),
    ("keep_seconds", f"{_POSITIVE}, or None", _or_none(_seconds)),
    ("keep_bytes", "a whole number, or None", _or_none(_count(0))),
    ("spool", "a local directory, or None", lambda value: value is None or isinstance(value, str | os.PathLike)),
)
