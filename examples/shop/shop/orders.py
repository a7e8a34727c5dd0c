"""Where orders come in. What has been reserved is sent on to be paid for."""

from __future__ import annotations

import framewire as fw
from shop.department import Department
from shop.messages import Charge, Place, Reserve, Reserved

__all__ = ["Orders"]


class Orders(Department):
    @fw.handles(Place)
    async def place(self, place: Place) -> Reserve:
        if place.order.amount < 1:
            raise ValueError(f"order {place.order.number}: nobody orders {place.order.amount}")
        self.handled += 1
        return Reserve(place.order)

    @fw.handles(Reserved)
    async def reserved(self, reserved: Reserved) -> Charge:
        return Charge(reserved.order, reserved.cents)
