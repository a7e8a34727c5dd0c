"""CURVE keys as files: a pair for each member, one that all who listen share, and a directory of who may connect.

The files are those of ZeroMQ's own tools: ``NAME.key`` has a public key, ``NAME.key_secret`` both halves. A
directory of public keys is read anew whenever it changes, so a member is let in by copying a file there.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from framewire.errors import ConfigError
from framewire.security import keyfile

__all__ = ["Allowed", "Curve", "CurveKeys", "KeyPair", "write_pairs"]

log = logging.getLogger("framewire.security")

_LINE = re.compile(r'^\s*(public|secret)-key\s*=\s*"([^"]*)"\s*$', re.MULTILINE)
_Z85 = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
_PUBLIC, _SECRET = ".key", ".key_secret"
_LOOK_AGAIN = 1.0
"""Seconds after which files are looked at that may have been written over in place."""
_BLINK = 0.05
"""Seconds within which two changes to a directory may have the same time."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A public key and its secret half, both as ZeroMQ writes them."""

    public: bytes
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CurveKeys:
    """All that one process needs: its own pair, the pair of whoever listens, and where the allowed ones are."""

    own: KeyPair
    cluster: KeyPair
    allowed: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Where the keys are: what a node or a rendezvous server is told."""

    key: str | os.PathLike[str]
    """The file with this member's own secret key; it connects to others with it."""
    cluster: str | os.PathLike[str]
    """The file with the secret key that all who listen in the cluster share."""
    allowed: str | os.PathLike[str]
    """The directory with the public keys of those who may connect."""

    def read(self) -> CurveKeys:
        """The keys, or ``ConfigError`` with all that is wrong with their files."""
        problems: list[str] = []
        files = (("key", self.key), ("cluster", self.cluster))
        own, cluster = (_pair(name, os.fspath(path), problems) for name, path in files)
        allowed = Path(self.allowed)
        if not allowed.is_dir():
            problems.append(
                f"allowed: {allowed} is no directory; it holds the public keys of those who may connect"
            )
        elif os.name == "posix" and (mode := stat.S_IMODE(allowed.stat().st_mode)) & stat.S_IWOTH:
            problems.append(
                f"allowed: anybody can let themselves in: {allowed} has mode {mode:04o}; run: chmod o-w"
            )
        else:
            problems += [f"allowed: {told}; run: chmod o-w" for told in map(_replaceable, _public(allowed)) if told]
        if problems or own is None or cluster is None:
            raise ConfigError("curve", problems)
        return CurveKeys(own, cluster, allowed)

    def __str__(self) -> str:
        return f"key={self.key},cluster={self.cluster},allowed={self.allowed}"


def _public(directory: Path) -> list[Path]:
    """Return the files with public keys in a directory."""
    return sorted(directory.glob(f"*{_PUBLIC}"))


def _replaceable(path: Path) -> str:
    """Say that anybody can put a key of their own into a file, where that is so."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return ""  # nobody is let in by it
    if os.name != "posix" or not mode & stat.S_IWOTH:
        return ""
    return f"anybody can let themselves in: {path} has mode {mode:04o}"


def _pair(name: str, path: str, problems: list[str]) -> KeyPair | None:
    try:
        found = _keys(keyfile.read(Path(path)))
    except ConfigError as wrong:
        # Somebody may have put a key where the path of its file belongs.
        shown = "what is given" if _Z85.fullmatch(path) else path
        problems += [f"{name}: {shown} {problem}" for problem in wrong.problems]
        return None
    if "public" not in found or "secret" not in found:
        problems.append(
            f"{name}: {path} has no pair of keys in it; make one with: framewire keys new {Path(path).stem}"
        )
        return None
    return KeyPair(found["public"], found["secret"])


def _keys(text: str) -> dict[str, bytes]:
    return {which: key.encode() for which, key in _LINE.findall(text) if _Z85.fullmatch(key)}


def write_pairs(directory: Path, pairs: Mapping[str, KeyPair]) -> list[tuple[Path, Path]]:
    """Write ``NAME.key`` for everybody and ``NAME.key_secret`` for its owner; where any is there already, none."""
    places = {name: (directory / f"{name}{_PUBLIC}", directory / f"{name}{_SECRET}") for name in pairs}
    there = [path for both in places.values() for path in both if path.exists()]
    if there:
        raise ConfigError("keys", [f"{path} is there already, and nothing was written" for path in there])
    try:
        for name, pair in pairs.items():
            public, secret = places[name]
            shown = f'metadata\n    name = "{name}"\ncurve\n    public-key = "{pair.public.decode()}"\n'
            whole = f'{shown}    secret-key = "{pair.secret.decode()}"\n'
            _write(secret, f"#   The secret key of {name}: keep it to its owner.\n{whole}", 0o600)
            _write(public, f"#   The public key of {name}: copy it to where {name} may connect.\n{shown}", 0o644)
    except OSError as problem:
        raise ConfigError("keys", [f"{problem.filename} cannot be written: {problem.strerror}"]) from None
    return list(places.values())


def _write(path: Path, text: str, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - it is open already, with its mode
        file.write(text)


class Allowed:
    """The public keys in a directory, as they are now. Where it cannot be read, nobody is allowed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._names: dict[bytes, str] = {}
        self._changed = -1
        self._again = 0.0
        self._useless: set[Path] = set()

    def name_of(self, public: bytes) -> str | None:
        """The name of the file that a key is in; None where it is in none."""
        try:
            changed = self._directory.stat().st_mtime_ns
        except OSError as problem:
            log.warning("%s cannot be read, so nobody may connect: %s", self._directory, problem.strerror)
            return None
        now = time.time()
        if changed != self._changed or now >= self._again or now < self._again - _LOOK_AGAIN:
            self._names = self._read()
            self._changed = changed
            self._again = now if now - changed / 1e9 < _BLINK else now + _LOOK_AGAIN
        return self._names.get(public)

    def _read(self) -> dict[bytes, str]:
        names: dict[bytes, str] = {}
        useless: set[Path] = set()
        for path in _public(self._directory):
            why = _replaceable(path) or "there is no public key in it"
            try:
                key = _keys(path.read_text(encoding="utf-8")).get("public")
            except (OSError, UnicodeDecodeError):
                key = None
            if key is not None and not _replaceable(path):
                names[key] = path.stem
                continue
            useless.add(path)
            if path not in self._useless:
                log.warning("%s lets nobody in: %s", path, why)
        self._useless = useless
        return names
