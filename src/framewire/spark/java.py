"""Finding a Java that Spark can run on, and fetching one where there is none.

Spark 4 needs Java 17 or newer. Where a machine has several, the one that its owner named comes first.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from framewire.errors import UsageError

__all__ = ["LEAST", "find_java", "java_home", "release_of"]

LEAST = 17
_USUAL = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)
_USUAL_AT_HOME = (".sdkman/candidates/java/*", ".jdks/*", ".jdk/*", ".jre/*")  # the last two are install-jdk's

log = logging.getLogger(__name__)


def java_home(environ: Mapping[str, str] = os.environ) -> Path:
    """The home of a Java that will do; installs one where none is found, or says why that is impossible."""
    found = find_java(environ)
    return _installed() if found is None else found


def find_java(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The home of the first Java that is new enough: JAVA_HOME, the PATH, then the usual places."""
    for home in _candidates(environ):
        release = release_of(home)
        if release is not None and release >= LEAST:
            return home
    return None


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if named := environ.get("JAVA_HOME"):
        yield Path(named)
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(on_path).resolve().parent.parent
    for pattern in _USUAL:
        yield from sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)
    if home := environ.get("HOME"):
        for pattern in _USUAL_AT_HOME:
            yield from sorted(Path(home).glob(pattern), reverse=True)


def release_of(home: Path) -> int | None:
    """Which release of Java is at home there, 17 for example; None where there is none that runs."""
    java = home / "bin" / "java"
    if not java.exists():
        return None
    try:
        told = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(version[1]) if version else None


def _installed() -> Path:
    log.warning("no Java %d or newer was found; one is now being installed for this user (about 45 MB)", LEAST)
    try:
        import jdk  # type: ignore[import-untyped]  # noqa: PLC0415 - needed once in the life of a machine

        home = Path(jdk.install(str(LEAST), jre=True))
    except ImportError:
        raise _no_java("install-jdk, which could fetch one, is missing") from None
    except Exception as problem:
        raise _no_java(f"fetching one failed: {problem}") from problem
    if release_of(home) is None:
        raise _no_java(f"the one that was fetched does not run ({home})")
    log.warning("Java is installed in %s", home)
    return home


def _no_java(detail: str) -> UsageError:
    advice = f"install Java {LEAST} or newer, or set JAVA_HOME to one"
    return UsageError(f"java: Spark needs Java {LEAST} or newer, none was found, and {detail}; {advice}")
