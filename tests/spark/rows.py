"""Frames for Spark, and what the Python codec makes of them in the terms of Spark's columns."""

from __future__ import annotations

import importlib.util
import random
import re
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from tests.wire import vectors

from framewire.wire import WireError, decode
from framewire.wire.layout import LAYOUTS

ROOT = Path(__file__).parent.parent.parent
NUMBERED = re.compile(rb"(0|[1-9][0-9]{0,4})(?:\.0)?")


@cache
def recorded():
    """Every recorded message, altered ones included."""
    names = sorted(path.stem for path in vectors.FOLDER.glob("*.jsonl"))
    return [case["frames"] for name in names for case in vectors.load(name)]


@cache
def fuzzer():
    spec = importlib.util.spec_from_file_location("framewire_fuzz_wire", ROOT / "fuzz" / "wire.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mutations(count, seed=1):
    """Recorded messages and the fuzzer's finds after its accidents."""
    rng = random.Random(seed)  # noqa: S311 - the same cases every time
    pool = [*fuzzer().seeds(), *fuzzer().read_corpus(fuzzer().CORPUS)]
    return [fuzzer().mutated(rng, rng.choice(pool), rng.choice(pool)) for _ in range(count)]


def drawn(strategy, count):
    """Examples of a strategy, all at once: one Spark job for many of them."""
    found = []

    @settings(max_examples=count, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(frames):
        found.append(list(frames))

    draw()
    return found


def number(version, versions=None):
    if isinstance(version, int):
        return version
    if versions and version in versions:
        return versions[version]
    match = NUMBERED.fullmatch(version)
    return int(match[1]) if match and int(match[1]) <= 0xFFFF else None


def expected(frames, ttl_unit="ms", versions=None):
    """The row that Spark must make: the codec's message field by field, or nothing but its reason."""
    try:
        message = decode(frames, ttl_unit=ttl_unit)
    except WireError as problem:
        return {"error": problem.reason}
    row = {name: getattr(message, name) for name in message.__struct_fields__}
    row["version_raw"] = frames[-LAYOUTS[message.wire_version].holder("version").frame]
    row["version"] = number(message.version, versions)
    row["body"] = message.body
    row["body_frames"] = list(message.body_frames)
    row["distribution"] = int(message.distribution)
    points = message.callback_points
    row["callback_points"] = [
        (point.identity, number(point.version, versions), point.partition) for point in points
    ]
    row["routing"] = [(address.uri, address.identity) for address in message.routing]
    return row


def plain(row):
    """A row of Spark's without its nulls, in plain values."""
    values = {name: row[name] for name in row.asDict() if name not in ("row", "frames")}
    return {name: plain_value(value) for name, value in values.items() if value is not None}


def plain_value(value):
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [plain_value(one) for one in value]
    return tuple(map(plain_value, value)) if isinstance(value, tuple) else value


def table(spark, cases):
    """A table of frames, numbered in their order."""
    numbered = [(row, None if frames is None else list(frames)) for row, frames in enumerate(cases)]
    return spark.createDataFrame(numbered, "row int, frames array<binary>")


def differences(rows, cases, **options):
    """Where Spark's rows are not what the codec says, as (frames, Spark's, the codec's)."""
    found = []
    for row in rows:
        frames = cases[row["row"]]
        says = {name: value for name, value in expected(frames, **options).items() if value is not None}
        if plain(row) != says:
            found.append((frames, plain(row), says))
    return found
