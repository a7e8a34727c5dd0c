"""Where a lake lies, for whoever looks at it without Spark: a directory here, or a store that pyarrow knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from framewire.errors import UsageError

__all__ = ["store_of"]

_SAME_STORE = {"s3a": "s3", "s3n": "s3"}
"""What Spark calls a store that pyarrow knows by another name."""


def store_of(lake: str) -> tuple[Any, str]:
    """A file system of pyarrow's, and the place of the lake in it."""
    from pyarrow import ArrowInvalid, fs  # noqa: PLC0415 - who only asks a lake on this machine does without

    if "://" not in lake:
        return fs.LocalFileSystem(), str(Path(lake).expanduser().absolute())
    scheme, _, rest = lake.partition("://")
    try:
        store, root = fs.FileSystem.from_uri(f"{_SAME_STORE.get(scheme, scheme)}://{rest}")
    except (ArrowInvalid, OSError, ImportError) as problem:
        raise UsageError(
            f"{lake} cannot be opened: {problem}. Give a directory, or a URI that pyarrow knows, such as s3://bucket/lake"
        ) from None
    return store, root.rstrip("/")
