"""Where nodes stand in a drawing: those that talk much close together, none upon another, and always the same.

Nodes push each other away and edges pull, from a circle on, with less and less force. There is no chance in it: the
same cluster looks the same tomorrow.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

__all__ = ["HIGH", "WIDE", "Places", "placed"]

WIDE, HIGH = 1000.0, 560.0
_MARGIN_X, _MARGIN_Y = 90.0, 60.0
_STEPS = 140
_SLACK = 1e-6
_GAP, _NEARLY = 120.0, 1.0
"""How far apart nodes stand at least, where there is room: a circle and its name."""


class Places:
    """Places of a drawing that changes: worked out anew only when who is there, or who pulls whom, is another."""

    def __init__(self) -> None:
        self._asked: tuple[frozenset[str], frozenset[tuple[str, str]]] = (frozenset(), frozenset())
        self._found: dict[str, tuple[float, float]] = {}

    def of(self, nodes: Sequence[str], pairs: Collection[tuple[str, str]]) -> Mapping[str, tuple[float, float]]:
        """The places of some nodes, of which these pairs pull each other."""
        asked = (frozenset(nodes), frozenset(pairs))
        if asked != self._asked:
            # Forty nodes take a tenth of a second, and everybody who looks waits for it.
            self._asked, self._found = asked, placed(nodes, dict.fromkeys(pairs, 0.5))
        return self._found


def placed(nodes: Sequence[str], edges: Mapping[tuple[str, str], float]) -> dict[str, tuple[float, float]]:
    """The places of some nodes; the numbers are how strongly a pair pulls, from 0 to 1."""
    names = sorted(nodes)
    if not names:
        return {}
    if len(names) == 1:
        return {names[0]: (WIDE / 2, HIGH / 2)}
    turn = 2 * math.pi / len(names)
    x = [math.cos(turn * at - math.pi / 2) for at in range(len(names))]
    y = [math.sin(turn * at - math.pi / 2) for at in range(len(names))]
    index = {name: at for at, name in enumerate(names)}
    pulls: dict[tuple[int, int], float] = {}
    for (one, other), pull in edges.items():
        if one in index and other in index and one != other:
            pair = (min(index[one], index[other]), max(index[one], index[other]))
            pulls[pair] = max(pulls.get(pair, 0.0), pull)
    apart = 2.0 / math.sqrt(len(names))
    for step in range(_STEPS):
        _step(x, y, pulls, apart, 0.12 * (1 - step / _STEPS))
    x, y = _fitted(x, _MARGIN_X, WIDE), _fitted(y, _MARGIN_Y, HIGH)
    gap = min(_GAP, 0.7 * math.sqrt(WIDE * HIGH / len(names)))
    for _ in range(_STEPS):
        if not _pushed_apart(x, y, gap):
            break
    return {name: (round(x[at], 1), round(y[at], 1)) for name, at in index.items()}


def _step(
    x: list[float], y: list[float], pulls: Mapping[tuple[int, int], float], apart: float, most: float
) -> None:
    count = len(x)
    dx, dy = [0.0] * count, [0.0] * count
    for one in range(count):
        for other in range(one):
            away_x, away_y = x[one] - x[other], y[one] - y[other]
            square = away_x * away_x + away_y * away_y + _SLACK
            force = apart * apart / square - pulls.get((other, one), 0.0) * math.sqrt(square) / apart
            dx[one] += away_x * force
            dy[one] += away_y * force
            dx[other] -= away_x * force
            dy[other] -= away_y * force
    for at in range(count):
        # Those that nothing pulls would drift away for ever.
        dx[at] -= 0.3 * x[at]
        dy[at] -= 0.3 * y[at]
        length = math.hypot(dx[at], dy[at]) + _SLACK
        x[at] += dx[at] / length * min(length, most)
        y[at] += dy[at] / length * min(length, most)


def _fitted(values: list[float], margin: float, size: float) -> list[float]:
    least, most = min(values), max(values)
    if most - least < _SLACK:
        return [size / 2] * len(values)
    return [margin + (value - least) / (most - least) * (size - 2 * margin) for value in values]


def _pushed_apart(x: list[float], y: list[float], gap: float) -> bool:
    """Push those apart that stand closer than a gap, within the drawing; whether there were any."""
    any_close = False
    for one in range(len(x)):
        for other in range(one):
            away_x, away_y = x[one] - x[other], y[one] - y[other]
            length = math.hypot(away_x, away_y)
            if length >= gap - _NEARLY:
                continue
            any_close = True
            if length < _SLACK:
                away_x, away_y, length = 1.0, 0.0, 1.0
            push = (gap - length) / 2 / length
            x[one], x[other] = (
                _within(x[one] + away_x * push, _MARGIN_X, WIDE),
                _within(x[other] - away_x * push, _MARGIN_X, WIDE),
            )
            y[one], y[other] = (
                _within(y[one] + away_y * push, _MARGIN_Y, HIGH),
                _within(y[other] - away_y * push, _MARGIN_Y, HIGH),
            )
    return any_close


def _within(value: float, margin: float, size: float) -> float:
    return min(max(value, margin), size - margin)
