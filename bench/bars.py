"""Bars beside names as an SVG, for benches that compare: as little as that needs, no library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

__all__ = ["bars"]

_WIDTH, _ROW, _TOP, _LEFT, _RIGHT = 760, 24, 40, 150, 90
_STYLE = """
svg { font: 12px system-ui, sans-serif; } rect.back { fill: #fff; }
.title { font-weight: 600; fill: #1f2937; } .name { fill: #374151; } .value { fill: #6b7280; }
.bar { fill: #94a3b8; } .ours { fill: #2a78d6; }
@media (prefers-color-scheme: dark) {
  rect.back { fill: #111827; } .title { fill: #f3f4f6; } .name { fill: #d1d5db; } .value { fill: #9ca3af; }
  .bar { fill: #64748b; } .ours { fill: #5aa2f5; }
}
"""


def bars(title: str, values: Mapping[str, float], *, ours: str = "framewire", logarithmic: bool = False) -> str:
    """One bar a name in the order given; ours stand out."""
    height = _TOP + _ROW * len(values) + 12
    parts = [
        f'<rect class="back" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="16" y="24">{escape(title)}</text>',
    ]
    for number, (name, value) in enumerate(values.items()):
        y = _TOP + _ROW * number
        width = max(2.0, _share(value, values, logarithmic=logarithmic) * (_WIDTH - _LEFT - _RIGHT))
        kind = "bar ours" if name.startswith(ours) else "bar"
        parts += [
            f'<text class="name" x="{_LEFT - 10}" y="{y + 15}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{kind}" x="{_LEFT}" y="{y + 3}" width="{width:.1f}" height="{_ROW - 8}" rx="2"/>',
            f'<text class="value" x="{_LEFT + width + 8:.1f}" y="{y + 15}">{_number(value)}</text>',
        ]
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    label = f'role="img" aria-label="{escape(title, quote=True)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {label}><style>{_STYLE}</style>{"".join(parts)}</svg>\n'


def _share(value: float, values: Mapping[str, float], *, logarithmic: bool) -> float:
    most = max(values.values())
    if not logarithmic:
        return value / most
    least = min(values.values()) / 2
    return math.log(value / least) / math.log(most / least)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
