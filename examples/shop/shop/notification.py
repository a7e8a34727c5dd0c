"""Tells customers, by mail and by phone; by letter those who ordered and did not wait for an answer."""

from __future__ import annotations

from collections import Counter

import framewire as fw
from shop.department import Department
from shop.messages import Notify, Shipped

__all__ = ["Notification"]


class Notification(Department):
    concurrency = 16

    def __init__(self) -> None:
        super().__init__()
        self.sent: Counter[str] = Counter()

    @fw.handles(Notify)
    async def notify(self, notify: Notify) -> None:
        self.handled += 1
        self.sent[notify.by] += 1

    @fw.handles(Shipped)
    async def write(self, _: Shipped) -> None:
        self.handled += 1
        self.sent["letter"] += 1
