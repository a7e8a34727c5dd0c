"""A shop as a user would write it: tests run it as a program of its own, and ask it with its messages."""

import asyncio
import os

import msgspec

import framewire as fw


@fw.message("shop.order", version=2)
class Order(msgspec.Struct):
    article: str
    seconds: float = 0.0


@fw.message("shop.ordered", version=2)
class Ordered(msgspec.Struct):
    article: str
    pid: int


@fw.message("shop.scan")
class Scan(bytes):
    pass


class Shop(fw.Actor):
    concurrency = 10

    @fw.handles(Order)
    async def order(self, order: Order) -> Ordered:
        if order.article == "nothing":
            raise ValueError("nobody orders nothing")
        await asyncio.sleep(order.seconds)
        return Ordered(order.article, os.getpid())

    @fw.handles(Scan)
    async def scan(self, scan: Scan) -> Order:
        return Order(scan.decode())


def app(_):
    return Shop
