"""How long captures are kept: the oldest go first, by age and by size.

Names of segments tell when they began, so nothing has to be opened. Several nodes may do this in one place at
the same time: a segment that is gone already is as good as removed.
"""

from __future__ import annotations

import time

from framewire.capture.places import Place, Segment

__all__ = ["prune"]


def prune(
    place: Place,
    *,
    keep_seconds: float | None = None,
    keep_bytes: int | None = None,
    dry_run: bool = False,
    now: float | None = None,
) -> list[Segment]:
    """Remove sealed segments that are too old, then the oldest while there are too many bytes; those removed."""
    segments = place.segments()
    oldest = float("-inf") if keep_seconds is None else (time.time() if now is None else now) - keep_seconds
    total = sum(segment.size for segment in segments)
    removed = []
    for segment in segments:
        if segment.began >= oldest and (keep_bytes is None or total <= keep_bytes):
            break
        total -= segment.size
        removed.append(segment)
        if not dry_run:
            place.remove(segment)
    return removed
