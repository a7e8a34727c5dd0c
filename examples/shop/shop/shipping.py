"""Packs parcels. A piano takes its time, and holds nobody up."""

from __future__ import annotations

import asyncio

import framewire as fw
from shop.department import Department
from shop.messages import Notify, Pack, Shipped

__all__ = ["Shipping"]

HEAVY = frozenset({"piano"})


class Shipping(Department):
    concurrency = 16

    def __init__(self, lifting: float = 0.8) -> None:
        super().__init__()
        self.lifting = lifting

    @fw.handles(Pack)
    async def pack(self, pack: Pack) -> list[Shipped | Notify]:
        order = pack.order
        if order.article in HEAVY:
            await asyncio.sleep(self.lifting)
        self.handled += 1
        parcel = f"FW-{order.number:06d}"
        # The first is what the customer waits for, and goes straight back; the others find their own way.
        told = [Notify(order.customer, by, f"{parcel} is on its way") for by in ("mail", "phone")]
        return [Shipped(order.number, parcel), *told]
