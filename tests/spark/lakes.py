"""Lakes for tests: made from captures, and looked at with DuckDB, which shares no code with what made them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import duckdb

from framewire.security import KeyRing
from framewire.spark.pipeline import Pipeline
from framewire.spark.tables import TABLES

FOR_FILING = {"batch"}
"""Tells how rows came in, which is not what the tables say."""


PERIODS = {"bucket": "30m", "horizon": "10m", "late": "3h"}
"""Shorter than usual, so that little traffic has several buckets; and nothing is too late."""


@dataclass(frozen=True)
class Made:
    """Made-up captures with their truth, and a lake."""

    directory: Path
    lake: Path

    def has(self, table):
        return any((self.lake / table).rglob("*.parquet"))

    def table(self, name):
        return f"read_parquet('{self.lake}/{name}/**/*.parquet', hive_partitioning=true)"

    def truth(self, name):
        return f"'{self.directory}/truth/{name}.parquet'"

    def ask(self, query):
        named = {f"{{{name}}}": self.table(name) for name in TABLES}
        known = {f"<{path.stem}>": f"'{path}'" for path in (self.directory / "truth").glob("*.parquet")}
        for name, place in {**named, **known}.items():
            query = query.replace(name, place)
        return duckdb.sql(query).fetchall()

    def differences(self, mine, told):
        """Rows that only the lake has, and rows that only the truth has."""
        return self.ask(f"({mine}) except all ({told})"), self.ask(f"({told}) except all ({mine})")

    def contents(self):
        """Every row of every table, in an order of its own."""
        found = {}
        for name, table in TABLES.items():
            kept = [f'"{column}"' for column in table.names if column not in FOR_FILING]
            rows = self.ask(f"select {', '.join(kept)} from {{{name}}}") if self.has(name) else []  # noqa: S608
            found[name] = sorted(map(repr, rows))
        return found


def run(spark, directory, lake, *, captures=None, **options):
    """Run the pipeline over captures, judging losses at once: what is not there will not come."""
    keys = KeyRing.from_file(directory / "truth" / "keys.toml")
    options = {"lost_after": "0s", **options}
    progress = options.pop("progress", None)
    pipeline = Pipeline(str(captures or directory / "captures"), str(lake), keys=keys, spark=spark, **options)
    return pipeline.run(progress=progress)


def segments(directory):
    """All segments, in the order of their names: each node's in order of time."""
    return sorted((directory / "captures").rglob("segment-*.parquet"), key=lambda path: path.name)


def feed(directory, pieces, target, *, name=None):
    """Put some segments where a pipeline looks for them."""
    for path in pieces:
        place = target / path.relative_to(directory / "captures").parent
        place.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place / (name(path) if name else path.name))
