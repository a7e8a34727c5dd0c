"""The day in the shop, chapter by chapter: what happens while the cluster lives."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path

import framewire as fw
from framewire import capture
from tour.customers import ORDERS, PIANOS, Customers
from tour.premises import SHOP, Premises
from tour.processes import Processes, eventually, last_words
from tour.stage import Stage
from tour.strangers import forged_charges, recordings, wire_to

__all__ = ["FORGED", "Day", "recorded"]

FORGED = 5
_QUESTIONS = 12
_LETTERS = 1
"""To the one customer who did not wait for an answer: the order in V4."""
_ROLL_CALLS = 10
"""Messages both ways while nothing else happens: from the quickest of them the lake learns how clocks differ."""
_CHARGE = {"order": {"number": 1, "customer": "Mallory", "article": "tea"}, "cents": 1}


@dataclass(slots=True)
class Day:
    """A day in the shop."""

    stage: Stage
    processes: Processes
    premises: Premises
    customers: Customers
    node: fw.Node

    async def an_ordinary_day(self) -> None:
        """Chains, fan-out, a broadcast, a slow handler, one that fails, and messages from long ago."""
        stage, customers = self.stage, self.customers
        account = customers.account
        stage.chapter("An ordinary day")
        with stage.step("the roll is called") as step:
            await customers.call_the_roll("morning", _ROLL_CALLS)
            step.told = f"the roll is called {_ROLL_CALLS} times: {', '.join(sorted(account.departments))}"
        with stage.step(f"{ORDERS} orders") as step:
            began = time.monotonic()
            await customers.order_all_day()
            rate = ORDERS / (time.monotonic() - began)
            declined = len(account.declined)
            stage.check(f"some orders are declined, and most are not: {declined}", holds=0 < declined < ORDERS / 2)
            step.told = (
                f"{ORDERS} orders through four nodes and straight back, {rate:,.0f} a second: "
                f"{account.shipped} shipped, {declined} declined"
            )
        with stage.step(f"{PIANOS} pianos") as step:
            await customers.order_pianos()
            longest = max(account.took.values())
            step.told = f"{PIANOS} pianos, which take their time: {longest:.2f} s the slowest"
        with stage.step("orders from long ago") as step:
            await self._orders_from_long_ago()
            step.told = "an order recorded in V1 is answered in V1; one recorded in V4 is shipped, too"

    async def _orders_from_long_ago(self) -> None:
        old, newer = recordings().orders
        with wire_to(self.premises.addresses["orders"]) as wire:
            wire.send(old.frames)
            wire.send(newer.frames)
            version, shipped = await wire.answer()
        self.stage.check(
            f"a V1 caller gets a V1 answer about its order, not V{version} about {shipped.number}",
            holds=(version, shipped.number) == (1, 2016),
        )
        self.customers.account.outcomes["completed"] += 1

    async def a_look_inside(self) -> None:
        """What an operator sees."""
        stage, where = self.stage, ("--rendezvous", self.premises.rendezvous)
        look = [("ps",), ("routes", "*.p*")]
        stage.chapter("A look inside, while it lives")
        with stage.step("asking every node how it is") as step:
            seen = await asyncio.gather(
                *(
                    self.processes.command(*each, *where, width=stage.width, colour=stage.coloured, cwd=SHOP)
                    for each in look
                )
            )
            step.told = "two commands join the cluster, ask every node how it is, and leave"
        for (name, *rest), (status, said) in zip(look, seen, strict=True):
            pattern = "".join(f" '{each}'" for each in rest)
            stage.command(f"framewire {name}{pattern} {' '.join(where)}", said)
            told = f"framewire {name} ends well, not with {status}: {last_words(said)}"
            stage.check(told, holds=status == 0)

    async def trouble(self) -> None:
        """A node dies and comes back; somebody has no key; somebody sends rubbish."""
        self.stage.chapter("Trouble")
        await self._a_node_dies()
        await self._nobody_is_charged()
        with self.stage.step("damaged recordings") as step:
            damaged = recordings().damaged
            with wire_to(self.premises.addresses["orders"]) as wire:
                for each in damaged:
                    wire.send(each.frames)
                await self._dead_at("orders", "malformed", len(damaged))
            step.told = f"{len(damaged)} damaged recordings thrown in: told apart, counted, and nobody minds"

    async def _a_node_dies(self) -> None:
        stage, account = self.stage, self.customers.account
        with stage.step("the stock's node hangs, and is killed") as step:
            await eventually(self._stock_is_recorded, 15, "not everything that the stock got is recorded")
            self.premises.freeze("stock")
            questions = self.customers.ask_the_stock(_QUESTIONS)
            await self.premises.kill("stock")
            began = time.monotonic()
            await self.customers.hear(questions)
            took = time.monotonic() - began
            told = f"all {_QUESTIONS} are told that the stock is gone, not {account.unreachable}"
            stage.check(told, holds=account.unreachable == _QUESTIONS)
            step.told = f"kill -9 of stock, with {_QUESTIONS} questions open: all are told after {took:.1f} s"
        with stage.step("the stock comes back") as step:
            await self.premises.bring_back("stock")
            await self.customers.hear(self.customers.ask_the_stock())
            stage.check("it answers when it is back", holds=account.unreachable == _QUESTIONS)
            step.told = "it comes back at another port, is found, and answers"

    async def _nobody_is_charged(self) -> None:
        stage, where = self.stage, ("--rendezvous", self.premises.rendezvous)
        ask = ("ask", "payment.charge", json.dumps(_CHARGE), "--reply", "shipping.pack", "--app", "shop.messages")
        with stage.step("somebody without the key of the domain payment") as step:
            status, said = await self.processes.command(*ask, *where, width=400, colour=False, cwd=SHOP)
            told = f"a node without the key sees no route to the payment: {last_words(said)}"
            stage.check(told, holds=status == 5 and "NoRoute" in said)
            step.told = "a node without the key of the domain payment asks for money: it sees nobody to ask"
        with stage.step("forged signatures") as step:
            with wire_to(self.premises.addresses["payment"]) as wire:
                for forged in forged_charges(FORGED):
                    wire.send(forged)
                await self._dead_at("payment", "bad_signature", FORGED)
            step.told = f"{FORGED} charges with a forged signature, straight to its port: refused"

    async def _dead_at(self, name: str, reason: str, count: int) -> None:
        """Wait until a node has buried so many messages for a reason."""
        deadline = time.monotonic() + 15
        while True:
            stats = await self.node.hub.ask(fw.NodeInfo(), fw.NodeStats, to_node=name.encode())
            found = stats.dead_letters.get(reason, 0)
            if found == count:
                return
            self.stage.check(
                f"{name} has {count} dead letters for {reason}, not {found}", holds=time.monotonic() < deadline
            )
            await asyncio.sleep(0.05)

    def _stock_is_recorded(self) -> bool:
        """Whether nothing would be missing from the captures if the stock died now; it writes every 0.2 s."""
        rows = capture.read(str(self.premises.captures), open_segments=True)
        names = zip(*(rows[name].to_pylist() for name in ("direction", "node", "peer")), strict=True)
        counts = {"to": 0, "arrived": 0, "from": 0, "left": 0}
        for direction, node, peer in names:
            if direction == "sent" and peer == b"stock":
                counts["to"] += 1
            elif direction == "received" and node == b"stock":
                counts["arrived"] += 1
            elif direction == "received" and peer == b"stock":
                counts["from"] += 1
            elif direction == "sent" and node == b"stock":
                counts["left"] += 1
        return counts["arrived"] >= counts["to"] and counts["left"] >= counts["from"]

    async def closing_time(self) -> None:
        """The books are closed, and everything stops in good order."""
        stage, customers = self.stage, self.customers
        account = customers.account
        stage.chapter("Closing time")
        with stage.step("the books are closed") as step:
            await customers.call_the_roll("evening")
            ordered, packed = account.shipped + len(recordings().orders), account.departments["shipping"]
            stage.check(f"{ordered} parcels were packed, not {packed}", holds=packed == ordered)
            told, due = account.departments["notification"], 2 * packed + _LETTERS
            stage.check(f"{due} notifications were sent, not {told}", holds=told == due)
            stage.check("no promise is left open", holds=self.node.stats().totals["pending"] == 0)
            step.told = f"the books agree: {packed} parcels, {2 * packed} mails and calls, and a letter"


def recorded(captures: Path) -> int:
    """How many rows there are in what was recorded."""
    return int(capture.read(str(captures)).num_rows)
