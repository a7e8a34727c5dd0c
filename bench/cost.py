"""What a billion messages a day take on Spark: executors, memory and storage, from the slopes of bench/pipeline.py.

A slope is the time that each further message takes, so what a run costs once (starting, planning, compiling) is not
in it: a stream that runs all day pays that once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["Cost", "cost"]

A_DAY = 86_400
MESSAGES = 1_000_000_000
PEAK = 3.0
"""How many times the average the busiest hour has."""
SPARE = 1.5
"""Room for what comes late, for restarts, and for machines that are slower than this one."""
CORES = 4
"""Of an executor."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What the model says."""

    microseconds: float
    """Of one core, for each message."""
    average: float
    """Cores that are busy all day."""
    executors: int
    """With ``CORES`` each, for the busiest hour and with room to spare."""
    gigabytes: float
    """Memory of all of them."""
    captures: float
    """Terabytes of captures a day."""
    lake: float
    """Terabytes of tables a day."""


def cost(found: dict[str, Any]) -> Cost:
    """By the smallest and the largest run of ``bench/results/pipeline.json``."""
    sizes = sorted(found["sizes"], key=lambda size: size["messages"])
    small, large = sizes[0], sizes[-1]
    more = large["messages"] - small["messages"]

    def slope(name: str) -> float:
        return float((large[name] - small[name]) / more)

    core_seconds = slope("seconds") * found["cores"]
    average = core_seconds * MESSAGES / A_DAY
    executors = math.ceil(average * PEAK * SPARE / CORES)
    return Cost(
        core_seconds * 1e6,
        average,
        executors,
        executors * CORES * found["memory_gb"] / found["cores"],
        slope("captures_bytes") * MESSAGES / 1e12,
        slope("lake_bytes") * MESSAGES / 1e12,
    )
