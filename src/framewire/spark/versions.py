"""Versions of V1 messages as numbers: what ``wire.upgrade`` makes of them, as an expression."""

from __future__ import annotations

from collections.abc import Mapping

from framewire.errors import ConfigError
from framewire.spark.shapes import sql

__all__ = ["LARGEST", "checked_versions", "version_number"]

LARGEST = 0xFFFF
# \z and not $, which would let a line feed at the end pass.
_NUMBERED = r"\A(0|[1-9][0-9]{0,4})(?:\.0)?\z"


def checked_versions(versions: Mapping[bytes, int] | None) -> Mapping[bytes, int]:
    """A mapping that can be used, or ``ConfigError`` with all that is wrong with it."""
    given = dict(versions or {})
    problems = [f"{name!r} is not bytes" for name in given if not isinstance(name, bytes)]
    problems += [
        f"{name!r}: {number!r} is not a whole number from 0 to {LARGEST}"
        for name, number in given.items()
        if not (isinstance(number, int) and 0 <= number <= LARGEST)
    ]
    if problems:
        raise ConfigError("versions", problems)
    return given


def version_number(raw: str, versions: Mapping[bytes, int]) -> str:
    """The number that an opaque version stands for; null where it stands for none, which is never guessed at."""
    digits = f"try_cast(regexp_extract(CAST({raw} AS STRING), r'{_NUMBERED}', 1) AS INT)"
    mapped = "".join(f"WHEN {raw} = {sql(name)} THEN {number} " for name, number in versions.items())
    # The usual ones without a regular expression, which takes a microsecond.
    usual = "".join(f"WHEN {raw} IN ({sql(b'%d' % n)}, {sql(b'%d.0' % n)}) THEN {n} " for n in range(1, 4))
    return f"CASE {mapped}{usual}WHEN {digits} <= {LARGEST} THEN {digits} END"
