"""What was told, and where: by a file, by environment variables and on the command line.

Nothing is given up at the first mistake: whatever is wrong anywhere is told at once.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from framewire.config.options import BY_KEY, BY_VARIABLE, OPTIONS, TABLES, Option

__all__ = ["CONFIG", "KEYS", "PREFIX", "Flag", "Told", "from_environment", "from_file", "from_flags"]

PREFIX = "FRAMEWIRE_"
CONFIG = "FRAMEWIRE_CONFIG"
"""The variable that names the file."""
KEYS = "FRAMEWIRE_KEYS"
"""The variable that holds the text of a key file."""
_OTHERS = (CONFIG, KEYS, "FRAMEWIRE_PURE")
"""Variables that are no options."""


@dataclass(frozen=True, slots=True)
class Flag:
    """An option that was given on the command line; ``name`` is what it is called there."""

    key: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Told:
    """A value, ready for use, and where it comes from."""

    option: Option
    value: Any
    origin: str


Found = Iterator[Told | str]
"""What was told, and in between, in words, what is wrong."""


def from_file(path: Path) -> Found:
    """What a file tells."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        yield f"{path}: cannot be read: {problem.strerror}"
        return
    except UnicodeDecodeError:
        yield f"{path}: is not text in UTF-8"
        return
    except tomllib.TOMLDecodeError as problem:
        yield f"{path}: is not TOML: {problem}"
        return
    known = {table.name for table in TABLES}
    for name, content in document.items():
        if name not in known:
            yield f"{name}: {_no_such_table(name, is_table=isinstance(content, dict))} ({path})"
        elif not isinstance(content, dict):
            yield f"{name}: must be a table, [{name}] ({path})"
        else:
            for key, value in content.items():
                option = BY_KEY.get(f"{name}.{key}")
                if option is None:
                    yield f"{name}.{key}: {_no_such_key(name, key)} ({path})"
                else:
                    yield _judged(option, value, str(path))


def from_environment(environ: Mapping[str, str]) -> Found:
    """What environment variables tell. An empty one tells nothing, as one that is not there."""
    for name, value in environ.items():
        if not name.startswith(PREFIX) or name in _OTHERS or not value:
            continue
        option = BY_VARIABLE.get(name)
        if option is None:
            known = [variable.removeprefix(PREFIX) for variable in (*BY_VARIABLE, *_OTHERS)]
            near = get_close_matches(name.removeprefix(PREFIX), known, 1)
            hint = f"did you mean {PREFIX}{near[0]}?" if near else "`framewire config show` lists all options"
            yield f"{name}: no such variable; {hint} (environment)"
        else:
            yield _read(option, value, f"${name}")


def from_flags(flags: Iterable[Flag]) -> Found:
    """What the command line tells."""
    for flag in flags:
        option = BY_KEY.get(flag.key)
        if option is None:
            table, _, key = flag.key.partition(".")
            known = table in {each.name for each in TABLES}
            why = _no_such_key(table, key) if known else _no_such_table(table, is_table=bool(key))
            yield f"{flag.key}: {why} ({flag.name})"
        else:
            yield _read(option, flag.value, flag.name)


def _read(option: Option, told: str, origin: str) -> Told | str:
    try:
        value = option.kind.read(told)
    except ValueError:
        return _wrong(option, told, origin)
    return _judged(option, value, origin)


def _judged(option: Option, value: Any, origin: str) -> Told | str:
    if option.kind.good(value):
        return Told(option, option.kind.made(value), origin)
    return _wrong(option, value, origin)


def _wrong(option: Option, value: Any, origin: str) -> str:
    # Somebody may have put a key where the path of its file belongs.
    shown = "what is given" if option.table == "security" or option.name == "curve" else repr(value)
    return f"{option.key}: {shown}; must be {option.kind.accepted} ({origin})"


def _no_such_table(name: str, *, is_table: bool) -> str:
    """What to say of a name at the top of a file; its value is never told, for it may be a secret."""
    elsewhere = [option.key for option in OPTIONS if option.name == name]
    if elsewhere and not is_table:
        return f"belongs into a table; there is {' and '.join(elsewhere)}"
    names = [table.name for table in TABLES]
    near = get_close_matches(name, names, 1)
    return f"no such table; did you mean [{near[0]}]?" if near else f"no such table; there are {', '.join(names)}"


def _no_such_key(table: str, name: str) -> str:
    here = [option.name for option in OPTIONS if option.table == table]
    elsewhere = [option.key for option in OPTIONS if option.name == name]
    near = get_close_matches(name, here, 1)
    if elsewhere and not near:
        return f"no such option; there is {' and '.join(elsewhere)}"
    if near:
        return f"no such option; did you mean {table}.{near[0]}?"
    return f"no such option; there are {', '.join(here)}"
