import re
from pathlib import Path

import pyarrow.parquet as pq

from framewire.cli.synth import synth
from framewire.node.deadletters import Reason
from framewire.synth.shapes import SHAPES
from framewire.synth.tables import TABLES
from framewire.synth.transfers import REASONS

PAGE = (Path(__file__).parents[2] / "docs" / "synth.md").read_text()


def test_every_column_of_every_table_is_on_the_page_and_no_other():
    tables = {}
    for part in PAGE.partition("## The tables of truth")[2].split("\n### ")[1:]:
        name, _, text = part.partition("\n")
        tables[name] = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)))
    assert tables == {name: schema.names for name, schema in TABLES.items()}


def test_every_table_is_written_with_its_columns(troubled):
    written = {path.stem: pq.read_schema(path) for path in (troubled.directory / "truth").glob("*.parquet")}
    assert {name: schema.names for name, schema in written.items()} == {
        name: schema.names for name, schema in TABLES.items()
    }
    assert all(written[name].types == schema.types for name, schema in TABLES.items())


def test_messages_die_for_reasons_that_a_node_knows():
    assert set(REASONS) <= set(Reason)


def test_every_option_is_on_the_page():
    options = {option for parameter in synth.params for option in parameter.opts} - {
        "--output",
        "--quiet",
        "--help",
    }
    told = PAGE.partition("## Options")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(--?[\w-]+)`", told)) == options


def test_the_parts_of_the_shapes_are_those_on_the_page():
    told = dict(re.findall(r"^\| `(\w+)` \| (\d+) % \|", PAGE, re.MULTILINE))
    assert {name: int(part) for name, part in told.items()} == {name: round(100 * p) for name, p in SHAPES.items()}
    assert abs(sum(SHAPES.values()) - 1) < 1e-9
