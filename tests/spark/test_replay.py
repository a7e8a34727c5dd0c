"""Which messages are replayed, when, and what comes of it in a live cluster."""

import datetime as dt
import json

import pytest
from click.testing import CliRunner
from tests.spark.lake_rows import BEGIN, make_lake
from tests.spark.living import living_cluster
from tests.spark.replayed import flow_row, make_replay_lake, row

from framewire.cli import main
from framewire.spark.asking import open_lake
from framewire.spark.replay import Choice, chosen, replay, tables_to_replay
from framewire.spark.sending import Target


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return make_replay_lake(tmp_path_factory.mktemp("replay") / "lake")


@pytest.fixture
def cluster():
    with living_cluster() as alive:
        yield alive


def choose(lake, *, new_ids=False, **choice):
    with open_lake(str(lake), tables_to_replay) as connection:
        return list(chosen(connection, Choice(**choice), new_ids=new_ids))


def bodies(recorded):
    return [None if each.message is None else each.message.body for each in recorded]


BEGINNINGS = [b"first", b"second", b"tick", b"tick", b"all", b"hear", b"lost", None, None]


def test_what_began_a_flow_or_belongs_to_none_is_replayed_once_and_in_order(lake):
    assert bodies(choose(lake)) == BEGINNINGS


def test_spacing_is_that_of_the_recording(lake):
    assert [each.after for each in choose(lake)] == [0, 0.5, 0.6, 0.601, 0.7, 0.702, 0.8, 0.85, 0.9]


def test_inner_messages_are_replayed_if_asked_for_and_answers_never(lake):
    found = choose(lake, inner=True)
    assert [each.message.body for each in found if each.message].count(b"inner") == 2
    assert not {b"answer", b"late", b""} & set(bodies(found))


def test_dead_letters_alone_are_those_that_are_no_answers(lake):
    assert [(each.message.body, each.reason) for each in choose(lake, dead=True) if each.message] == [
        (b"lost", "no_route"),
        (b"inner died", "overloaded"),
    ]


def test_a_condition_and_times_choose(lake):
    known = choose(lake, where="message = 'replay.work v1' and flow < 'flow-e' -- no forgeries")
    assert bodies(known) == [b"first", b"second", b"lost"]
    half = BEGIN.replace(tzinfo=None) + dt.timedelta(milliseconds=500)
    assert bodies(choose(lake, until=half)) == [b"first"]
    assert bodies(choose(lake, since=half))[:1] == [b"second"]


def test_forgeries_are_refused_and_told(lake):
    (forged,) = choose(lake, where="flow = 'flow-e'")
    assert forged.message is None
    assert "its signature was invalid" in forged.refused


def test_what_a_node_turned_down_for_its_signature_is_refused_even_if_the_lake_has_no_keys(lake):
    for dead in (False, True):
        (forged,) = choose(lake, where="flow = 'flow-f'", dead=dead)
        assert "its signature was invalid" in forged.refused


def test_ids_are_kept_or_new(lake):
    assert choose(lake)[0].message.correlation_id == b"flow-a"
    assert choose(lake, new_ids=True)[0].message.correlation_id is None


def test_what_belongs_to_no_flow_stays_so(lake):
    for new_ids in (False, True):
        ticks = [each for each in choose(lake, new_ids=new_ids) if each.flow is None]
        assert [each.message.correlation_id for each in ticks] == [b""] * 3


def test_broadcasts_stay_broadcasts(lake):
    assert {each.message.body for each in choose(lake) if each.message and each.message.broadcast} == {
        b"all",
        b"hear",
    }


def test_messages_are_due_as_far_apart_as_they_were_or_closer(lake, cluster):
    uri, worker = cluster
    clock, due = [50.0], []

    def sleep(seconds):
        clock[0] += seconds

    def sent(_):
        due.append(round(clock[0] - 50, 3))

    work = choose(lake, where="message = 'replay.work v1' and flow < 'flow-e'")
    tally = replay(work, Target(rendezvous=(uri,)), speed=2, progress=sent, now=lambda: clock[0], sleep=sleep)
    assert due == [0, 0.25, 0.4]
    assert tally.confirmed == 3
    assert worker.got == [(b"first", b"flow-a"), (b"second", b"flow-b"), (b"lost", b"flow-d")]


def run(*arguments):
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


def test_a_dry_run_shows_what_would_be_sent_and_needs_no_cluster(lake):
    done = run("--lake", lake, "--dry-run")
    assert done.exit_code == 0, done.output
    assert "7 messages over 0.9 s would be sent; nothing was" in done.output
    assert "3  replay.work v1" in done.output
    assert "2  would not be sent: its signature was invalid" in done.output


def test_a_dry_run_as_json_has_a_line_for_each_message(lake):
    lines = [json.loads(line) for line in run("--lake", lake, "--dry-run", "--json", "--dead").output.splitlines()]
    assert [(line["message"], line["reason"]) for line in lines if not line["refused"]] == [
        ("replay.work v1", "no_route"),
        ("replay.inner v1", "overloaded"),
    ]


def test_the_command_replays_and_sums_up(lake, cluster):
    uri, worker = cluster
    chosen_ones = "message = 'replay.work v1' and flow < 'flow-e'"
    done = run("--lake", lake, "--rendezvous", uri, "--speed", "max", "--where", chosen_ones)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[0] == "3 confirmed, 0 failed"
    assert worker.bodies == [b"first", b"second", b"lost"]


def test_failures_are_told_and_end_with_a_status(lake, cluster):
    uri, worker = cluster
    done = run("--lake", lake, "--rendezvous", uri, "--speed", "max", "--json", "--where", "distribution = 0")
    assert done.exit_code == 1
    told = json.loads(done.output)
    assert (told["confirmed"], told["failed"]) == (3, 4)
    assert told["reasons"] == {"NoRoute": 2, "Refused": 2}
    assert len(worker.got) == 3


def test_what_a_ledger_knows_is_not_sent_again(lake, cluster, tmp_path):
    uri, worker = cluster
    again = ["--lake", lake, "--rendezvous", uri, "--speed", "max", "--ledger", tmp_path / "ledger"]
    assert run(*again, "--where", "flow = 'flow-a'").output.startswith("1 confirmed")
    done = run(*again, "--where", "message = 'replay.work v1' and flow < 'flow-e'")
    assert done.output.startswith("2 confirmed, 1 skipped, 0 failed")
    assert worker.bodies == [b"first", b"second", b"lost"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--speed", "quick"], "is no speed; write it like 1x"),
        (["--speed", "0x"], "is no speed"),
        (["--dead", "--inner"], "exclude each other"),
        ([], "rendezvous or peers: one of them must be given"),
        (["--dry-run", "--where", "nonsense = 1"], "nonsense"),
    ],
)
def test_what_is_wrong_is_told_in_a_paragraph(lake, arguments, told):
    done = run("--lake", lake, *arguments)
    assert done.exit_code in (1, 2)
    assert told in done.output
    assert "Traceback" not in done.output


def test_a_body_of_several_frames_is_replayed_in_its_frames(tmp_path, cluster):
    uri, worker = cluster
    frames = [[b"a", b"\xff", b""], None, []]
    bodies = [b"a\xff", b"one", b""]
    messages = [
        row(10 * number, "shop", "sent", b"stock", body, f"flow-{number}", body_frames=kept)
        for number, (body, kept) in enumerate(zip(bodies, frames, strict=True))
    ]
    flows = [flow_row(f"flow-{number}", 10 * number) for number in range(3)]
    lake = make_lake(tmp_path / "lake", messages=messages, flows=flows)
    tally = replay(choose(lake), Target(rendezvous=(uri,)), speed=None)
    assert (tally.confirmed, tally.failed) == (3, 0)
    assert worker.frames == [(b"a", b"\xff", b""), (b"one",), ()]


def test_a_body_of_several_frames_of_which_one_was_cut_is_refused(tmp_path):
    cut = b"[framewire cut: length=9 sha256=%b]" % (b"0" * 64)
    messages = [row(0, "shop", "sent", b"stock", cut + b"x", "flow-a", body_frames=[cut, b"x"])]
    lake = make_lake(tmp_path / "lake", messages=messages, flows=[flow_row("flow-a", 0)])
    assert [each.refused for each in choose(lake)] == ["its body was cut when it was recorded"]
