"""The few things that a lake does with files and directories itself, wherever Spark can reach: file, s3a, hdfs."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

__all__ = ["Files"]


class Files:
    """A file system of Hadoop's, through the JVM of a session."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        # PySpark has no other door to Hadoop's file systems, which are what Spark itself reads and writes with.
        jvm: Any = spark._jvm  # noqa: SLF001
        self._path = jvm.org.apache.hadoop.fs.Path
        self._system = self._path(root).getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001
        self.root = str(self._system.makeQualified(self._path(root)).toString())

    def exists(self, place: str) -> bool:
        """Whether there is something."""
        return bool(self._system.exists(self._path(place)))

    def names(self, place: str) -> list[str]:
        """The names in a directory, sorted; none where there is no directory."""
        if not self.exists(place):
            return []
        return sorted(str(status.getPath().getName()) for status in self._system.listStatus(self._path(place)))

    def size(self, place: str) -> int:
        """The bytes of all files below a directory."""
        return int(self._system.getContentSummary(self._path(place)).getLength()) if self.exists(place) else 0

    def remove(self, place: str) -> None:
        """Remove a file or directory, if it is there."""
        self._system.delete(self._path(place), True)

    def move(self, place: str, target: str) -> None:
        """Put a file or directory in another place, instead of what is there."""
        self.remove(target)
        self._system.mkdirs(self._path(target).getParent())
        if not self._system.rename(self._path(place), self._path(target)):
            raise OSError(f"{place}: cannot be moved to {target}")

    def read(self, place: str) -> str | None:
        """The text of a small file; None where there is none."""
        if not self.exists(place):
            return None
        stream = self._system.open(self._path(place))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, place: str, text: str) -> None:
        """Write a small file, whole or not at all."""
        draft = f"{place}.draft"
        stream = self._system.create(self._path(draft), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        self.move(draft, place)
