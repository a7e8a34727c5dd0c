"""Takes the money. A bank says no now and then; which orders it refuses depends on nothing but a seed."""

from __future__ import annotations

import random

import framewire as fw
from shop.department import Department
from shop.messages import Charge, Pack

__all__ = ["Declined", "Payment"]


class Declined(Exception):  # noqa: N818 - it is what the bank says
    """The customer's bank does not pay."""


class Payment(Department):
    concurrency = 8

    def __init__(self, seed: int = 0, declined: float = 0.1) -> None:
        super().__init__()
        self.seed = seed
        self.declined = declined

    @fw.handles(Charge)
    async def charge(self, charge: Charge) -> Pack:
        number = charge.order.number
        # One throw for each order, whatever else is going on: the same seed refuses the same orders.
        if random.Random(f"{self.seed}/{number}").random() < self.declined:  # noqa: S311 - a game, no secret
            raise Declined(f"order {number}: the bank does not pay {charge.cents / 100:,.2f}")
        self.handled += 1
        return Pack(charge.order)
