"""Curves as an SVG, over time or over what a bench varies: as little as that needs, no library."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from html import escape

__all__ = ["Curve", "page"]

Curve = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 760, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 120, 34, 26
_FEW = 12
"""Points up to which each has a dot: a curve of one point would not be seen otherwise."""
_COLOURS = ("#2a78d6", "#d9730d", "#1f9e89", "#9a4fb5", "#c43d5a", "#6b7280")
_STYLE = """
svg { font: 12px system-ui, sans-serif; background: #fff; }
.title { font-weight: 600; fill: #1f2937; } .label { fill: #6b7280; } .grid { stroke: #e5e7eb; }
@media (prefers-color-scheme: dark) {
  svg { background: #111827; } .title { fill: #f3f4f6; } .label { fill: #9ca3af; } .grid { stroke: #374151; }
}
"""


def page(
    charts: Mapping[str, Mapping[str, Curve]],
    *,
    labels: Mapping[float, str] | None = None,
    logarithmic: bool = False,
    dashed: Collection[str] = (),
) -> str:
    """Draw charts below each other, each a title (with its unit) and curves by name.

    ``labels`` are what stands below the x axis; without them x is in seconds, and minutes stand there. With
    ``logarithmic``, equal ratios of x are equally far apart. Curves that are ``dashed`` are for comparison.
    """
    right = max([_RIGHT, *(44 + 7 * len(name) for curves in charts.values() for name in curves)])
    drawn = [
        f'<g transform="translate(0 {number * _HEIGHT})">'
        f"{_chart(title, curves, right, labels, dashed, logarithmic=logarithmic)}</g>"
        for number, (title, curves) in enumerate(charts.items())
    ]
    height = len(charts) * _HEIGHT
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>{"".join(drawn)}</svg>\n'


def _chart(
    title: str,
    curves: Mapping[str, Curve],
    right: int,
    labels: Mapping[float, str] | None,
    dashed: Collection[str],
    *,
    logarithmic: bool,
) -> str:
    points = [point for curve in curves.values() for point in curve]
    scaled = math.log if logarithmic else float
    across = [scaled(x) for x in (*(x for x, _ in points), *(labels or ()))]
    least = min(across, default=0.0) if logarithmic else 0.0
    longest = (max(across, default=1.0) - least) or 1.0
    step = _step(max((y for _, y in points), default=1.0) or 1.0)
    top = step * math.ceil((max((y for _, y in points), default=1.0) or 1.0) / step)

    def place(x: float, y: float) -> tuple[float, float]:
        along, up = (scaled(x) - least) / longest, y / top
        height = _HEIGHT - _TOP - _BOTTOM
        return _LEFT + along * (_WIDTH - _LEFT - right), _HEIGHT - _BOTTOM - up * height

    parts = [f'<text class="title" x="{_LEFT}" y="20">{escape(title)}</text>']
    for number in range(round(top / step) + 1):
        y = _HEIGHT - _BOTTOM - number * step / top * (_HEIGHT - _TOP - _BOTTOM)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="label" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number * step:g}</text>'
        )
    for at, label in (_minutes(longest) if labels is None else labels).items():
        x, y = place(at, 0)
        parts.append(
            f'<text class="label" x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{escape(label)}</text>'
        )
    for (name, curve), colour in _coloured(curves, dashed):
        parts += _drawn(name, [place(*point) for point in curve], colour, dashed=name in dashed)
    return "".join(parts) + _legend(curves, right, dashed)


def _minutes(longest: float) -> dict[float, str]:
    step = max(1, math.ceil(longest / 600))
    return {60.0 * minutes: f"{minutes} min" for minutes in range(0, math.floor(longest / 60) + 1, step)}


def _coloured(curves: Mapping[str, Curve], dashed: Collection[str]) -> list[tuple[tuple[str, Curve], str]]:
    """Return curves with their colours; those for comparison have the last one."""
    colours = iter(_COLOURS)
    return [((name, curve), _COLOURS[-1] if name in dashed else next(colours)) for name, curve in curves.items()]


def _drawn(name: str, places: list[tuple[float, float]], colour: str, *, dashed: bool) -> list[str]:
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    style = ' stroke-dasharray="5 4"' if dashed else ""
    shown = f'<polyline fill="none" stroke="{colour}" stroke-width="1.6"{style} points="{line}">'
    marked = places if len(places) <= _FEW and not dashed else []
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>' for x, y in marked]
    return [f"{shown}<title>{escape(name)}</title></polyline>", *dots]


def _legend(curves: Mapping[str, Curve], right: int, dashed: Collection[str]) -> str:
    rows = []
    for number, ((name, _), colour) in enumerate(_coloured(curves, dashed)):
        x, y = _WIDTH - right + 14, _TOP + 10 + 18 * number
        style = ' stroke-dasharray="5 4"' if name in dashed else ""
        rows.append(
            f'<line x1="{x}" x2="{x + 14}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="2.5"{style}/>'
        )
        rows.append(f'<text class="label" x="{x + 20}" y="{y}">{escape(name)}</text>')
    return "".join(rows)


def _step(most: float) -> float:
    """A round distance for three to six lines below the highest value."""
    rough = most / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    return unit * next(factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough)
