"""Values from captures and nodes as text that a browser shows as it is, and as short as a reader wants it.

Whatever a peer sent is made printable and cut here, on the server: a megabyte that is never sent to the browser
cannot make it slow, and what reads from right to left cannot turn a line around.
"""

from __future__ import annotations

import datetime as dt
from urllib.parse import quote, urlencode

from framewire.wire.explaining import printable

__all__ = ["address", "brief", "bytes_text", "count", "flow_address", "moment", "rate", "shown", "span"]

LONGEST = 160
"""Characters of a name that are shown."""
_LONGEST_ID = 400
_BRIEF = 20
_TIMES = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def shown(value: object, most: int = LONGEST) -> str:
    """A value as text, cut where it is longer than anybody reads; a dash where there is none."""
    if value is None or value == "":
        return "—"
    text = str(value)
    cut = len(text) > most
    return printable(text[:most]) + ("…" if cut else "")


def brief(name: object) -> str:
    """The name of a node, or as much of a long one as tells it from others."""
    text = shown(name)
    return text if len(text) <= _BRIEF else f"{text[:8]}…"


def span(seconds: float | None) -> str:
    """A length of time in as few characters as tell it."""
    if seconds is None:
        return "—"
    size = abs(seconds)
    if size < 0.000_001:
        return "0"
    if size < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if size < 1:
        return f"{seconds * 1e3:.3g} ms"
    for unit, name in _TIMES:
        if size >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.3g} s"


def rate(value: float) -> str:
    """So many a second."""
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def count(value: float | None) -> str:
    """A number, with its thousands apart."""
    return "—" if value is None else f"{value:,.0f}"


def bytes_text(size: int) -> str:
    """A size as a person says it."""
    for unit, name in _SIZES:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:,} B"


def moment(at: dt.datetime | None) -> str:
    """A time of the lake, which is UTC, to the millisecond."""
    return "—" if at is None else at.isoformat(" ", "milliseconds")


def address(path: str, **query: object) -> str:
    """The address of a page, with those filters that are set."""
    told = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(told)}" if told else path


def flow_address(flow: str | None) -> str | None:
    """The address of a flow's page; None for what belongs to no flow, or has an id that no address can hold."""
    return f"/flow/{quote(flow, safe='')}" if flow and len(flow) <= _LONGEST_ID else None
