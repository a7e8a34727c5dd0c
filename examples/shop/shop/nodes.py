"""Which department works where: `framewire node --app shop.nodes:orders`, and so on.

Each function is called with the node that it is to run on, and returns what to host there. To move a department,
move its name.
"""

from __future__ import annotations

import os

import framewire as fw
from shop.notification import Notification
from shop.orders import Orders
from shop.payment import Payment
from shop.shipping import Shipping
from shop.stock import Stock

__all__ = ["depot", "orders", "payment", "stock"]


def orders(_: fw.Node) -> list[type[fw.Actor]]:
    return [Orders]


def stock(_: fw.Node) -> list[type[fw.Actor]]:
    return [Stock]


def payment(_: fw.Node) -> list[fw.Actor]:
    return [Payment(seed=int(os.environ.get("SHOP_SEED", "0")))]


def depot(_: fw.Node) -> list[type[fw.Actor]]:
    return [Shipping, Notification]
