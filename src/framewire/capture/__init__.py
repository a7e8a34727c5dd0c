"""Recording what a node says and hears, as Parquet that any tool reads.

    async with fw.Node(capture="captures/") as node: ...

    table = framewire.capture.read("captures/")

Nothing here imports pyarrow before it is used, so that nodes which are not recorded need not have it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from framewire.capture.bodies import Cut, cut_of
    from framewire.capture.choosing import in_sample
    from framewire.capture.places import Place, Segment
    from framewire.capture.reading import Follower, batches, read
    from framewire.capture.recorder import Capture, CaptureStats
    from framewire.capture.retention import prune
    from framewire.capture.sealing import Recovered, recover
    from framewire.capture.settings import CaptureSettings

__all__ = [
    "Capture",
    "CaptureSettings",
    "CaptureStats",
    "Cut",
    "Follower",
    "Place",
    "Recovered",
    "Segment",
    "batches",
    "cut_of",
    "in_sample",
    "prune",
    "read",
    "recover",
]

_HOMES = {
    "Capture": "recorder",
    "CaptureSettings": "settings",
    "CaptureStats": "recorder",
    "Cut": "bodies",
    "Follower": "reading",
    "Place": "places",
    "Recovered": "sealing",
    "Segment": "places",
    "batches": "reading",
    "cut_of": "bodies",
    "in_sample": "choosing",
    "prune": "retention",
    "read": "reading",
    "recover": "sealing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
