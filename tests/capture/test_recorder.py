"""A recorded node: everything that it sent and heard is on disk, and nothing else."""

import asyncio
import datetime as dt
import logging
from collections import Counter

import msgspec
import pyarrow as pa
import pytest
from pyarrow import fs
from tests.capture.filesystems import Elsewhere
from tests.capture.recording import NODE, frames_of, numbers, parquet_files, recording, spooled
from tests.node.running import eventually, run, until

import framewire as fw
from framewire.capture import Capture, read
from framewire.wire import decode


@fw.message("recorded.question")
class Question(msgspec.Struct):
    number: int


@fw.message("recorded.answer")
class Answer(msgspec.Struct):
    number: int


class Oracle(fw.Actor):
    @fw.handles(Question)
    async def answer(self, question: Question) -> Answer:
        return Answer(question.number)


def counted(path):
    table = read(path)
    names = [decode(frames).identity.decode() for frames in table["frames"].to_pylist()]
    return Counter(zip(table["direction"].to_pylist(), names, strict=True))


def test_all_that_two_nodes_said_under_load_is_on_disk(tmp_path):
    asks, at_once = 3000, 100

    async def main():
        here, there = tmp_path / "here", Capture(tmp_path / "there", seal_seconds=0.3)
        async with fw.Node(bind="tcp://127.0.0.1:*", capture=there, signals=False) as handler:
            await handler.host(Oracle())
            async with fw.Node(peers=[handler.uri], capture=str(here), signals=False) as asker:

                async def ask():
                    for number in range(asks // at_once):
                        assert (await asker.hub.ask(Question(number), Answer, timeout=20)).number == number

                await asyncio.gather(*(ask() for _ in range(at_once)))
        assert there.stats.dropped == there.stats.waiting == 0
        assert there.stats.captured == read(tmp_path / "there").num_rows
        return handler.identity, asker.identity

    handler, asker = run(main(), timeout=60)
    here, there = counted(tmp_path / "here"), counted(tmp_path / "there")
    question, answer = "recorded.question", "recorded.answer"
    assert [here[key] for key in [("sent", question), ("received", answer), ("delivered", answer)]] == [asks] * 3
    assert [there[key] for key in [("received", question), ("delivered", question), ("sent", answer)]] == [asks] * 3
    sent = read(tmp_path / "here", directions=["sent"])
    assert set(sent["node"].to_pylist()) == {asker}
    assert set(sent["peer"].to_pylist()) == {handler}


def test_a_node_tells_how_much_it_recorded(tmp_path):
    async def main():
        async with fw.Node(capture=tmp_path, signals=False) as node:
            await node.host(Oracle())
            await node.hub.ask(Question(1), Answer)
            await eventually(lambda: node.stats().captured == 2)
            assert node.stats().capture_dropped == 0
            asked = await node.hub.ask(fw.NodeInfo(), fw.NodeStats)
            assert asked.captured >= 2

    run(main())


def test_a_dead_letter_is_recorded_with_its_reason(tmp_path):
    async def main():
        async with fw.Node(capture=tmp_path, signals=False) as node:
            await node.hub.tell(Question(1))
            node.port.receive(b"stranger", [b"stranger", b"", b"nonsense"])

    run(main())
    found = read(tmp_path, directions=["dead"])
    assert sorted(found["reason"].to_pylist()) == ["malformed", "no_route"]
    assert read(tmp_path, directions=["received"])["frames"].to_pylist() == [[b"stranger", b"", b"nonsense"]]


def test_a_directory_or_a_uri_is_enough(tmp_path):
    async def main(capture):
        async with fw.Node(capture=capture, signals=False) as node:
            await node.host(Oracle())
            await node.hub.ask(Question(1), Answer)

    for target in (tmp_path / "one", str(tmp_path / "two"), (tmp_path / "three").as_uri()):
        run(main(target))
    assert [read(tmp_path / name).num_rows for name in ("one", "two", "three")] == [2, 2, 2]


def test_a_node_that_says_nothing_leaves_no_file(tmp_path):
    with recording(tmp_path / "captures"):
        pass
    assert not (tmp_path / "captures").exists()


def test_a_message_is_in_the_open_segment_before_it_is_sealed(tmp_path):
    with recording(tmp_path, seal_seconds=60) as capture:
        capture.record("sent", b"peer", frames_of(7))
        until(lambda: capture.captured == 1)
        assert parquet_files(tmp_path) == []
        assert numbers(tmp_path, open_segments=True) == [7]
    assert numbers(tmp_path) == [7]
    assert spooled(tmp_path) == []


def test_a_segment_is_sealed_when_it_is_old_enough(tmp_path):
    with recording(tmp_path, seal_seconds=0.1, batch_seconds=0.02) as capture:
        for number in range(3):
            capture.record("sent", b"peer", frames_of(number))
            until(lambda: capture.stats.segments == number + 1)  # noqa: B023 - called before the next round
    assert len(parquet_files(tmp_path)) == 3
    assert numbers(tmp_path) == [0, 1, 2]


def test_a_segment_is_sealed_when_it_is_large_enough(tmp_path):
    with recording(tmp_path, seal_bytes=50_000, seal_seconds=60) as capture:
        for number in range(20):
            capture.record("sent", b"peer", frames_of(number, body=b"%-30000d" % number))
            until(lambda: capture.captured == number + 1)  # noqa: B023 - same
    assert len(parquet_files(tmp_path)) == 10
    assert numbers(tmp_path) == list(range(20))


def test_rows_keep_their_order_whatever_the_rotation(tmp_path):
    count = 20_000
    with recording(tmp_path, seal_bytes=100_000) as capture:
        for number in range(count):
            capture.record("sent", b"peer", frames_of(number))
            if number % 5000 == 0:
                until(lambda: capture.captured == number + 1)  # noqa: B023 - called before the next round
    assert numbers(tmp_path) == list(range(count))
    assert len(parquet_files(tmp_path)) > 1


def test_what_cannot_be_a_message_at_all_is_counted_and_does_not_stop_the_rest(tmp_path, caplog):
    with recording(tmp_path) as capture:
        for frames in (frames_of(1), [7, b"", b""], frames_of(2)):
            capture.record("sent", b"peer", frames)
        until(lambda: capture.dropped == 1)
    assert numbers(tmp_path) == [1, 2]
    assert (capture.captured, capture.stats.waiting) == (2, 0)
    assert "a message cannot be recorded: " in caplog.text


def test_a_reason_that_is_no_text_does_not_stop_the_rest(tmp_path):
    with recording(tmp_path) as capture:
        for number, reason in enumerate((None, "\ud800", "no_route")):
            capture.record("dead", b"peer", frames_of(number), reason)
        until(lambda: capture.dropped == 1)
    assert numbers(tmp_path) == [0, 2]


def test_anything_with_bytes_in_it_is_a_frame(tmp_path):
    with recording(tmp_path) as capture:
        capture.record("sent", b"peer", [bytearray(b"one"), memoryview(b"-two-")[1:4], b"three"])
    assert read(tmp_path)["frames"].to_pylist() == [[b"one", b"two", b"three"]]
    assert (capture.captured, capture.dropped) == (1, 0)


def test_any_filesystem_of_pyarrow_is_a_target(tmp_path):
    elsewhere = fs.SubTreeFileSystem(str(tmp_path / "elsewhere"), fs.LocalFileSystem())
    (tmp_path / "elsewhere").mkdir()
    with recording("captures", filesystem=elsewhere, spool=tmp_path / "spool") as capture:
        capture.record("sent", b"peer", frames_of(1))
        until(lambda: capture.captured == 1)
        assert len(list((tmp_path / "spool").iterdir())) == 1
    assert numbers("captures", filesystem=elsewhere) == [1]
    assert list((tmp_path / "spool").iterdir()) == []
    files = [file for file in (tmp_path / "elsewhere").rglob("*") if file.is_file()]
    assert [file.name.startswith("segment-") for file in files] == [True]


def test_a_target_elsewhere_has_a_spool_of_its_own_that_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    places = [
        Capture(
            "captures", filesystem=fs.SubTreeFileSystem(str(tmp_path / name), fs.LocalFileSystem())
        )._place.spool
        for name in ("one", "one", "two")
    ]
    assert places[0] == places[1]
    assert all(place.is_relative_to(tmp_path / "state") for place in places)


@pytest.fixture
def elsewhere(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    return Elsewhere(tmp_path / "elsewhere")


def test_what_cannot_be_sealed_now_is_sealed_later(elsewhere, tmp_path, caplog):
    target = fs.PyFileSystem(elsewhere)
    elsewhere.down = True
    with recording("c", filesystem=target, spool=tmp_path / "spool", seal_seconds=0.1) as capture:
        capture.record("sent", b"peer", frames_of(1))
        until(lambda: capture.stats.problem)
        assert "the network is down" in capture.stats.problem
        capture.record("sent", b"peer", frames_of(2))
        until(lambda: capture.captured == 2)
        elsewhere.down = False
        until(lambda: capture.stats.segments == 2)
        assert capture.stats.problem is None
    assert "cannot seal a segment: the network is down" in caplog.text
    assert numbers(tmp_path / "elsewhere" / "c") == [1, 2]


def test_a_segment_that_cannot_be_sealed_does_not_hold_up_others(tmp_path):
    spool = tmp_path / "spool"
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / f"recorder={b'barred'.hex()}").write_text("in the way")
    with recording(tmp_path / "c", node=b"barred", spool=spool) as capture:
        capture.record("sent", b"peer", frames_of(1))
    with recording(tmp_path / "c", node=b"open", spool=spool, seal_seconds=0.05) as capture:
        until(lambda: capture.stats.problem)
        for number in range(3):
            capture.record("sent", b"peer", frames_of(number))
            until(lambda: capture.stats.segments == number + 1)  # noqa: B023 - called before the next round
    assert numbers(tmp_path / "c") == [0, 1, 2]
    assert len(list(spool.iterdir())) == 1


def test_what_cannot_be_sealed_before_the_end_is_sealed_by_the_next_who_records_there(elsewhere, tmp_path):
    target = fs.PyFileSystem(elsewhere)
    elsewhere.down = True
    with recording("c", filesystem=target, spool=tmp_path / "spool") as capture:
        capture.record("sent", b"peer", frames_of(1))
    assert len(list((tmp_path / "spool").iterdir())) == 1
    elsewhere.down = False
    with recording("c", filesystem=target, spool=tmp_path / "spool", node=b"another") as capture:
        until(lambda: capture.stats.segments == 1)
    found = read(tmp_path / "elsewhere" / "c")
    assert found["node"].to_pylist() == [NODE]


def test_an_object_store_gets_the_whole_file_under_its_name_at_once(elsewhere, tmp_path, monkeypatch):
    monkeypatch.setattr("framewire.capture.places._OBJECT_STORES", ("py::elsewhere",))
    monkeypatch.setattr(elsewhere, "move", None)
    written = []
    real = elsewhere.open_output_stream
    monkeypatch.setattr(
        elsewhere, "open_output_stream", lambda path, meta: written.append(path) or real(path, meta)
    )
    place = tmp_path / "elsewhere" / "c" / f"recorder={NODE.hex()}" / f"date={dt.datetime.now(dt.UTC):%Y-%m-%d}"
    place.mkdir(parents=True)  # object stores have no directories to make
    monkeypatch.setattr(elsewhere, "create_dir", None)
    with recording("c", filesystem=fs.PyFileSystem(elsewhere), spool=tmp_path / "spool") as capture:
        capture.record("sent", b"peer", frames_of(1))
    assert numbers(tmp_path / "elsewhere" / "c") == [1]
    assert [path.rpartition("/")[2].startswith("segment-") for path in written] == [True]


def test_readers_and_writers_agree_on_types(tmp_path):
    with recording(tmp_path) as capture:
        capture.record("dead", b"", [], "malformed")
    table = read(tmp_path)
    assert table["frames"].to_pylist() == [[]]
    assert table["reason"].to_pylist() == ["malformed"]
    assert table.schema.field("at").type == pa.timestamp("us", "UTC")


def test_a_recorder_with_nothing_to_complain_about_says_nothing(tmp_path, caplog):
    with caplog.at_level(logging.DEBUG, "framewire.capture"), recording(tmp_path) as capture:
        capture.record("sent", b"peer", frames_of(1))
    assert caplog.text == ""
