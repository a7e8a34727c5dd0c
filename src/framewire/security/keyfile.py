"""Keys as a person keeps them: TOML, in a file that only its owner can read or in an environment variable.

    [payments]
    key = "base64:…"                       # signs; or "hex:…", or { env = "PAYMENTS_KEY" }
    accept = ["hex:…", { key = "hex:…", algorithm = "sha1" }]   # still believed, for rotation
    algorithm = "sha256"                   # sha512; sha1 and md5 for old peers
    identities = ["pay.order", "pay.*"]
    insecure_short_keys = true             # take keys of less than 32 bytes, which old kino peers have
    once = true                            # no two messages have the same content; or a list of identities

    [telemetry]
    identities = ["metrics.*"]
    unsigned = true                        # or a list of identities

All problems are told at once, and none of them ever shows a key.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framewire.errors import ConfigError, UsageError
from framewire.security.keys import DomainKey

__all__ = ["parse", "read"]

Parsed = tuple[list[DomainKey], dict[str, list[str]], dict[str, list[str]], dict[str, list[str]]]

_SETTINGS = ("key", "accept", "algorithm", "identities", "unsigned", "once", "insecure_short_keys")


def read(path: Path) -> str:
    """The text of a key file, if nobody but its owner could have read or changed it."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            problems = [*_permission_problems(status), *_directory_problems(path)] if os.name == "posix" else []
            if problems:
                raise ConfigError(str(path), problems)
            return file.read().decode()
    except OSError as problem:
        raise ConfigError(str(path), [f"cannot be read: {problem.strerror}"]) from None
    except UnicodeDecodeError:
        raise ConfigError(str(path), ["is not UTF-8 text"]) from None


def _permission_problems(status: os.stat_result) -> list[str]:
    problems = []
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        problems.append(f"others can get at these keys (mode {mode:04o}); run: chmod 600")
    if status.st_uid not in (os.geteuid(), 0):
        problems.append("belongs to another user; its keys cannot be trusted")
    return problems


def _directory_problems(path: Path) -> list[str]:
    """Whether anybody could put another file in its place."""
    mode = stat.S_IMODE(path.parent.stat().st_mode)
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return [f"anybody can replace it: {path.parent} has mode {mode:04o}; run: chmod o-w {path.parent}"]
    return []


def parse(text: str, source: str, environ: Mapping[str, str]) -> Parsed:
    """Keys, and by domain identities, those unsigned and those said once, or ``ConfigError`` with every problem."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(source, [f"is not TOML: {problem}"]) from None
    reader = _Reader(environ)
    for domain, settings in document.items():
        if isinstance(settings, dict):
            reader.domain(domain, settings)
        else:
            reader.problems.append(f"{domain}: must be a table, [{domain}], with {', '.join(_SETTINGS)}")
    if not document:
        reader.problems.append("there are no domains; write a table for each, like [payments]")
    if reader.problems:
        raise ConfigError(source, reader.problems)
    return reader.keys, reader.identities, reader.unsigned, reader.once


class _Reader:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.problems: list[str] = []
        self.keys: list[DomainKey] = []
        self.identities: dict[str, list[str]] = {}
        self.unsigned: dict[str, list[str]] = {}
        self.once: dict[str, list[str]] = {}
        self.short = False

    def domain(self, domain: str, settings: dict[str, Any]) -> None:
        for name in settings.keys() - set(_SETTINGS):
            self.problems.append(f"{domain}.{name}: unknown setting; accepted are {', '.join(_SETTINGS)}")
        algorithm = settings.get("algorithm", "sha256")
        self.short = settings.get("insecure_short_keys", False)
        if not isinstance(self.short, bool):
            self.problems.append(f"{domain}.insecure_short_keys: must be true or false")
        if "key" in settings:
            self.key(domain, "key", settings["key"], algorithm)
        elif "unsigned" not in settings:
            self.problems.append(f"{domain}.key: missing; give a key, or say unsigned = true")
        accepted = settings.get("accept", [])
        if isinstance(accepted, list):
            for number, entry in enumerate(accepted):
                self.key(domain, f"accept[{number}]", entry, algorithm)
        else:
            self.problems.append(f"{domain}.accept: must be a list of keys")
        self.identities[domain] = self.names(domain, "identities", settings.get("identities", []))
        self.all_or_some(domain, "unsigned", settings.get("unsigned", False), self.unsigned)
        self.all_or_some(domain, "once", settings.get("once", False), self.once)

    def all_or_some(self, domain: str, setting: str, told: object, found: dict[str, list[str]]) -> None:
        if told is True:
            found[domain] = []
        elif told is not False:
            names = self.names(domain, setting, told)
            if names:
                found[domain] = names

    def key(self, domain: str, setting: str, entry: object, algorithm: object) -> None:
        where = f"{domain}.{setting}"
        if isinstance(entry, dict) and entry.keys() <= {"key", "env", "algorithm"} and len(entry) > 0:
            algorithm = entry.get("algorithm", algorithm)
            if ("key" in entry) == ("env" in entry):
                self.problems.append(f"{where}: needs either key or env")
                return
            entry = entry["key"] if "key" in entry else self.variable(where, entry["env"])
            if entry is None:
                return
        secret = _secret(entry)
        if secret is None:
            self.problems.append(f'{where}: must be "hex:…", "base64:…" or {{ env = "NAME" }}, and not empty')
            return
        try:
            self.keys.append(DomainKey(domain, secret, str(algorithm), insecure_short_keys=self.short))
        except UsageError as problem:
            self.problems.append(f"{where}: {problem}")

    def variable(self, where: str, name: object) -> str | None:
        value = self.environ.get(str(name))
        if value is None:
            self.problems.append(f"{where}: the environment variable {name} is not set")
        return value

    def names(self, domain: str, setting: str, value: object) -> list[str]:
        if isinstance(value, list) and all(isinstance(name, str) and name for name in value):
            return value
        self.problems.append(f"{domain}.{setting}: must be a list of message identities")
        return []


def _secret(text: object) -> bytes | None:
    """The bytes that a key's text stands for; None for what is not one."""
    if not isinstance(text, str):
        return None
    form, _, digits = text.strip().partition(":")
    try:
        if form == "hex":
            return bytes.fromhex(digits) or None
        if form == "base64":
            return base64.b64decode(digits, validate=True) or None
    except (ValueError, binascii.Error):
        pass
    return None
