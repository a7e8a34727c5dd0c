"""What the values of options are: how each is written, read from text, and told from what it is not.

A file has values with types, an environment variable has only text. So each kind reads text into what a file would
have held, and both are then judged alike.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from framewire.cluster.addresses import can_bind, can_connect
from framewire.security.curve import Curve

__all__ = [
    "ADVERTISED",
    "BODIES",
    "CONNECT",
    "CURVE",
    "ENDPOINT",
    "FLAG",
    "KEY_FILE",
    "LISTEN",
    "SERVERS",
    "SHARE",
    "V1_NODES",
    "VERSIONS",
    "Kind",
    "choice",
    "many",
    "or_never",
    "seconds",
    "text",
    "whole",
]


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Kind:
    """What an option may be: in words, from text, as a test, and as the settings classes want it."""

    accepted: str
    read: Callable[[str], Any]
    """What a file would hold for this text; ``ValueError`` where it stands for nothing."""
    good: Callable[[Any], bool]
    made: Callable[[Any], Any] = _same


def text(accepted: str, good: Callable[[str], bool] = bool) -> Kind:
    """Words, of which some may be wrong."""
    return Kind(accepted, str, lambda value: isinstance(value, str) and good(value))


def choice(*names: str) -> Kind:
    """One of a few words."""
    return Kind(" or ".join([", ".join(names[:-1]), names[-1]]), str, lambda value: value in names)


def whole(least: int, most: int | None = None) -> Kind:
    """A whole number."""
    accepted = f"a whole number, at least {least}" if most is None else f"a whole number from {least} to {most}"
    limit = math.inf if most is None else most
    return Kind(accepted, int, lambda value: _is_whole(value) and least <= value <= limit)


def seconds(*, zero: bool = False, most: float = math.inf) -> Kind:
    """A length of time."""
    accepted = "0 or more seconds" if zero else "a positive number of seconds"
    if most != math.inf:
        accepted += f", at most {most:g}"
    return Kind(accepted, _number, lambda value: _is_number(value) and 0 <= value <= most and (value > 0 or zero))


def or_never(kind: Kind) -> Kind:
    """The same, or the word ``never``, which the settings classes know as None."""
    return Kind(
        f"{kind.accepted}, or never",
        lambda told: told if told == _NEVER else kind.read(told),
        lambda value: value == _NEVER or kind.good(value),
        lambda value: None if value == _NEVER else kind.made(value),
    )


def many(kind: Kind, accepted: str) -> Kind:
    """A list; in a variable, with commas between."""
    return Kind(
        accepted,
        lambda told: [kind.read(part.strip()) for part in told.split(",") if part.strip()],
        lambda value: isinstance(value, list) and all(map(kind.good, value)),
        lambda value: tuple(map(kind.made, value)),
    )


_NEVER = "never"
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def _flag(told: str) -> bool:
    if told.lower() in _YES:
        return True
    if told.lower() in _NO:
        return False
    raise ValueError(told)


def _number(told: str) -> float:
    return int(told) if re.fullmatch(r"[+-]?\d+", told) else float(told)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_advertised(value: str) -> bool:
    return can_connect(value.replace(":*", ":1"))


def _server(told: str) -> str | list[str]:
    return told.split("|") if "|" in told else told


def _is_server(value: object) -> bool:
    return len(value) == 2 and all(map(can_connect, value)) if isinstance(value, list) else can_connect(value)


def _bodies(told: str) -> str | int:
    return int(told) if told.isdigit() else told


def _versions(told: str) -> dict[str, int]:
    pairs = [part.rpartition("=") for part in told.split(",") if part.strip()]
    return {name.strip(): int(number) for name, _, number in pairs}


def _v1_nodes(told: str) -> dict[str, list[str]]:
    pairs = [part.partition("=") for part in told.split(",") if part.strip()]
    return {uri.strip(): [name.strip() for name in names.split("|")] for uri, _, names in pairs}


def _is_v1_nodes(value: object) -> bool:
    return isinstance(value, dict) and all(
        can_connect(uri) and isinstance(names, list) and names and all(isinstance(name, str) for name in names)
        for uri, names in value.items()
    )


def _curve(told: str) -> dict[str, str]:
    return {name.strip(): path.strip() for name, _, path in (part.partition("=") for part in told.split(","))}


def _is_curve(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {field.name for field in dataclasses.fields(Curve)}:
        return False
    return all(isinstance(path, str) and path for path in value.values())


def _is_endpoint(value: str) -> bool:
    found = re.fullmatch(r"(?:\[[0-9a-fA-F:.]+\]|[\w.-]+|\*):(\d{1,5})", value)
    return found is not None and int(found[1]) <= 0xFFFF


FLAG = Kind("true or false", _flag, lambda value: isinstance(value, bool))
KEY_FILE = text("the path of a key file", lambda told: bool(told) and not told.startswith(("hex:", "base64:")))
SHARE = Kind("a share from 0 to 1", _number, lambda value: _is_number(value) and 0 <= value <= 1)
LISTEN = text("like tcp://host:port, tcp://host:7500-7599, tcp://host:* or ipc://path", can_bind)
ADVERTISED = text("like tcp://host:port or tcp://host:*", _is_advertised)
CONNECT = text("like tcp://host:port or ipc://path", can_connect)
CURVE = Kind(
    "a table with key, cluster and allowed: two files and a directory; in a variable, key=…,cluster=…,allowed=…",
    _curve,
    _is_curve,
    lambda value: Curve(**value),
)
ENDPOINT = text("HOST:PORT, such as 127.0.0.1:8080 or *:8080; port 0 for any", _is_endpoint)
SERVERS = many(
    Kind("", _server, _is_server, lambda value: tuple(value) if isinstance(value, list) else value),
    "a list of addresses like tcp://host:port; a server that does not speak at the next port as a list of both, "
    "in a variable as one|other",
)
BODIES = Kind(
    "keep, drop, or a number of bytes",
    _bodies,
    lambda value: value in ("keep", "drop") if isinstance(value, str) else _is_whole(value) and value >= 0,
)
V1_NODES = Kind(
    "a table of addresses, each with a list of messages such as orders.place or orders.place 2.0; in a variable, "
    "tcp://host:7000=orders.place|orders.cancel 2.0,tcp://…=…",
    _v1_nodes,
    _is_v1_nodes,
)
VERSIONS = Kind(
    "a table of V1 versions with their numbers from 0 to 65535; in a variable, 1.a=3,1.b=4",
    _versions,
    lambda value: (
        isinstance(value, dict) and all(_is_whole(number) and 0 <= number <= 0xFFFF for number in value.values())
    ),
    lambda value: {name.encode(): number for name, number in value.items()},
)
