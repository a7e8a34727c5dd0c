"""The Grafana dashboard asks for metrics that there are, and shows all of them."""

import json
import re
from itertools import combinations
from pathlib import Path

from framewire.operation import status
from framewire.operation.metrics import METRICS

BOARD = json.loads((Path(__file__).parents[2] / "docs" / "grafana.json").read_text())
WORKERS = set(re.findall(r"# TYPE (framewire_worker_\w+) counter", Path(status.__file__).read_text()))
"""Metrics that only the supervisor of workers has."""
LABELS = {metric.name: set(metric.labels) for metric in METRICS} | {name: {"worker"} for name in WORKERS}
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]


def test_every_metric_on_it_exists_and_every_metric_is_on_it():
    asked = {name for expression in EXPRESSIONS for name in re.findall(r"framewire_\w+", expression)}
    assert asked == set(LABELS)


def test_it_groups_only_by_labels_that_its_metrics_have():
    for expression in EXPRESSIONS:
        by = {name for group in re.findall(r"by \(([^)]*)\)", expression) for name in re.findall(r"\w+", group)}
        for name in re.findall(r"framewire_\w+", expression):
            assert by <= LABELS[name] | {"instance", "job"}, expression


def test_counters_are_shown_as_rates():
    counters = {metric.name for metric in METRICS if metric.kind == "counter"} | WORKERS
    for expression in EXPRESSIONS:
        for name in counters & set(re.findall(r"framewire_\w+", expression)):
            assert re.search(rf"(?:rate|increase)\({name}\{{", expression), expression


def test_its_panels_have_numbers_of_their_own_and_do_not_overlap():
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert len(numbers) == len(set(numbers))
    for one, other in combinations([panel["gridPos"] for panel in BOARD["panels"]], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below


def test_it_names_no_data_source_of_ours():
    sources = {json.dumps(target["datasource"]) for panel in PANELS for target in panel["targets"]}
    assert sources == {json.dumps({"type": "prometheus", "uid": "${DS_PROMETHEUS}"})}
