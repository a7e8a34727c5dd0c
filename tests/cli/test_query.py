"""Questions to a lake: what is answered, how, and what is not let through."""

import csv
import io
import json
import re

import click
import pytest
from click.testing import CliRunner
from tests.spark.lake_rows import BEGIN, after, flow_id, make_lake, message_id

from framewire.cli import main
from framewire.cli.lakes import lake_errors
from framewire.spark.asking import asked_of, open_lake
from framewire.spark.tables import LAYOUT, TABLES


@pytest.fixture
def lake(tmp_path):
    flows = [
        {
            **flow_id(f"flow-{number}"),
            **message_id(b"orders.place"),
            "outcome": outcome,
            "started_at": after(number),
        }
        for number, outcome in enumerate(["completed", "completed", "failed"])
    ]
    flows[2]["exception_text"] = "\x1b[2J\x1b[31mred"
    flows[2]["path"] = [{"at": after(5), "node": b"\xff\x00", "node_name": "0xff00", "message": "orders.place v1"}]
    return make_lake(tmp_path / "lake", flows=flows)


def ask(*arguments, stdin=None):
    return CliRunner().invoke(main, ["query", *map(str, arguments)], input=stdin)


def test_a_question_is_answered_as_a_table(lake):
    done = ask("select outcome, count(*) as flows from flows group by all order by all", "--lake", lake)
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines()]
    assert ["completed", "2"] in lines
    assert ["failed", "1"] in lines


def test_a_question_may_come_from_the_standard_input(lake):
    done = ask("-", "--lake", lake, "--json", stdin="select count(*) as flows from flows")
    assert json.loads(done.output) == {"flows": 3}


def test_json_has_a_line_for_each_row_with_utc_times_and_bytes_as_text(lake):
    done = ask("select flow, correlation_id, started_at, path from flows order by flow", "--lake", lake, "--json")
    rows = [json.loads(line) for line in done.output.splitlines()]
    assert rows[1]["started_at"] == "2026-03-01T08:00:00.001000Z"
    assert rows[1]["correlation_id"] == "flow-1"
    assert rows[2]["path"][0] == {
        "at": "2026-03-01T08:00:00.005000Z",
        "node": "0xff00",
        "node_name": "0xff00",
        "identity": None,
        "message": "orders.place v1",
    }


def test_csv_can_be_read_back(lake):
    done = ask("select flow, outcome, exception from flows order by flow", "--lake", lake, "--csv")
    rows = list(csv.reader(io.StringIO(done.output)))
    assert rows == [["flow", "outcome", "exception"], *([f"flow-{n}", o, ""] for n, o in enumerate(OUTCOMES))]


OUTCOMES = ["completed", "completed", "failed"]


def test_no_recorded_text_reaches_the_terminal_as_it_is(lake):
    done = ask("select exception_text from flows where outcome = 'failed'", "--lake", lake)
    assert "\x1b" not in done.output
    assert r"\x1b[2J\x1b[31mred" in done.output


def test_rows_that_are_too_wide_for_a_table_are_shown_one_below_the_other(lake):
    done = ask("from flows order by flow", "--lake", lake)
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines()]
    assert [line for line in lines if line[:1] == ["row"]] == [["row", "1"], ["row", "2"], ["row", "3"]]
    assert [line for line in lines if line[:1] == ["outcome"]] == [["outcome", each] for each in OUTCOMES]
    assert ["exception_text", r"\x1b[2J\x1b[31mred"] in lines
    assert [line[0] for line in lines[1 : lines.index([])] if line[0] in TABLES["flows"].names] == (
        TABLES["flows"].names
    )
    assert done.output.endswith("3 rows; name fewer columns for a table\n")


def test_the_same_rows_are_a_table_where_there_is_room(lake, monkeypatch):
    columns = ", ".join(name for name in TABLES["flows"].names if name not in ("path", "slowest"))
    monkeypatch.setenv("COLUMNS", "400")
    done = ask(f"select {columns} from flows", "--lake", lake)  # noqa: S608 - names of our own
    assert done.output.splitlines()[0].split() == columns.split(", ")
    assert done.output.endswith("3 rows\n")


@pytest.mark.parametrize(
    ("columns", "shown"), [("i", 200), (", ".join(f"repeat('x', 30) as c{n}" for n in range(9)), 20)]
)
@pytest.mark.parametrize("limit", [None, 7])
def test_the_first_rows_are_shown_and_that_there_are_more(lake, columns, shown, limit):
    most = limit or shown
    limited = () if limit is None else ("--limit", limit)
    done = ask(f"select {columns} from range(300) as all_of(i)", "--lake", lake, *limited)  # noqa: S608 - same
    assert f"… and more: these are the first {most} rows; --limit, --json or --csv" in done.output
    rows = re.findall(r"^row \d+$|^ *\d+$", done.output, re.MULTILINE)
    assert len(rows) == most


def test_no_rows_of_many_columns_are_no_rows(lake):
    assert ask("from losses", "--lake", lake).output == "0 rows\n"


def test_rows_are_filed_under_their_day(lake):
    make_lake(lake, flows=[{**flow_id("older"), "filed": BEGIN.replace(month=2)}])
    done = ask("select flow, date, bucket from flows where date < '2026-03-01'", "--lake", lake, "--json")
    assert json.loads(done.output) == {"flow": "older", "date": "2026-02-01", "bucket": "08h00"}


def test_a_table_without_files_is_empty_and_has_its_columns(lake):
    done = ask("select * from losses", "--lake", lake, "--csv")
    assert done.output.strip().split(",") == TABLES["losses"].names


def test_every_declared_table_and_column_can_be_asked_for(lake, tmp_path):
    whole = make_lake(tmp_path / "whole", **{name: [{}] for name in TABLES})
    for directory in (lake, whole):
        for table in TABLES.values():
            names = ", ".join(f'"{name}"' for name in table.names)
            assert ask(f"select {names} from {table.name}", "--lake", directory, "--json").exit_code == 0  # noqa: S608


def test_files_that_are_not_there_yet_are_passed_over(lake):
    (lake / "flows" / "_temporary").mkdir()
    (lake / "flows" / "_temporary" / "part-9.parquet").write_bytes(b"half a fi")
    (lake / "flows" / "date=2026-03-01" / "bucket=08h00" / ".part.parquet").write_bytes(b"half a fi")
    assert json.loads(ask("select count(*) as n from flows", "--lake", lake, "--json").output) == {"n": 3}


def test_a_lake_may_be_named_by_a_uri(lake):
    done = ask("select count(*) as n, min(date) as day from flows", "--lake", lake.as_uri(), "--json")
    assert json.loads(done.output) == {"n": 3, "day": "2026-03-01"}


def test_times_with_a_zone_can_be_asked_for(lake):
    done = ask(
        "select timestamptz '2026-03-01 09:00+01' as t, [now()] as l from flows limit 1", "--lake", lake, "--json"
    )
    assert json.loads(done.output)["t"] == "2026-03-01T08:00:00.000000Z"


def test_columns_of_one_name_are_all_in_the_json(lake):
    done = ask("select 1 as x, 2 as x, 3 as x_2", "--lake", lake, "--json")
    assert json.loads(done.output) == {"x": 1, "x_2": 2, "x_2_2": 3}


def test_an_unknown_table_is_answered_with_those_that_there_are(lake):
    done = ask("select * from flow", "--lake", lake)
    assert done.exit_code == 2
    assert "there is no table flow; the lake has messages, quarantine, hops" in done.output


@pytest.mark.parametrize("sql", ["selec 1", "select nothing_such from flows", "select 1/'a' from flows"])
def test_bad_sql_is_told_in_a_paragraph(lake, sql):
    done = ask(sql, "--lake", lake)
    assert done.exit_code == 2
    assert done.output.startswith("Error: ")
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    "sql",
    [
        "select * from '{elsewhere}'",
        "select * from read_text('{elsewhere}')",
        "select * from read_csv('{elsewhere}')",
        "select * from glob('{elsewhere}')",
        "select * from flows, '{elsewhere}'",
    ],
)
def test_nothing_but_the_lake_can_be_read(lake, tmp_path, sql):
    elsewhere = tmp_path / "secret.csv"
    elsewhere.write_text("secret\n1\n")
    done = ask(sql.format(elsewhere=elsewhere), "--lake", lake, "--json")
    assert done.exit_code == 2
    assert "only the tables of the lake can be read here" in done.output


@pytest.mark.parametrize(
    "sql",
    [
        "copy (select 1) to '{file}' (use_tmp_file false)",
        "explain analyze copy (select 1) to '{file}' (use_tmp_file false)",
        "set lock_configuration = false",
        "install httpfs",
        "attach '{file}.db'",
        "create table x as select 1",
        "select 1; copy flows to '{file}'",
        "",
    ],
)
def test_only_what_selects_is_let_through(lake, sql):
    file = next(lake.rglob("*.parquet"))
    before = {path: path.read_bytes() for path in lake.rglob("*") if path.is_file()}
    done = ask(sql.format(file=file), "--lake", lake)
    assert done.exit_code == 2
    assert "a question is one SELECT" in done.output
    assert {path: path.read_bytes() for path in lake.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("there", "told"), [(True, "holds no table of a lake"), (False, "does not exist")])
def test_where_there_is_no_lake_one_is_told_how_to_make_it(tmp_path, there, told):
    place = tmp_path / "nothing"
    if there:
        place.mkdir()
    done = ask("select 1", "--lake", place)
    assert done.exit_code == 2
    assert told in done.output
    assert "framewire pipeline run --captures captures/ --lake" in done.output


def test_the_tables_are_listed_with_columns_and_meanings():
    done = ask("--tables")
    for table in TABLES.values():
        assert table.about in done.output
    assert "why a dead letter died; null for all others" in done.output


def test_one_table_is_listed_alone():
    told = json.loads(ask("--tables", "losses", "--json").output)
    assert told["table"] == "losses"
    assert [column["name"] for column in told["columns"]] == TABLES["losses"].names


def test_a_long_answer_is_shown_in_part_and_written_in_full(lake):
    shown = ask("select flow from flows order by flow", "--lake", lake, "--limit", 2)
    assert "flow-1" in shown.output
    assert "flow-2" not in shown.output
    assert "these are the first 2 rows" in shown.output
    whole = ask("select flow from flows", "--lake", lake, "--limit", 2, "--json")
    assert len(whole.output.splitlines()) == 3


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"layout": LAYOUT, "format": "orc"}, "is kept as orc, which DuckDB does not read"),
        ({"layout": LAYOUT + 1, "format": "parquet"}, "use the framewire that wrote it"),
    ],
)
def test_a_lake_that_cannot_be_read_is_told(lake, state, told):
    (lake / "_state").mkdir()
    (lake / "_state" / "lake.json").write_text(json.dumps(state))
    done = ask("select 1 from flows", "--lake", lake)
    assert done.exit_code == 2
    assert told in done.output


def test_files_that_the_pipeline_took_away_meanwhile_are_told(lake):
    with open_lake(str(lake), ["flows"]) as connection:
        next(lake.rglob("*.parquet")).unlink()
        with pytest.raises(click.ClickException, match="ask again"), lake_errors():
            list(asked_of(connection, "select * from flows").rows)
