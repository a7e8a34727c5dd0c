"""How many there are of something, in words."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int | None, what: str, many: str | None = None) -> str:
    """1 flow, 2,000 flows."""
    return f"{number or 0:,} {what if number == 1 else many or what + 's'}"
