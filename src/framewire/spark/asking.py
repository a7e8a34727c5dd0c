"""A lake open to questions: its tables as views of DuckDB, which answers at once where Spark would still start.

Whoever asks can read these tables and nothing else: when the views are there, DuckDB is told to open no other file,
to reach no network and to take no other settings. Only what selects is let through, so a lake is never written to.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from framewire.errors import UsageError
from framewire.spark.stores import store_of
from framewire.spark.tables import LAYOUT, TABLES, Table

__all__ = ["Answer", "asked_of", "fetched", "files_of", "open_lake", "tables_in"]

_SIMPLE = {
    "timestamp": "TIMESTAMP",
    "binary": "BLOB",
    "string": "VARCHAR",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
}
_AT_ONCE = 1000


Days = tuple[dt.date, dt.date]
"""The first and the last of some days."""


@contextmanager
def open_lake(
    lake: str, tables: Iterable[str] = tuple(TABLES), days: Days | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that sees some tables of a lake, maybe some days only, and nothing besides.

    Times are UTC, without a zone.
    """
    tables = tuple(tables)
    _must_be_a_lake(lake)
    with tempfile.TemporaryDirectory(prefix="framewire-") as spilled, duckdb.connect() as connection:
        # What does not fit into memory goes where it is tidied up, not into the directory that we happen to be in.
        connection.execute(f"set temp_directory = {_text(spilled)}")
        connection.execute("set TimeZone = 'UTC'")
        connection.execute("set python_enable_replacements = false")
        for name in tables:
            view = _view(connection, lake, TABLES[name], files_of(lake, name, days))
            connection.execute(f"create view {_name(name)} as {view}")
        if "://" not in lake:
            allowed = [_text(f"{_directory(lake, name)}/") for name in tables]
            connection.execute(f"set allowed_directories = [{', '.join(allowed)}]")
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
        yield connection


def files_of(lake: str, table: str, days: Days | None = None) -> list[str]:
    """The files that a table consists of now. Names that begin with a dot or an underscore are not there yet."""
    if "://" not in lake:
        root = _directory(lake, table)
        return sorted(_walked(str(root), days)) if root.is_dir() else []
    found = _listed_elsewhere(lake, table)
    return sorted(path for path, parts in found if all(_is_meant(part, days) for part in parts))


def _walked(directory: str, days: Days | None) -> Iterator[str]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if not _is_meant(entry.name, days):
                continue
            if entry.name.endswith(".parquet"):
                yield entry.path
            elif entry.is_dir():
                yield from _walked(entry.path, days)


def _is_meant(name: str, days: Days | None) -> bool:
    """Whether a directory or file is there, and holds rows of some days, as far as its name tells."""
    if days is not None and name.startswith("date="):
        return str(days[0]) <= name.removeprefix("date=") <= str(days[1])
    return not name.startswith((".", "_"))


def _directory(lake: str, table: str) -> Path:
    return Path(lake, table).expanduser().absolute()


def tables_in(sql: str) -> list[str]:
    """The tables that a question may be about: those that it names anywhere."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    return [name for name in TABLES if name in words]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question is answered with. The rows can be read once, and are worked out while they are read."""

    names: list[str]
    kinds: list[str]
    rows: Iterator[tuple[Any, ...]]


def asked_of(connection: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    """The answer to a question, or ``UsageError`` with what is wrong with it."""
    try:
        statements = duckdb.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            kinds = ", ".join(statement.type.name for statement in statements) or "nothing"
            raise UsageError(
                f"a question is one SELECT (or DESCRIBE, SUMMARIZE, WITH, FROM, VALUES); this is {kinds}"
            )
        shape = connection.sql(sql)
        names, kinds_of = shape.columns, [str(kind) for kind in shape.types]
        cursor = connection.execute(_without_zones(sql.strip().rstrip(";"), names, kinds_of))
    except duckdb.CatalogException as problem:
        missing = re.search(r"Table with name (\S+) does not exist", str(problem))
        if missing is None:
            raise UsageError(str(problem)) from None
        raise UsageError(f"there is no table {missing[1]}; the lake has {', '.join(TABLES)}") from None
    except duckdb.PermissionException:
        raise UsageError(f"only the tables of the lake can be read here: {', '.join(TABLES)}") from None
    except duckdb.IOException:
        raise  # nothing is wrong with the question
    except duckdb.Error as problem:
        raise UsageError(str(problem)) from None
    return Answer(names, kinds_of, fetched(cursor))


def fetched(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    """The rows of whatever was executed last, without holding all of them."""
    while some := cursor.fetchmany(_AT_ONCE):
        yield from some


def _without_zones(sql: str, names: list[str], kinds: list[str]) -> str:
    """Times with a zone need a package that nothing else here does; in UTC they say no more than times without."""
    if not any("TIME ZONE" in kind for kind in kinds):
        return sql
    chosen = [
        f"#{place}{_WITHOUT.get(kind, '::VARCHAR' if 'TIME ZONE' in kind else '')} as {_name(name)}"
        for place, (kind, name) in enumerate(zip(kinds, names, strict=True), 1)
    ]
    return f"select {', '.join(chosen)} from ({sql}\n)"  # noqa: S608 - whoever asks may ask anything


_WITHOUT = {"TIMESTAMP WITH TIME ZONE": "::TIMESTAMP"}


def _must_be_a_lake(lake: str) -> None:
    if "://" in lake:
        return
    there = Path(lake).expanduser()
    if not any((there / name).is_dir() for name in TABLES):
        what = (
            "holds no table of a lake"
            if there.is_dir()
            else "is no directory"
            if there.exists()
            else "does not exist"
        )
        raise UsageError(
            f"{lake} {what}; make a lake with: framewire pipeline run --captures captures/ --lake {lake}"
        )
    state = there / "_state" / "lake.json"
    told = json.loads(state.read_text()) if state.exists() else {}
    if told.get("format", "parquet") != "parquet":
        raise UsageError(f"{lake} is kept as {told['format']}, which DuckDB does not read; ask it with Spark")
    if told.get("layout", LAYOUT) != LAYOUT:
        raise UsageError(
            f"{lake} has layout {told['layout']} and this framewire reads {LAYOUT}; use the framewire that wrote "
            f"it, or run the captures into a new lake"
        )


def _view(connection: duckdb.DuckDBPyConnection, lake: str, table: Table, files: list[str]) -> str:
    """A table with exactly its declared columns, in their types, whatever wrote the files and even without any."""
    every = {name: _kind(kind) for name, (kind, _) in {**table.columns, **table.filed_under}.items()}
    if not files:
        return f"select {', '.join(f'null::{kind} as {_name(name)}' for name, kind in every.items())} limit 0"
    columns = ", ".join(f"{_name(name)}::{kind} as {_name(name)}" for name, kind in every.items())
    if "://" in lake:
        connection.register(f"{table.name} files", _dataset(lake, table, files))
        return f"select {columns} from {_name(f'{table.name} files')}"  # noqa: S608 - names of our own
    filed = ", ".join(f"{_text(name)}: {_kind(kind)}" for name, (kind, _) in table.filed_under.items())
    listed = ", ".join(map(_text, files))
    hive = f"hive_partitioning = true, hive_types = {{{filed}}}"
    return f"select {columns} from read_parquet([{listed}], {hive})"  # noqa: S608 - same


def _kind(declared: str) -> str:
    """DuckDB's name for a type of Spark."""
    if declared.startswith("array<"):
        return f"{_kind(declared[6:-1])}[]"
    if declared.startswith("struct<"):
        fields = [field.partition(":") for field in _split(declared[7:-1])]
        return f"STRUCT({', '.join(f'{_name(name)} {_kind(kind)}' for name, _, kind in fields)})"
    return _SIMPLE[declared]


def _split(fields: str) -> list[str]:
    """The fields of a struct, whose own types may have commas in them."""
    return re.findall(r"(?:[^,<]|<[^<>]*(?:<[^<>]*>[^<>]*)*>)+", fields)


def _listed_elsewhere(lake: str, table: str) -> list[tuple[str, tuple[str, ...]]]:
    from pyarrow import fs  # noqa: PLC0415 - lakes on this machine do without

    store, root = store_of(lake)
    base = f"{root.rstrip('/')}/{table}"
    infos = store.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=True))
    paths = [info.path for info in infos if info.type == fs.FileType.File and info.path.endswith(".parquet")]
    return [(path, tuple(path[len(base) :].strip("/").split("/"))) for path in paths]


def _dataset(lake: str, table: Table, files: list[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - same
    from pyarrow import dataset  # noqa: PLC0415 - same

    store, root = store_of(lake)
    kinds: Mapping[str, Any] = {"date": pa.date32(), "string": pa.string(), "bigint": pa.int64()}
    filed = pa.schema([(name, kinds[kind]) for name, (kind, _) in table.filed_under.items()])
    hive = dataset.partitioning(filed, flavor="hive")
    return dataset.dataset(
        files, filesystem=store, format="parquet", partitioning=hive, partition_base_dir=f"{root}/{table.name}"
    )


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
