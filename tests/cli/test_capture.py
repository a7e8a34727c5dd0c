"""``framewire capture``: what it says of recordings, and what it does to them."""

import json
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from tests.capture.recording import frames_of, parquet_files, recording, spooled
from tests.node.running import until

from framewire.capture import read
from framewire.capture.columns import Records, batch_of
from framewire.capture.spool import OpenSegment
from framewire.cli import main
from framewire.wire import Message, decode, encode, upgrade


@pytest.fixture
def captures(tmp_path):
    """Four messages of two nodes, all of them sealed."""
    with recording(tmp_path, node=b"one") as one, recording(tmp_path, node=b"two") as two:
        one.record("sent", b"two", frames_of(1, identity=b"orders.place", flow=b"f1"))
        two.record("received", b"one", frames_of(2, identity=b"orders.place", flow=b"f1"))
        two.record("dead", b"", frames_of(3, identity=b"stock.reserve", flow=b"f2"), "no_route")
        two.record("dead", b"", [b"x", b"", b"nonsense\x1b[2J"], "malformed")
    return tmp_path


def capture(*arguments):
    return CliRunner().invoke(main, ["capture", *map(str, arguments)])


def exported(*arguments):
    done = capture("export", *arguments)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_stats_tell_programs_all(captures):
    found = json.loads(capture("stats", captures, "--json").stdout)
    assert found["segments"] == 2
    assert found["bytes"] == sum(file.stat().st_size for file in parquet_files(captures))
    assert found["messages"] == 4
    assert found["nodes"] == {"two": 3, "one": 1}
    assert found["directions"] == {"dead": 2, "sent": 1, "received": 1}
    assert found["reasons"] == {"no_route": 1, "malformed": 1}
    assert found["message_ids"] == {"orders.place v1": 2, "stock.reserve v1": 1, "malformed": 1}
    assert found["first"] <= found["last"]


def test_stats_tell_people_the_same(captures):
    shown = capture("stats", captures).stdout
    assert re.search(r"^4 messages in 2 sealed segments of [\d,]+ bytes$", shown, re.MULTILINE)
    assert "orders.place v1" in shown


def test_stats_count_what_is_not_sealed_unless_told_otherwise(tmp_path):
    with recording(tmp_path, seal_seconds=60) as recorder:
        recorder.record("sent", b"peer", frames_of(1))
        until(lambda: recorder.captured == 1)
        found = json.loads(capture("stats", tmp_path, "--json").stdout)
        assert (found["messages"], found["segments"], found["open_segments"]) == (1, 0, 1)
        assert "1 message in 0 sealed segments of 0 bytes and 1 open\n" in capture("stats", tmp_path).stdout
        found = json.loads(capture("stats", tmp_path, "--json", "--sealed").stdout)
        assert (found["messages"], found["open_segments"]) == (0, 0)


def test_an_export_can_be_inspected(captures, tmp_path):
    output = tmp_path / "export.jsonl"
    assert capture("export", captures, "-o", output).exit_code == 0
    shown = CliRunner().invoke(main, ["inspect", "--brief", str(output)])
    assert shown.stdout.count("orders.place v1") >= 2
    assert "malformed" in shown.stdout


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ((), 4),
        (("--message", "orders.*"), 2),
        (("--message", "orders.*", "--message", "stock.reserve"), 3),
        (("--node", "one"), 1),
        (("--node", "0x6f6e65"), 1),
        (("--direction", "dead"), 2),
        (("--flow", "f1"), 2),
        (("--reason", "no_route"), 1),
        (("--since", "1h"), 4),
        (("--until", "1h"), 0),
        (("--since", "2999-01-01T00:00"), 0),
        (("--limit", "2"), 2),
    ],
    ids=str,
)
def test_an_export_has_what_was_asked_for(captures, options, count):
    assert len(exported(captures, *options)) == count


def test_an_exported_line_has_all_that_was_recorded(captures):
    (line,) = exported(captures, "--message", "stock.*")
    assert line.pop("at")
    assert line == {
        "node": "two",
        "direction": "dead",
        "peer": "",
        "reason": "no_route",
        "name": "stock.reserve v1",
        "flow": "f2",
        "error": None,
        "frames": [frame.hex() for frame in frames_of(3, identity=b"stock.reserve", flow=b"f2")],
    }


def test_the_tail_shows_the_last_in_their_order_and_nothing_that_upsets_a_terminal(captures):
    shown = capture("tail", captures, "--no-follow", "-n", "3").stdout.splitlines()
    assert len(shown) == 3
    assert "\x1b" not in "".join(shown)
    shown = capture("tail", captures, "--no-follow", "--node", "two", "-n", "2").stdout.splitlines()
    assert "stock.reserve v1" in shown[0]
    assert "no_route" in shown[0]
    assert "malformed" in shown[1]


def test_the_tail_follows_a_node_that_records(tmp_path):
    command = [sys.executable, "-m", "framewire", "capture", "tail", str(tmp_path), "--json", "--message", "new.*"]
    with recording(tmp_path, seal_seconds=0.5) as recorder:
        recorder.record("sent", b"peer", frames_of(0, identity=b"new.first"))
        recorder.record("sent", b"peer", frames_of(0, identity=b"old.first"))
        until(lambda: recorder.captured == 2)
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                assert json.loads(process.stdout.readline())["name"] == "new.first v1"
                for number in range(5):
                    recorder.record("sent", b"peer", frames_of(number, identity=b"new.%d" % number))
                    assert json.loads(process.stdout.readline())["name"] == f"new.{number} v1"
                    until(lambda: recorder.stats.segments >= number)  # noqa: B023 - called before the next round
            finally:
                process.kill()


def leave(path, *messages):
    """An open segment of messages that were recorded within one microsecond, as a crash leaves it."""
    at = [1_700_000_000_000_000_000] * len(messages)
    about = [["sent"] * len(at), [b"peer"] * len(at), [None] * len(at)]
    records = Records(at, *about, [frame for frames in messages for frame in frames], [*map(len, messages)])
    segment = OpenSegment.create(path / ".open", b"gone")
    segment.append([batch_of(b"gone", records).serialize()])
    segment.close()
    return segment


def test_the_tail_keeps_the_order_of_messages_within_a_microsecond(tmp_path):
    leave(tmp_path, *(frames_of(identity=b"note.%d" % number) for number in range(5)))
    for _ in ("open", "sealed"):
        shown = capture("tail", tmp_path, "--no-follow", "--json", "-n", "3").stdout.splitlines()
        assert [json.loads(line)["name"] for line in shown] == ["note.2 v1", "note.3 v1", "note.4 v1"]
        assert capture("recover", tmp_path).exit_code == 0


def test_recover_seals_what_was_left(tmp_path):
    leave(tmp_path, frames_of(1))
    done = capture("recover", tmp_path)
    assert done.stdout == "sealed 1 segment with 1 message\n"
    assert spooled(tmp_path) == []
    assert len(parquet_files(tmp_path)) == 1
    assert capture("recover", tmp_path).stdout == "sealed 0 segments with 0 messages\n"


def test_recover_tells_what_it_could_not_seal(tmp_path):
    OpenSegment.create(tmp_path / ".open", b"gone").close()
    segment = leave(tmp_path, frames_of(1))
    (tmp_path / f"recorder={b'gone'.hex()}").write_text("in the way")
    done = capture("recover", tmp_path)
    assert done.exit_code == 1
    assert f"segment {segment.ulid} stays open" in done.stderr
    assert done.stdout == "sealed 1 segment with 0 messages\n"
    assert len(spooled(tmp_path)) == 1


def test_prune_tells_what_it_removes(captures):
    names = [str(file.relative_to(captures)) for file in parquet_files(captures)]
    dry = capture("prune", captures, "--max-size", "0", "--dry-run")
    assert sorted(dry.stdout.splitlines()) == sorted(names)
    assert "would remove 2 segments" in dry.stderr
    assert len(parquet_files(captures)) == 2
    assert capture("prune", captures, "--older-than", "1d").stdout == ""
    assert "removed 2 segments" in capture("prune", captures, "--max-size", "0.5KB").stderr
    assert parquet_files(captures) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("stats", "nowhere"), "nowhere: there is no such directory of captures"),
        (("recover", "nowhere"), "nowhere: there is no such directory of captures"),
        (("export", "floppy://a"), "'floppy://a' is no place for captures"),
        (("prune", "."), "Say what to remove"),
        (("prune", ".", "--older-than", "1y"), "'1y' is no time"),
        (("prune", ".", "--max-size", "big"), "'big' is no size"),
        (("export", ".", "--since", "yesterday"), "'yesterday' is no moment"),
        (("tail", ".", "--node", "0xzz"), "'0xzz' is not hex"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_told_in_one_paragraph(arguments, complaint):
    done = capture(*arguments)
    assert done.exit_code in (1, 2)
    assert complaint in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.parametrize("command", ["", "stats", "tail", "export", "recover", "prune", "upgrade"])
def test_every_help_has_an_example(command):
    done = capture(*filter(None, [command]), "--help")
    assert done.exit_code == 0
    assert "Example: framewire capture" in done.stdout


@pytest.mark.parametrize("version", ["1.5", "1.5=two", "1.5=65536", "=-1"])
def test_a_version_that_is_none_is_refused_before_spark_starts(version, tmp_path):
    done = capture("upgrade", tmp_path, tmp_path / "new", "--version", version)
    assert done.exit_code == 2
    assert "is no version; write it like 1.5=2" in done.stderr


@pytest.mark.long
@pytest.mark.timeout(420)
def test_upgrade_writes_recordings_anew_and_refuses_what_it_cannot(tmp_path):
    old = [frames_of(number, version=version) for number, version in enumerate((1, 4, 5))]
    odd = encode(Message(b"capture.note", b"1.5", body_frames=(b"3",)), 1)
    with recording(tmp_path / "old") as recorder:
        for frames in (*old, odd, [b"x", b"", b"nonsense"]):
            recorder.record("sent", b"peer", frames)
    command = [
        sys.executable,
        "-m",
        "framewire",
        "capture",
        "upgrade",
        str(tmp_path / "old"),
        str(tmp_path / "new"),
    ]
    done = subprocess.run(
        [*command, "--master", "local[2]", "--version", "1.5=7"],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.stdout == "3 messages upgraded, 1 kept as they were, 1 refused\n", done.stderr
    assert done.returncode == 1
    found = read(tmp_path / "new")["frames"].to_pylist()
    assert sorted(found) == sorted(encode(upgrade(decode(frames), {b"1.5": 7})) for frames in (*old, odd))
