"""What all departments have in common: they count what they do, and answer when the roll is called."""

from __future__ import annotations

import framewire as fw
from shop.messages import Present, RollCall

__all__ = ["Department"]


class Department(fw.Actor):
    def __init__(self) -> None:
        self.handled = 0

    @fw.handles(RollCall)
    async def present(self, _: RollCall) -> Present:
        return Present(type(self).__name__.lower(), self.handled)
