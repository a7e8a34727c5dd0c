"""What the departments say to each other.

An order is passed on from department to department, and the customer hears from the last one:

    orders.place → stock.reserve → stock.reserved → payment.charge → shipping.pack → orders.shipped
"""

from __future__ import annotations

import msgspec

import framewire as fw

__all__ = [
    "Charge",
    "Count",
    "Counted",
    "Notify",
    "Order",
    "Pack",
    "Place",
    "Present",
    "Reserve",
    "Reserved",
    "RollCall",
    "Shipped",
]


class Order(msgspec.Struct, frozen=True):
    """What a customer wants: the same in every message about it."""

    number: int
    customer: str
    article: str
    amount: int = 1


@fw.message("orders.place")
class Place(msgspec.Struct, frozen=True):
    order: Order


@fw.message("stock.reserve")
class Reserve(msgspec.Struct, frozen=True):
    order: Order


@fw.message("stock.reserved")
class Reserved(msgspec.Struct, frozen=True):
    order: Order
    cents: int


@fw.message("payment.charge")
class Charge(msgspec.Struct, frozen=True):
    """Everything that begins with payment. is signed: see README.md."""

    order: Order
    cents: int


@fw.message("shipping.pack")
class Pack(msgspec.Struct, frozen=True):
    order: Order


@fw.message("orders.shipped")
class Shipped(msgspec.Struct, frozen=True):
    number: int
    parcel: str


@fw.message("notify.send")
class Notify(msgspec.Struct, frozen=True):
    customer: str
    by: str
    text: str


@fw.message("stock.count")
class Count(msgspec.Struct, frozen=True):
    article: str


@fw.message("stock.counted")
class Counted(msgspec.Struct, frozen=True):
    article: str
    left: int


@fw.message("shop.roll_call")
class RollCall(msgspec.Struct, frozen=True):
    """Everybody answers."""


@fw.message("shop.present")
class Present(msgspec.Struct, frozen=True):
    department: str
    handled: int
