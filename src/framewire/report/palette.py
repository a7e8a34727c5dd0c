"""The colours of reports and dashboards, for light and dark, each under the name of what it stands for.

``ink``, ``soft``, ``accent``, ``good``, ``warning``, ``failed`` and ``dead`` are strong enough for text, the others
for areas and lines. Outcomes can be told apart by people who do not see red and green, and never by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["DARK", "LIGHT", "TROUBLES", "trouble"]

LIGHT: Mapping[str, str] = {
    "paper": "#fcfbf8",
    "raised": "#f4f2ec",
    "ink": "#1d2126",
    "soft": "#59616b",
    "faint": "#8b929b",
    "line": "#dedad0",
    "accent": "#1c5d99",
    "good": "#2a6e5e",
    "warning": "#8a5a0b",
    "completed": "#3d8c79",
    "failed": "#c23b22",
    "expired": "#d08a1d",
    "dead": "#76508f",
    "open": "#a2a9b0",
    "calm": "#7f93a8",
    "some": "#d08a1d",
    "much": "#c23b22",
    "way": "#1c5d99",
    "wait": "#a2a9b0",
    "work": "#3d8c79",
}
"""On paper and in bright rooms."""

DARK: Mapping[str, str] = {
    "paper": "#15181c",
    "raised": "#1e2227",
    "ink": "#e8e6e1",
    "soft": "#a9b0b8",
    "faint": "#7b838c",
    "line": "#31363d",
    "accent": "#7fb4e6",
    "good": "#57b39c",
    "warning": "#e6aa4d",
    "completed": "#57b39c",
    "failed": "#f0705a",
    "expired": "#e6aa4d",
    "dead": "#b48ad0",
    "open": "#767e87",
    "calm": "#7189a1",
    "some": "#e6aa4d",
    "much": "#f0705a",
    "way": "#7fb4e6",
    "wait": "#767e87",
    "work": "#57b39c",
}
"""The same on a dark ground."""

TROUBLES: Mapping[str, tuple[float, str]] = {
    "calm": (0.01, "up to 1 % lost or in error"),
    "some": (0.1, "up to 10 %"),
    "much": (1.0, "more than 10 %"),
}
"""How much of an edge's traffic is lost or in error, by the name of its colour: up to this part of it."""


def trouble(rate: float) -> str:
    """The name of the colour for a part of traffic that is lost or in error."""
    return next((name for name, (most, _) in TROUBLES.items() if rate <= most), "much")
