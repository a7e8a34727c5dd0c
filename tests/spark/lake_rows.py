"""Small lakes from rows that are written by hand, in the columns and directories that the lake declares."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from framewire.spark.tables import TABLES

BEGIN = dt.datetime(2026, 3, 1, 8, 0, tzinfo=dt.UTC)
_SIMPLE = {
    "timestamp": pa.timestamp("us", "UTC"),
    "binary": pa.binary(),
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}


def after(milliseconds):
    return BEGIN + dt.timedelta(milliseconds=milliseconds)


def arrow_type(declared):
    if declared.startswith("array<"):
        return pa.list_(arrow_type(declared[6:-1]))
    if declared.startswith("struct<"):
        fields = [field.split(":", 1) for field in re.split(r",(?=\w+:)", declared[7:-1])]
        return pa.struct([(name, arrow_type(kind)) for name, kind in fields])
    return _SIMPLE[declared]


def make_lake(directory, **tables):
    """Write rows into the tables of a lake; a row is filed under its ``filed`` time, or under ``BEGIN``."""
    for name, rows in tables.items():
        table = TABLES[name]
        for row in rows:
            filed = row.pop("filed", BEGIN)
            places = {"date": f"{filed:%Y-%m-%d}", "bucket": f"{filed:%Hh}00", "batch": "0"}
            parts = [f"{key}={places[key]}" for key in table.filed_under]
            folder = Path(directory, name, *parts)
            folder.mkdir(parents=True, exist_ok=True)
            unknown = row.keys() - table.columns.keys()
            assert not unknown, f"{name} has no {unknown}"
            columns = {key: pa.array([row.get(key)], arrow_type(kind)) for key, (kind, _) in table.columns.items()}
            pq.write_table(pa.table(columns), folder / f"part-{uuid.uuid4()}.parquet")
    return directory


def message_id(identity, version=1, partition=b""):
    """The columns of a message id."""
    inside = f" [{partition.decode()}]" if partition else ""
    text = f"{identity.decode()} v{version}{inside}"
    return {"message": text, "identity": identity, "version": version, "partition": partition}


def flow_id(text):
    """The columns of a correlation id."""
    return {"flow": text, "correlation_id": None if text is None else text.encode()}


def way(sender, receiver):
    """The columns of two nodes."""
    return {
        "from_name": sender,
        "to_name": receiver,
        "from_node": sender.encode(),
        "to_node": receiver.encode(),
    }


def at_node(name):
    return {"node_name": name, "node": name.encode()}
