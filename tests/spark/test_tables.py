"""The tables are declared in one place, and the documentation says the same."""

from pathlib import Path

import pytest

from framewire.spark.tables import TABLES

PAGE = Path(__file__).parent.parent.parent / "docs" / "tables.md"


def section(table):
    """What the page must say of a table."""
    under = ", ".join(f"`{name}`" for name in table.filed_under)
    rows = [f"| `{name}` | {kind} | {about} |" for name, (kind, about) in table.columns.items()]
    head = ["| column | type | what it is |", "|---|---|---|"]
    return "\n".join([f"## {table.name}", table.about, f"Filed under {under}.", "", *head, *rows, ""])


@pytest.mark.parametrize("name", TABLES)
def test_the_page_tells_every_column_as_it_is_declared(name):
    assert section(TABLES[name]) in PAGE.read_text() + "\n"


def test_the_page_tells_of_no_other_tables():
    headings = [line[3:] for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert headings == list(TABLES)


def test_spark_reads_every_schema(spark):
    for table in TABLES.values():
        assert spark.createDataFrame([], table.schema).columns == table.names
