"""Curves over time as an SVG, for benches that watch something for long: as little as that needs, no library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["Curve", "page"]

Curve = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 760, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 120, 34, 26
_COLOURS = ("#2a78d6", "#d9730d", "#1f9e89", "#9a4fb5", "#c43d5a", "#6b7280")
_STYLE = """
svg { font: 12px system-ui, sans-serif; background: #fff; }
.title { font-weight: 600; fill: #1f2937; } .label { fill: #6b7280; } .grid { stroke: #e5e7eb; }
@media (prefers-color-scheme: dark) {
  svg { background: #111827; } .title { fill: #f3f4f6; } .label { fill: #9ca3af; } .grid { stroke: #374151; }
}
"""


def page(charts: Mapping[str, Mapping[str, Curve]]) -> str:
    """Charts below each other, each a title (with its unit) and curves by name; x is in seconds."""
    drawn = [
        f'<g transform="translate(0 {number * _HEIGHT})">{_chart(title, curves)}</g>'
        for number, (title, curves) in enumerate(charts.items())
    ]
    height = len(charts) * _HEIGHT
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>{"".join(drawn)}</svg>\n'


def _chart(title: str, curves: Mapping[str, Curve]) -> str:
    points = [point for curve in curves.values() for point in curve]
    longest = max((x for x, _ in points), default=1.0) or 1.0
    step = _step(max((y for _, y in points), default=1.0) or 1.0)
    top = step * math.ceil((max((y for _, y in points), default=1.0) or 1.0) / step)

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = x / longest, y / top
        height = _HEIGHT - _TOP - _BOTTOM
        return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up * height

    parts = [f'<text class="title" x="{_LEFT}" y="20">{escape(title)}</text>']
    for number in range(round(top / step) + 1):
        _, y = place(0, number * step)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="label" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number * step:g}</text>'
        )
    for minutes in range(0, math.floor(longest / 60) + 1, max(1, math.ceil(longest / 600))):
        x, y = place(60 * minutes, 0)
        parts.append(f'<text class="label" x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{minutes} min</text>')
    for (name, curve), colour in zip(curves.items(), _COLOURS, strict=False):
        parts += _drawn(name, [place(*point) for point in curve], colour)
    return "".join(parts) + _legend(curves)


def _drawn(name: str, places: list[tuple[float, float]], colour: str) -> list[str]:
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    shown = f'<polyline fill="none" stroke="{colour}" stroke-width="1.6" points="{line}">'
    return [f"{shown}<title>{escape(name)}</title></polyline>"]


def _legend(curves: Mapping[str, Curve]) -> str:
    rows = []
    for number, (name, colour) in enumerate(zip(curves, _COLOURS, strict=False)):
        x, y = _WIDTH - _RIGHT + 14, _TOP + 10 + 18 * number
        rows.append(
            f'<line x1="{x}" x2="{x + 14}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="2.5"/>'
        )
        rows.append(f'<text class="label" x="{x + 20}" y="{y}">{escape(name)}</text>')
    return "".join(rows)


def _step(most: float) -> float:
    """A round distance for three to six lines below the highest value."""
    rough = most / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    return unit * next(factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough)
