"""What the overload bench measures is true, and what it looks for, it finds."""

import json
import xml.etree.ElementTree as ET
from argparse import Namespace
from dataclasses import asdict

import pytest
from bench.overload import LOADS, Scene, Times, fair, finish, lines, measured, missed, pictures, unfair

FLAT = [(0.25 * number, 40.0) for number in range(33)]


def row(*, scene=None, load=10.0, **more):
    """A point of 50 answers a second, all of its goals met."""
    scene = scene or Scene()
    goodput = 50.0 * min(load, 1.0)
    found = {"scene": scene.name, **asdict(scene), "load": load, "seconds": 8.0, "offered": 50.0 * load}
    found |= {"goodput": goodput, "answered": round(8 * goodput), "overloaded": 0, "expired": 0, "late": 0}
    found |= {"others": {}, "p50_ms": 30.0, "p99_ms": 900.0, "p99_of_timeout": 0.45, "refusal_p99_ms": 2.0}
    found |= {"rss_mib": FLAT, "rss_start_mib": 40.0, "rss_end_mib": 40.0, "behind_s": 0.0, "left_open": 0}
    found |= {"capacity_beside": None, "broken": "", **more}
    finish(found, 50.0, 50.0)
    return found


@pytest.mark.parametrize("load", LOADS)
def test_a_point_that_meets_its_goals_is_in_order(load):
    assert not row(load=load)["missed"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"goodput": 44.0}, "goodput is 0.88"),
        ({"load": 0.5, "goodput": 22.0}, "goodput is 0.88"),
        ({"p99_of_timeout": 1.02, "expired": 10}, "10 of 410 asks that were not refused"),
        ({"refusal_p99_ms": 51.0}, "p99 of refusals is 51 ms"),
        ({"rss_mib": [(at, 40.0 + at) for at, _ in FLAT]}, "memory has grown"),
        ({"others": {"NoRoute": 1}}, "NoRoute"),
        ({"left_open": 1}, "not at all: 1"),
        ({"broken": "EOFError after it: "}, "EOFError"),
    ],
)
def test_a_goal_that_is_missed_is_found(wrong, told):
    (found,) = row(**wrong)["missed"]
    assert told in found


def test_what_drop_oldest_refuses_may_have_waited():
    assert not missed(row(scene=Scene(overflow="drop_oldest", part="policies"), refusal_p99_ms=900.0))


def test_memory_may_vary_by_a_twentieth():
    assert not row(rss_mib=[(at, 40.0 + 0.2 * at) for at, _ in FLAT])["missed"]


def test_a_client_that_pays_for_another_is_found():
    quiet = {"answered": 40, "overloaded": 2, "expired": 30, "late": 0, "others": {}, "goodput": 5.0}
    found = {"quiet": quiet, "greedy": {"goodput": 45.0}, "capacity": 50.0}
    found["quiet_share"], found["of_capacity"] = fair(found)
    (told,) = unfair(found)
    assert "0.56 of the quiet client's asks" in told


def test_quantiles_are_within_a_hundredth():
    times = Times()
    assert times.quantile(0.5) is None
    for number in range(1, 1001):
        times.add(number / 1000)
    assert times.quantile(0.5) == pytest.approx(0.5, rel=0.01)
    assert times.quantile(0.99) == pytest.approx(0.99, rel=0.01)


def test_the_warm_up_outlasts_the_queue_of_the_start():
    warm_ups = {load: Scene().warm_up(load) for load in (0.5, 1.0, 1.5, 2.0, 10.0)}
    assert warm_ups == pytest.approx({0.5: 2, 1.0: 2, 1.5: 6, 2.0: 4, 10.0: 2 + 2 / 9})


@pytest.mark.parametrize("where", ["local", "remote"])
def test_everything_that_is_offered_is_counted(where):
    scene = Scene(ms=5, where=where, stages=3, timeouts=(0.5,))
    options = Namespace(seconds=1.0, calibration=0.3, arrivals="even")
    lines = []
    (found,) = measured(scene, (0.5,), options, lines.append)
    assert len(lines) == 1
    assert found["answered"] > 0
    ended = found["answered"] + found["expired"] + found["late"]
    assert ended == pytest.approx(found["offered"], abs=found["offered"] / 2)
    assert (found["overloaded"], found["others"], found["left_open"]) == (0, {}, 0)
    assert found["p50_ms"] >= 15
    assert found["rss_start_mib"] > 10


def test_the_results_are_json_with_a_line_for_each_point():
    found = {"machine": "x", "broken": [], "rows": [row(), row(load=2.0)], "fairness": []}
    text = lines(found)
    assert json.loads(text) == json.loads(json.dumps(found))
    assert sum(line.startswith('{"scene"') for line in text.splitlines()) == 2


def test_the_plots_are_pictures():
    scenes = [
        Scene(ms=ms, where=where, stages=n) for ms in (1, 20) for where in ("local", "remote") for n in (1, 3)
    ]
    drawn = pictures([row(scene=scene, load=load) for scene in scenes for load in LOADS])
    assert set(drawn) == {"goodput", "latency", "refusals", "memory"}
    for name, text in drawn.items():
        picture = ET.fromstring(text)  # noqa: S314 - our own
        lines = [each for each in picture.iter() if each.tag.endswith("polyline")]
        assert len(lines) == (2 * 4 if name == "memory" else 2 * 5)
        width = float(picture.get("width"))
        places = [place.split(",") for line in lines for place in line.get("points").split()]
        assert all(0 <= float(x) <= width and float(y) >= 0 for x, y in places)
