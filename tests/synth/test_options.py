import datetime as dt

import pytest

from framewire.errors import ConfigError, UsageError
from framewire.synth import Options, synthesise


def test_all_problems_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        Options(
            messages=0,
            nodes=1,
            loss=1.5,
            duplicates=-0.1,
            malformed=float("nan"),
            tampered=2,
            skew_ms=-1,
            seed=-1,
            rate=0,
            duration=0,
            start=dt.datetime(2025, 1, 1),  # noqa: DTZ001 - that is what is wrong with it
            versions={6: 1.0},
            giant_flow=2,
            hot_partition=7,
            segment_rows=0,
        )
    named = {problem.partition(":")[0] for problem in caught.value.problems}
    assert named == {
        "messages",
        "nodes",
        "loss",
        "duplicates",
        "malformed",
        "tampered",
        "skew_ms",
        "seed",
        "rate",
        "duration",
        "rate, duration",
        "start",
        "versions",
        "giant_flow",
        "hot_partition",
        "segment_rows",
    }


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"messages": 100, "giant_flow": 40},
            "giant_flow: 40 messages leave 120 rows, more than the 100 of messages",
        ),
        ({"rate": 5.0, "duration": 5.0}, "rate, duration: give one of them"),
        ({"messages": 10**7, "duration": 1.0}, "duration: 1 s is too short for 10,000,000 messages; at least 20 s"),
        ({"versions": {5: 0.5, 1: 0.4}}, "versions: the parts make 0.9"),
        ({"versions": {5: 1.5, 4: -0.5}}, "versions: 1.5 for V5"),
        ({"versions": {5: 0.5, 1: 0.5}, "hot_partition": 0.9}, "hot_partition: 0.9 is more than versions leaves"),
    ],
)
def test_what_cannot_be_together_is_said(options, problem):
    with pytest.raises(ConfigError) as caught:
        Options(**options)
    assert [told for told in caught.value.problems if told.startswith(problem)]


def test_made_up_traffic_is_not_mixed_with_what_is_there(tmp_path):
    there = tmp_path / "captures" / "recorder=00"
    there.mkdir(parents=True)
    with pytest.raises(UsageError, match="is there already"):
        synthesise(Options(messages=10), tmp_path)
    assert not (tmp_path / "truth").exists()


def test_a_run_that_does_not_come_to_its_end_leaves_nothing(tmp_path):
    def interrupt(rows):
        raise KeyboardInterrupt(rows)

    with pytest.raises(KeyboardInterrupt):
        synthesise(Options(messages=3000, segment_rows=10), tmp_path, interrupt)
    assert list(tmp_path.iterdir()) == []
