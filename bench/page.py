"""Write docs/benchmarks.md and its plots from what the benches left in bench/results: ``python -m bench.page``.

All figures on the page come from there, so it can be made anew on any machine; what is said about them is in
``bench/benchmarks.md.txt``, with a line ``{{name}}`` wherever a table or plot goes.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.bars import bars
from bench.cost import CORES, PEAK, SPARE, cost
from bench.overload import pictures

RESULTS = Path("bench/results")
PICTURES = Path("docs/pictures")
TEXT = Path(__file__).with_name("benchmarks.md.txt")

_COLUMNS = {
    "one by one, p50": ("p50_us", "{:,.0f} µs"),
    "p99": ("p99_us", "{:,.0f} µs"),
    "asks/s": ("asks_per_s", "{:,.0f}"),
    "tells/s": ("tells_per_s", "{:,.0f}"),
    "asks/s, 1 kB": ("asks_per_s, 1 kB", "{:,.0f}"),
    "10 kB": ("asks_per_s, 10 kB", "{:,.0f}"),
    "1 MB": ("asks_per_s, 1 MB", "{:,.0f}"),
    "local asks/s": ("local_asks_per_s", "{:,.0f}"),
    "start": ("start_s", "{:.2f} s"),
    "idle": ("idle_mb", "{:.0f} MB"),
}


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def picture(name: str, title: str, values: Mapping[str, float], *, logarithmic: bool = False) -> str:
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"bench-{name}.svg").write_text(bars(title, values, logarithmic=logarithmic), encoding="utf-8")
    return f"![{title}](pictures/bench-{name}.svg)"


def peers(found: dict[str, Any]) -> dict[str, str]:
    measured: dict[str, dict[str, float]] = found["peers"]
    ordered = sorted(measured, key=lambda name: -measured[name].get("asks_per_s", 0))
    raw = measured.get("raw pyzmq", {})

    def cell(name: str, key: str, form: str) -> str:
        value = measured[name].get(key)
        return "" if value is None else form.format(value)

    def of(key: str) -> dict[str, float]:
        there = {name: measured[name][key] for name in ordered if key in measured[name]}
        return dict(sorted(there.items(), key=lambda item: item[1], reverse=key != "p50_us"))

    rows = [[name, *(cell(name, key, form) for key, form in _COLUMNS.values())] for name in ordered]
    ratios = [
        [name, *(f"{measured[name][key] / raw[key]:.2f}" for key in ("p50_us", "asks_per_s", "tells_per_s"))]
        for name in ordered
        if raw and "asks_per_s" in measured[name]
    ]
    goals = [
        [goal["what"], f"{goal['ratio']:.2f}", f"{goal['goal']:g}", "yes" if goal["met"] else "**no**"]
        for goal in found["goals"]
    ]
    left_out = "\n".join(f"- {name}: {why}" for name, why in found["left_out"].items())
    return {
        "machine": f"{found['machine']}; medians of {found['rounds']} rounds",
        "peers": table(["", *_COLUMNS], rows),
        "ratios": table(["of raw pyzmq", "p50", "asks", "tells"], ratios),
        "goals": table(["goal", "reached", "wanted", "met"], goals),
        "limit": _limit(measured),
        "left_out": f"Left out:\n\n{left_out}" if left_out else "Nothing was left out.",
        "asks": picture("asks", "asks a second, 1,000 outstanding, 100 bytes", of("asks_per_s")),
        "tells": picture("tells", "tells a second, 100 bytes", of("tells_per_s")),
        "p50": picture("p50", "one ask after the other: µs, median", of("p50_us"), logarithmic=True),
    }


def _limit(measured: Mapping[str, Mapping[str, float]]) -> str:
    """How far the frames allow, where both ends of that were measured: a peer may not be installed."""
    if not {"framewire", "libzmq in C", "NATS"} <= measured.keys():
        return "is not known without both in the table above"
    mine, most, nats = (measured[name]["asks_per_s"] for name in ("framewire", "libzmq in C", "NATS"))
    return f"makes {most / nats:.2f} times the asks of NATS, and framewire {mine / most:.0%} of that"


def decoding(found: list[dict[str, Any]]) -> dict[str, str]:
    beside = {"Python codec": "of decoding", "growth": "of decoding fewer"}
    rows = [
        [
            f"{row['messages']:,} messages: {row['kind']}",
            f"{row['seconds']:,.1f} s" if "seconds" in row else "",
            f"{row['ratio']:.2f} {beside.get(row['kind'], 'of the scan')}",
            f"{row['wanted']}: {_verdict(row['met'])}" if row["wanted"] else "",
        ]
        for row in found
    ]
    return {"decoding": table(["", "time", "ratio", "wanted"], rows)}


def recording(found: dict[str, Any]) -> dict[str, str]:
    kinds = {"off": "not recorded", "encoded": "frames made, not recorded", "recorded": "recorded"}
    rows = [
        [
            f"{row['way']}, {kinds[row['kind']]}",
            f"{row['rate']:,.0f}",
            f"{row['loop_us']:.1f} µs",
            f"{row['ratio']:.2f}",
            f"at least {row['goal']:g}: {_verdict(row['met'])}" if row["goal"] else "",
        ]
        for row in found["rows"]
    ]
    return {"recording": table(["", "asks/s", "of the event loop, each", "of the rate", "wanted"], rows)}


def scaling(found: dict[str, Any]) -> dict[str, str]:
    drawn = [
        picture(f"scaling-{number}", title, {f"{name} ": value for name, value in rows.items()})
        for number, (title, rows) in enumerate(found["curves"].items())
    ]
    return {"scaling": "\n\n".join(drawn)}


def alternatives(found: dict[str, Any]) -> dict[str, str]:
    rows: list[dict[str, Any]] = found["rows"]
    sizes = sorted({row["messages"] for row in rows})
    taken = {(row["way"], row["messages"]): row["seconds"] for row in rows}
    ways = list(dict.fromkeys(row["way"] for row in rows))

    def cell(seconds: float | None) -> str:
        return f"over {found['minutes']:g} minutes" if seconds is None else f"{seconds:,.1f} s"

    told = [[way, *(cell(taken[way, size]) for size in sizes)] for way in ways]
    return {"alternatives": table(["from start to answer", *(f"{size:,} messages" for size in sizes)], told)}


def pipeline(found: dict[str, Any]) -> dict[str, str]:
    rows = [
        [
            f"{size['messages']:,}",
            f"{size['seconds']:,.1f} s",
            f"{1e6 * size['seconds'] / size['messages']:,.0f} µs",
            f"{size['captures_bytes'] / size['messages']:,.0f} B",
            f"{size['lake_bytes'] / size['messages']:,.0f} B",
        ]
        for size in found["sizes"]
    ]
    compared = [
        [
            row["about"],
            f"{row['seconds']:,.1f} s",
            f"{row['against']:,.1f} s",
            f"{row['ratio']:.2f}",
            _verdicts(row),
        ]
        for row in found["rows"]
        if row["ratio"] is not None
    ]
    told = cost(found)
    costs = [
        ["time of one core for each message", f"{told.microseconds:,.0f} µs"],
        ["cores that are busy all day", f"{told.average:,.1f}"],
        [f"executors of {CORES} cores", f"{told.executors}"],
        ["their memory", f"{told.gigabytes:,.0f} GB"],
        ["captures, a day", f"{told.captures:,.2f} TB"],
        ["the lake, a day", f"{told.lake:,.2f} TB"],
    ]
    return {
        "pipeline": table(["messages", "all tables", "each", "captures, each", "lake, each"], rows),
        "compared": table(["what", "time", "against", "ratio", "wanted"], compared),
        "cost": table(["10⁹ messages a day", ""], costs),
        "peak": f"{PEAK:g}",
        "spare": f"{SPARE:g}",
        "first": f"{found['first_seconds']:,.0f} s",
        "memory": f"{found['memory_gb']:g} GB for {found['cores']} cores",
    }


def _verdicts(row: Mapping[str, Any]) -> str:
    told = [f"{each['at_most']:g}: {_verdict(each['met'])}" for each in row["goals"]]
    return f"at most {', '.join(told)}" if told else ""


def _verdict(met: bool) -> str:
    return "met" if met else "**missed**"


def largest(found: dict[str, Any]) -> dict[str, str]:
    size, (row,) = found["sizes"][-1], found["rows"]
    times = f"{size['seconds']:,.0f} s, {row['ratio']:.1f} times {row['messages']:,}"
    memory = f"in the same {found['memory_gb']:g} GB of memory"
    return {"largest": f"{size['messages']:,} messages took {times}, {memory}"}


def overload(found: dict[str, Any]) -> dict[str, str]:
    rows: list[dict[str, Any]] = found["rows"]
    for row in rows:
        if row["capacity_beside"] is not None:
            row["of_capacity_beside"] = row["capacity_beside"] / row["capacity"]
    swept = [row for row in rows if row["part"] == "sweep"]
    loads = sorted({row["load"] for row in swept})

    def by_load(key: str, form: str) -> str:
        """Return a table of one figure: scenes below each other, loads side by side; no scene without it."""
        cells = {(row["scene"], row["load"]): row for row in swept if row.get(key) is not None}
        told = [
            [name, *(_figure(cells.get((name, load), {}).get(key), form) for load in loads)]
            for name in dict.fromkeys(name for name, _ in cells)
        ]
        return table(["", *(f"{load:g}x" for load in loads)], told)

    PICTURES.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for name, text in pictures(rows).items():
        (PICTURES / f"bench-overload-{name}.svg").write_text(text, encoding="utf-8")
        drawn[name] = f"![overload: {name}](pictures/bench-overload-{name}.svg)"
    more = [
        [
            f"{row['scene']}, {row['load']:g}x",
            f"{row['of_capacity']:.2f}",
            _figure(row["p99_ms"], "{:,.0f} ms"),
            f"{row['overloaded']:,}",
            _figure(row["refusal_p99_ms"], "{:,.1f} ms"),
            f"{row['expired'] + row['late']:,}",
        ]
        for row in rows
        if row["part"] != "sweep"
    ]
    callers = [
        [
            f"{row['scene']}: {name}",
            f"{row[name]['offered']:,.0f}",
            f"{row[name]['goodput']:,.1f}",
            _figure(row[name]["p99_ms"], "{:,.0f} ms"),
            f"{row[name]['overloaded']:,}",
            f"{row[name]['expired']:,}",
        ]
        for row in found["fairness"]
        for name in ("quiet", "greedy")
    ]
    heads = ["", "offered/s", "answered in time/s", "p99", "refused", "expired"]
    parts = {
        "overload_met": _goals_met(found),
        "overload_goodput": by_load("of_capacity", "{:.2f}"),
        "overload_p99": by_load("p99_ms", "{:,.0f}"),
        "overload_refusals": by_load("refusal_p99_ms", "{:,.1f}"),
        "overload_behind": _behind(swept),
        "overload_beside": by_load("of_capacity_beside", "{:.2f}"),
        "overload_more": table(["", "of capacity", "p99", "refused", "p99 of refusals", "expired"], more),
        "overload_fair": table(heads, callers),
    }
    return parts | {f"overload_plot_{name}": line for name, line in drawn.items()}


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _goals_met(found: dict[str, Any]) -> str:
    points = [*found["rows"], *found["fairness"]]
    met = sum(not row["missed"] for row in points)
    short = " in a short run (`--quick`)" if found["quick"] else ""
    broken = "".join(f" Not measured: {what}." for what in found["broken"])
    misses = "".join(
        f"\n- {row['scene']}{_times(row)}: {'; '.join(row['missed'])}" for row in points if row["missed"]
    )
    told = f"{met} of {len(points)} points{short} meet all goals."
    return f"{told}{broken}" + (f" The others:\n{misses}" if misses else "")


def _behind(rows: list[dict[str, Any]]) -> str:
    reached = [
        f"{row['offered'] / row['capacity']:.1f} instead of {row['load']:g} times at {row['scene']}"
        for row in rows
        if row["behind_s"] > 0.1
    ]
    return f"The generator offered {', '.join(reached)}." if reached else "The generator offered all that was due."


def _times(row: Mapping[str, Any]) -> str:
    return f", {row['load']:g}x" if "load" in row else ""


SOURCES: dict[str, Callable[[Any], dict[str, str]]] = {
    "peers": peers,
    "capture": recording,
    "spark": decoding,
    "pipeline-16m": largest,
    "scaling": scaling,
    "overload": overload,
    "alternatives": alternatives,
    "pipeline": pipeline,
}


def main() -> None:
    argparse.ArgumentParser(prog="python -m bench.page", description=__doc__.partition("\n")[0]).parse_args()
    parts: dict[str, str] = {}
    for name, made in SOURCES.items():
        path = RESULTS / f"{name}.json"
        if path.exists():
            parts |= made(json.loads(path.read_text(encoding="utf-8")))
    text = TEXT.read_text(encoding="utf-8")
    missing = [name for name in re.findall(r"\{\{(\w+)\}\}", text) if name not in parts]
    if missing:
        raise SystemExit(f"bench/results lacks what {', '.join(missing)} is made from: run the benches first")
    page = re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], text)
    Path("docs/benchmarks.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
