"""What the soak looks for, it finds."""

import xml.etree.ElementTree as ET

import pytest
from bench.curves import page
from bench.soak import STAYING, charts, problems, quarter

CALM = dict.fromkeys(STAYING, 0)


def samples(count=41, **columns):
    """Rows as the soak writes them; a column is a number, or a function of how far the run is, from 0 to 1."""
    rows = []
    for number in range(count):
        row = {"seconds": 2.0 * number, "memory server": 30.0, "files server": 20}
        for name in STAYING:
            row |= {f"memory {name}": 40.0, f"files {name}": 30, f"pending {name}": 5}
            row |= {f"median {name}": 20.0, f"p99 {name}": 50.0}
        for column, value in columns.items():
            row[column.replace("_", " ")] = value(number / (count - 1)) if callable(value) else value
        rows.append(row)
    return rows


def test_a_run_in_which_nothing_grows_is_in_order():
    assert not problems(samples(), {"replied": 100, "Expired": 2}, CALM)


def test_what_grows_while_caches_fill_is_in_order():
    assert not problems(samples(memory_a=lambda part: 40 + 20 * min(part, 0.25)), {}, CALM)


def test_memory_that_grows_by_more_than_a_twentieth_is_found():
    found = problems(samples(memory_b=lambda part: 40 + 6 * part), {}, CALM)
    assert len(found) == 1
    assert "memory of b" in found[0]
    assert not problems(samples(memory_b=lambda part: 40 + 3 * part), {}, CALM)


def test_descriptors_that_do_not_come_back_are_found():
    assert "descriptors" in problems(samples(files_server=lambda part: 20 + 30 * part), {}, CALM)[0]


def test_promises_that_are_left_open_are_found():
    assert "2 promises are open at a" in problems(samples(), {}, {**CALM, "a": 2})[0]


def test_asks_that_end_in_something_unknown_are_found():
    assert "untyped" in problems(samples(), {"replied": 9, "untyped: KeyError()": 1}, CALM)[0]


def test_a_quarter_is_a_quarter():
    rising = samples(memory_a=lambda part: 100 * part)
    assert [quarter(rising, number, "memory a") for number in range(4)] == pytest.approx([11, 36, 61, 86], abs=3)


def test_the_curves_are_a_picture():
    drawn = ET.fromstring(page(charts(samples())))  # noqa: S314 - our own
    lines = [each for each in drawn.iter() if each.tag.endswith("polyline")]
    assert len(lines) == 4 + 4 + 3 + 2
    assert {len(line.get("points").split()) for line in lines} == {40, 41}
