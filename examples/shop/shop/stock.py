"""What there is, and what it costs."""

from __future__ import annotations

import framewire as fw
from shop.department import Department
from shop.messages import Count, Counted, Reserve, Reserved

__all__ = ["OutOfStock", "Stock"]

CENTS = {"tea": 420, "cup": 900, "piano": 249_900}
"""What the shop sells, for how much."""


class OutOfStock(LookupError):  # noqa: N818 - see Declined
    """There is not as much of an article as somebody wants."""


class Stock(Department):
    def __init__(self, each: int = 100_000) -> None:
        super().__init__()
        self.left = dict.fromkeys(CENTS, each)

    @fw.handles(Reserve)
    async def reserve(self, reserve: Reserve) -> Reserved:
        order = reserve.order
        if self.left.get(order.article, 0) < order.amount:
            raise OutOfStock(f"order {order.number}: there is not enough {order.article}")
        self.left[order.article] -= order.amount
        self.handled += 1
        return Reserved(order, CENTS[order.article] * order.amount)

    @fw.handles(Count)
    async def count(self, count: Count) -> Counted:
        return Counted(count.article, self.left.get(count.article, 0))
