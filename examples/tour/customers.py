"""The customers: a node of their own, which orders, asks, and keeps account of what came of it.

What they counted is what the lake is held against in the end.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

from shop.messages import Count, Counted, Order, Place, Present, RollCall, Shipped

import framewire as fw
from framewire.cluster.route_requests import MessageRoutes, RequestMessageRoutes
from tour.premises import NODES
from tour.stage import BrokenPromiseError

__all__ = ["ORDERS", "PIANOS", "Account", "Customers"]

ORDERS = 300
PIANOS = 3
_AT_A_TIME = 12
_ARTICLES = ("tea", "cup", "tea")
_NAMES = ("Ada", "Alan", "Grace", "Edsger", "Barbara", "Tony")
_DEPARTMENTS = 5


@dataclass(slots=True)
class Account:
    """What customers know of the day."""

    outcomes: Counter[str] = field(default_factory=Counter)
    """How many of their flows were completed, and how many failed."""
    shipped: int = 0
    declined: list[str] = field(default_factory=list)
    """The orders that no bank would pay for."""
    pianos: list[str] = field(default_factory=list)
    took: dict[str, float] = field(default_factory=dict)
    """Seconds until each order that was shipped was answered."""
    unreachable: int = 0
    """Questions that ended because nobody was there any more."""
    departments: dict[str, int] = field(default_factory=dict)
    """What each department said that it had done, when the roll was last called."""


class Customers:
    """People who want something of the shop."""

    def __init__(self, node: fw.Node) -> None:
        self._hub = node.hub
        self._node = node
        self._room = asyncio.Semaphore(_AT_A_TIME)
        self._questions = 0
        self.account = Account()

    async def find_the_shop(self, seconds: float = 20) -> None:
        """Wait until every department is known here."""
        wanted = RequestMessageRoutes(fw.MessageId(b"shop.roll_call"))
        deadline = time.monotonic() + seconds
        while True:
            found = await self._hub.ask(wanted, MessageRoutes, to_node=self._node.identity)
            if len(found.external) == len(NODES):
                return
            if time.monotonic() > deadline:
                raise BrokenPromiseError(f"of the shop, only {len(found.external)} nodes were found")
            await asyncio.sleep(0.05)

    async def order_all_day(self) -> None:
        """Many orders, a few at a time."""
        await asyncio.gather(*(self._order(number, _ARTICLES[number % 3]) for number in range(1, ORDERS + 1)))

    async def order_pianos(self) -> None:
        first = ORDERS + 1
        numbers = range(first, first + PIANOS)
        self.account.pianos = [_flow(number) for number in numbers]
        await asyncio.gather(*(self._order(number, "piano") for number in numbers))

    async def _order(self, number: int, article: str) -> None:
        order = Order(number, _NAMES[number % len(_NAMES)], article, 1 + number % 2)
        async with self._room:
            began = time.perf_counter()
            try:
                shipped = await self._hub.ask(Place(order), Shipped, correlation_id=_flow(number).encode())
            except fw.RemoteError as error:
                if error.type_name != "shop.payment.Declined":
                    raise
                self.account.outcomes["failed"] += 1
                self.account.declined.append(_flow(number))
            else:
                if shipped.number != number:
                    raise BrokenPromiseError(f"order {number} was answered with {shipped}")
                self.account.outcomes["completed"] += 1
                self.account.shipped += 1
                self.account.took[_flow(number)] = time.perf_counter() - began

    async def call_the_roll(self, occasion: str, times: int = 1) -> None:
        """A broadcast: every department answers, and tells how much it has done."""
        for number in range(1, times + 1):
            flow = f"roll-call-{occasion}-{number:02}".encode()
            present = await self._hub.gather(RollCall(), Present, stop_after=_DEPARTMENTS, correlation_id=flow)
            self.account.departments = {each.department: each.handled for each in present}
            if len(self.account.departments) != _DEPARTMENTS:
                raise BrokenPromiseError(
                    f"of {_DEPARTMENTS} departments, {', '.join(self.account.departments)} answered"
                )
            self.account.outcomes["completed"] += 1

    def ask_the_stock(self, times: int = 1) -> list[fw.Promise[Counted]]:
        """Questions that somebody should answer."""
        self._questions, first = self._questions + times, self._questions + 1
        return [
            self._hub.start(Count("tea"), Counted, correlation_id=f"question-{number:02}".encode())
            for number in range(first, first + times)
        ]

    async def hear(self, promises: list[fw.Promise[Counted]]) -> None:
        """Keep account of what came of the questions."""
        for promise in promises:
            try:
                await promise
            except fw.Unreachable:
                self.account.unreachable += 1
            else:
                self.account.outcomes["completed"] += 1


def _flow(number: int) -> str:
    return f"order-{number:04}"
