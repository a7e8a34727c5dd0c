"""``framewire report`` as people run it."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from subprocess import run
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from framewire.cli import main


def report(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def test_a_report_is_written_to_a_file(reported_lake, tmp_path):
    done = report("--lake", reported_lake, "-o", tmp_path / "report.html")
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    assert "report.html" in done.stderr
    text = (tmp_path / "report.html").read_text()
    assert "<h1>Report on lake</h1>" in text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_report_can_go_to_the_standard_output_with_a_title(reported_lake):
    done = report("--lake", reported_lake, "-o", "-", "--title", "A & B")
    assert done.stdout.startswith("<!DOCTYPE html>")
    assert "<h1>A &amp; B</h1>" in done.stdout


def test_a_report_can_be_of_some_time(reported_lake):
    done = report("--lake", reported_lake, "-o", "-", "--from", "2026-03-01T09:00", "--until", "2026-03-01T10:00")
    assert "1 March 2026, 09:05:00 to 09:50:00 UTC" in done.stdout


def test_pictures_are_files_of_their_own(reported_lake, tmp_path):
    done = report("--lake", reported_lake, "--pictures", tmp_path / "pictures")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == ["topology.svg", "waterfall.svg"]
    for path in (tmp_path / "pictures").iterdir():
        assert ET.fromstring(path.read_text()).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own file


def test_a_file_that_cannot_be_written_is_told_and_nothing_is_left(reported_lake, tmp_path):
    done = report("--lake", reported_lake, "-o", tmp_path / "missing" / "report.html")
    assert done.exit_code != 0
    assert f"there is no directory {tmp_path / 'missing'}; make it first" in done.stderr


def test_a_device_stays_a_device(reported_lake, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        text = reader.submit(pipe.read_text)
        assert report("--lake", reported_lake, "-o", pipe).exit_code == 0
        assert text.result(30).endswith("</html>\n")
    assert pipe.is_fifo()


def test_what_a_link_leads_to_is_written(reported_lake, tmp_path):
    (tmp_path / "link.html").symlink_to(tmp_path / "real.html")
    assert report("--lake", reported_lake, "-o", tmp_path / "link.html").exit_code == 0
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text().startswith("<!DOCTYPE html>")


def test_a_directory_is_no_file(reported_lake, tmp_path):
    assert "is a directory; give the name of a file" in report("--lake", reported_lake, "-o", tmp_path).stderr


def test_what_was_there_stays_if_the_new_report_cannot_be_written(reported_lake, tmp_path, monkeypatch):
    (tmp_path / "report.html").write_text("before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("framewire.cli.report.Path.replace", full)
    done = report("--lake", reported_lake, "-o", tmp_path / "report.html")
    assert done.exit_code != 0
    assert "No space left on device" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "before"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Missing option '--lake'"),
        (["--lake", "x"], "Give -o FILE for the report, --pictures DIR for pictures, or both."),
        (["--lake", "nowhere", "-o", "-"], "nowhere does not exist; make a lake with: framewire pipeline run"),
        (["--lake", "x", "-o", "-", "--from", "yesterday"], "'yesterday' does not match the formats"),
    ],
)
def test_mistakes_are_told_with_what_to_do(arguments, told):
    done = report(*arguments)
    assert done.exit_code != 0
    assert told in " ".join(done.stderr.split())


def test_a_time_of_which_nothing_is_known_is_told(reported_lake):
    done = report("--lake", reported_lake, "-o", "-", "--from", "2030-01-01")
    assert done.exit_code != 0
    assert "It knows of 2026-03-01 08:05:00 until 2026-03-01 10:50:00" in done.stderr
    assert done.stdout == ""


def test_an_end_before_the_beginning_is_told(reported_lake):
    done = report("--lake", reported_lake, "-o", "-", "--from", "2026-03-02", "--until", "2026-03-01")
    assert "the end must be after the beginning" in done.stderr


def test_an_empty_lake_is_told(tmp_path):
    (tmp_path / "lake" / "flows").mkdir(parents=True)
    done = report("--lake", tmp_path / "lake", "-o", "-")
    assert done.exit_code != 0
    assert "is empty. Take in what nodes have recorded" in done.stderr


def test_a_damaged_lake_is_told(tmp_path):
    place = tmp_path / "lake" / "flows" / "date=2026-03-01" / "bucket=08h00"
    place.mkdir(parents=True)
    (place / "part.parquet").write_bytes(b"broken")
    done = report("--lake", tmp_path / "lake", "-o", tmp_path / "report.html")
    assert done.exit_code != 0
    assert "part.parquet" in done.stderr
    assert not (tmp_path / "report.html").exists()


def test_neither_spark_nor_java_is_needed(reported_lake, tmp_path):
    arguments = ["report", "--lake", str(reported_lake), "-o", str(tmp_path / "report.html")]
    program = (
        "import sys; from framewire.cli import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        "assert 'pyspark' not in sys.modules and 'numpy' not in sys.modules and 'pyarrow' not in sys.modules"
    )
    done = run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
