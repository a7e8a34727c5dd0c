"""The configuration of one process: every option with its value and where that comes from.

A flag beats a variable, a variable beats the file, and the file beats the default.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framewire.capture.settings import CaptureSettings
from framewire.cluster.settings import ClusterSettings
from framewire.config.options import BY_KEY, OPTIONS, TABLES, Option
from framewire.config.sources import CONFIG, KEYS, Flag, Told, from_environment, from_file, from_flags
from framewire.errors import ConfigError
from framewire.node.core import Settings
from framewire.security import KeyRing

if TYPE_CHECKING:
    from framewire.capture import Capture

__all__ = ["DEFAULT", "FILE", "Configuration", "load"]

FILE = "framewire.toml"
"""The file that is read where there is one and no other is named."""
DEFAULT = "default"


class Configuration:
    """All options. ``config["cluster.bind"]`` is a value; ``file`` is the file that was read, if any was."""

    def __init__(self, told: Mapping[str, Told], *, file: Path | None, environ: Mapping[str, str]) -> None:
        self._told = told
        self._environ = environ
        self.file = file

    def __getitem__(self, key: str) -> Any:
        told = self._told.get(key)
        return BY_KEY[key].default if told is None else told.value

    def origin(self, key: str) -> str:
        """Where a value comes from: default, a file, a $VARIABLE, or a --flag."""
        told = self._told.get(key)
        return DEFAULT if told is None else told.origin

    def is_told(self, key: str) -> bool:
        """Whether anybody has said anything about an option."""
        return key in self._told

    def __iter__(self) -> Iterator[tuple[Option, Any, str]]:
        """Every option with its value and its origin."""
        return ((option, self[option.key], self.origin(option.key)) for option in OPTIONS)

    def told(self, table: str) -> dict[str, Any]:
        """The options of a table that somebody has said something about."""
        return {told.option.name: told.value for told in self._told.values() if told.option.table == table}

    @property
    def has_keys_in_environment(self) -> bool:
        """Whether the keys are those of a variable, and not those of a file."""
        return bool(self._environ.get(KEYS)) and not self.origin("security.keys").startswith(("$", "-"))

    def keyring(self) -> KeyRing | None:
        """The keys, or ``ConfigError`` with all that is wrong with them."""
        if self.has_keys_in_environment:
            return KeyRing.from_env(KEYS, self._environ)
        path = self["security.keys"]
        return None if path is None else KeyRing.from_file(path)

    def check_keys(self) -> KeyRing | None:
        """The keys, once all files with keys were read as a node and a server read them, or ``ConfigError``."""
        ring: KeyRing | None = None
        problems: list[str] = []
        try:
            ring = self.keyring()
        except ConfigError as wrong:
            problems += [f"{wrong.source} {problem}" for problem in wrong.problems]
        for key in ("cluster.curve", "rendezvous.curve"):
            try:
                if self[key] is not None:
                    self[key].read()
            except ConfigError as wrong:
                problems += [f"{key}.{problem}" for problem in wrong.problems]
        if not problems and not self["cluster.open"] and ring is None and self["cluster.curve"] is None:
            problems.append(
                "cluster.open: false, but there are neither domain keys (security.keys) nor cluster.curve: nobody "
                "could be believed"
            )
        if problems:
            raise ConfigError("keys", problems)
        return ring

    def capture(self) -> Capture | None:
        """A recorder; None where nothing is recorded."""
        options = self.told("capture")
        path = options.pop("path", None)
        if path is None:
            return None
        from framewire.capture import Capture  # noqa: PLC0415 - only those who record wait for pyarrow

        return Capture(path, **options)

    def node_options(self) -> dict[str, Any]:
        """What ``fw.Node`` is told, keys and capture apart."""
        names = {field.name for field in dataclasses.fields(Settings)} | {"identity"}
        node = {name: value for name, value in self.told("node").items() if name in names}
        return node | self.told("cluster")


def load(
    *,
    file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Iterable[Flag] = (),
) -> Configuration:
    """Everything that was told, or one ``ConfigError`` that lists all that is wrong with it.

    ``file`` is the one to read; else ``FRAMEWIRE_CONFIG`` names it, else it is ``framewire.toml`` where that is.
    """
    path = _chosen(file, environ)
    told: dict[str, Told] = {}
    problems: list[str] = []
    for source in (from_file(path) if path else (), from_environment(environ), from_flags(flags)):
        for found in source:
            if isinstance(found, str):
                problems.append(found)
            else:
                told[found.option.key] = found
    problems += _second_look(told)
    problems += _contradictions(told)
    if problems:
        raise ConfigError("configuration", problems)
    return Configuration(told, file=path, environ=environ)


def _chosen(file: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> Path | None:
    named = file or environ.get(CONFIG)
    if named:
        return Path(named)
    usual = Path(FILE)
    return usual if usual.exists() else None


def _second_look(told: Mapping[str, Told]) -> list[str]:
    """What the settings classes themselves find wrong: their word is the last."""
    problems: list[str] = []
    for table in TABLES:
        if table.settings not in (Settings, ClusterSettings, CaptureSettings):
            continue
        names = {field.name for field in dataclasses.fields(table.settings)}
        values = {
            each.option.name: each.value
            for each in told.values()
            if each.option.table == table.name and each.option.name in names
        }
        try:
            table.settings(**values)
        except ConfigError as wrong:
            problems += [f"{table.name}.{problem}" for problem in wrong.problems]
    return problems


def _contradictions(told: Mapping[str, Told]) -> list[str]:
    """What is right by itself, and cannot be together."""
    workers = told["node.workers"].value if "node.workers" in told else 0
    if workers < 2:
        return []
    return [
        f"{key}: {told[key].value!r} is one place, and there are {workers} workers; give a range of ports such as "
        f"tcp://host:7500-7599, or leave the port open with * ({told[key].origin})"
        for key in ("cluster.bind", "cluster.health")
        if key in told and not _has_room(told[key].value)
    ]


def _has_room(address: str) -> bool:
    return address.endswith("*") or "-" in address.rpartition(":")[2]
