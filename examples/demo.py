"""What framewire does today, in a minute: `make demo`.

It shows the wire (recorded messages, taken apart, verified, and refused), a node at work (a flow through several
actors, a broadcast, a failure, an overload), two processes (found, used, killed), and what they recorded, recovered
and read back on Spark; and it checks what it shows: if a figure is not what it must be, the demo fails.
"""

import asyncio
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from click.testing import CliRunner
from rich.console import Console

import framewire as fw
from framewire.cli import main as framewire
from framewire.wire import encode

console = Console(highlight=False)
ORDERS = 2002
"""That go to the other process."""
here = Path(__file__).parent


@fw.message("shop.order")
class Order(msgspec.Struct):
    number: int
    article: str
    amount: int


@fw.message("shop.reserved")
class Reserved(msgspec.Struct):
    number: int
    cents: int


@fw.message("shop.paid")
class Paid(msgspec.Struct):
    number: int


@fw.message("shop.shipped")
class Shipped(msgspec.Struct):
    number: int
    parcel: str


@fw.message("shop.roll_call")
class RollCall(msgspec.Struct):
    pass


@fw.message("shop.present")
class Present(msgspec.Struct):
    name: str


class Department(fw.Actor):
    @fw.handles(RollCall)
    async def present(self, _: RollCall) -> Present:
        return Present(type(self).__name__)


class Stock(Department):
    prices = {"tea": 420, "cup": 900}  # noqa: RUF012 - a constant of the demo

    @fw.handles(Order)
    async def reserve(self, order: Order) -> Reserved:
        return Reserved(order.number, self.prices[order.article] * order.amount)


class Payment(Department):
    @fw.handles(Reserved)
    async def pay(self, reserved: Reserved) -> Paid:
        if reserved.cents > 100_000:
            raise PermissionError(f"order {reserved.number} is over the limit")
        return Paid(reserved.number)


class Shipping(Department):
    concurrency = 8

    @fw.handles(Paid)
    async def ship(self, paid: Paid) -> Shipped:
        return Shipped(paid.number, f"FW-{paid.number:06d}")


class Slow(fw.Actor):
    mailbox = 10
    overflow = "reject"

    @fw.handles(Present)
    async def file(self, _: Present) -> None:
        await asyncio.sleep(0.01)


def check(what: str, *, holds: bool) -> None:
    console.print(f"  [green]✓[/] {what}" if holds else f"  [bold red]✗ {what}[/]")
    if not holds:
        sys.exit(f"the demo failed: {what}")


@contextmanager
def chapter(title: str) -> Iterator[None]:
    console.print()
    console.rule(f"[bold]{title}", align="left")
    yield


def inspect(*arguments: str, stdin: str | None = None) -> tuple[int, str]:
    return command("inspect", *arguments, stdin=stdin)


def command(*arguments: str, stdin: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(framewire, arguments, input=stdin, color=console.is_terminal)
    return result.exit_code, result.stdout


def the_wire() -> None:
    recorded = str(here / "recorded.jsonl")
    with chapter("1. Three generations of one wire format, recorded from the original"):
        code, shown = inspect("--brief", "--ttl-unit", "ticks", recorded)
        console.out(shown, end="", highlight=False)
        check("four messages are read, and the damaged one is told as such", holds=code == 1)
    with chapter("2. One of them, frame by frame from the end"):
        _, shown = inspect("--only", "the same in V5", recorded)
        console.out(shown, end="", highlight=False)
    with chapter("3. Signed, verified, tampered with"), tempfile.TemporaryDirectory() as folder:
        secret = secrets.token_bytes(32)
        keys = Path(folder, "keys.toml")
        keys.touch(mode=0o600)
        keys.write_text(f'[payments]\nkey = "hex:{secret.hex()}"\nidentities = ["pay.*"]\n')
        order = fw.Message(b"pay.order", body_frames=(b'{"cents": 420}',), correlation_id=b"flow-1")
        signed = fw.KeyRing.from_file(keys).sign(order)
        forged = signed.replace(body=b'{"cents": 1}')
        for name, message, expected in [("as it was sent", signed, 0), ("with another sum", forged, 1)]:
            line = json.dumps({"name": name, "frames": [frame.hex() for frame in encode(message)]})
            code, shown = inspect("--brief", "--verify", str(keys), "-", stdin=line)
            console.out(shown, end="", highlight=False)
            check("verified" if expected == 0 else "refused", holds=code == expected)


async def the_node() -> None:
    async with fw.Node(timeout=5) as node:
        for department in (Stock(), Payment(), Shipping()):
            await node.host(department)
        with chapter("4. A thousand orders: stock, payment, shipping, and straight back"):
            orders = [node.hub.ask(Order(n, "tea", 1 + n % 3), Shipped) for n in range(1000)]
            shipped = await asyncio.gather(*orders)
            for actor in node.stats().actors:
                for handler in actor.handlers:
                    if handler.handled > 1:
                        mean = handler.seconds / handler.handled * 1e6
                        console.print(
                            f"  {handler.name:18} {handler.message:18} {handler.handled:5}  {mean:5.1f} µs"
                        )
            check("all of them are shipped", holds=sorted(s.number for s in shipped) == list(range(1000)))
        with chapter("5. A broadcast, gathered"):
            present = await node.hub.gather(RollCall(), Present, stop_after=3)
            console.print("  present:", ", ".join(sorted(p.name for p in present)))
            check("every department answers", holds=len(present) == 3)
        with chapter("6. Failures reach whoever asked"):
            await failure(node, Order(1, "cup", 500), fw.RemoteError, "PermissionError")
            await failure(node, Order(2, "coffee", 1), fw.RemoteError, "KeyError")
            await failure(node, Shipped(1, ""), fw.NoRoute, "nobody handles it")
        with chapter("7. More than an actor can take"):
            await node.host(Slow())
            refused = 0
            for n in range(100):
                try:
                    await node.hub.tell(Present(str(n)))
                except fw.Overloaded:
                    refused += 1
            letters = node.dead_letters.counts
            counted = ", ".join(f"{count} {reason}" for reason, count in letters.items())
            console.print(f"  100 sent, {refused} refused; dead letters: {counted}")
            check("every refusal is a dead letter", holds=letters[fw.Reason.OVERLOADED] == refused > 0)
        left = node.stats().totals["pending"]
    check("nothing is left open", holds=left == 0)


async def failure(node: fw.Node, payload: object, kind: type[fw.MessageError], words: str) -> None:
    try:
        await node.hub.ask(payload, Shipped)
    except fw.MessageError as error:
        console.print(f"  [red]{type(error).__name__}[/]: {error}", markup=True)
        check(f"{kind.__name__} with the reason", holds=isinstance(error, kind) and words in str(error))
    else:
        check(f"{kind.__name__} with the reason", holds=False)


class Warehouse(Stock):
    @fw.handles(Paid)
    async def never(self, _: Paid) -> Shipped:
        await asyncio.sleep(3600)
        raise AssertionError("nobody waits that long")


async def the_warehouse(address: str, captures: str) -> None:
    """What the other process does."""
    async with fw.Node(peers=[address], heartbeat=0.2, capture=captures) as node:
        await node.host(Warehouse(), concurrency=8)
        await node.serve()


async def the_cluster(captures: str) -> None:
    async with fw.Node(
        bind="tcp://127.0.0.1:*", heartbeat=0.2, route_grace=20, timeout=30, capture=captures
    ) as node:
        warehouse = await asyncio.create_subprocess_exec(sys.executable, __file__, node.uri, captures)
        try:
            with chapter("8. Another process, asked before it is there"):
                started = time.perf_counter()
                await node.hub.ask(Order(1, "tea", 1), Reserved)
                console.print(f"  found and answered after {time.perf_counter() - started:.1f} s")
                started = time.perf_counter()
                answers = await asyncio.gather(
                    *(node.hub.ask(Order(n, "cup", 1), Reserved) for n in range(ORDERS - 2))
                )
                rate = len(answers) / (time.perf_counter() - started)
                console.print(f"  {len(answers)} orders more, {rate:,.0f} a second")
                check("every answer is right", holds=all(answer.cents == 900 for answer in answers))
            with chapter("9. The same process, killed while it owes an answer"):
                owed = node.hub.start(Paid(1), Shipped)
                await node.hub.ask(Order(2, "tea", 1), Reserved)
                warehouse.kill()
                started = time.perf_counter()
                try:
                    await owed
                except fw.Unreachable as error:
                    console.print(f"  [red]Unreachable[/]: {error}")
                took = time.perf_counter() - started
                check(f"the promise ends when the node is missed, after {took:.1f} s of 30", holds=took < 10)
        finally:
            if warehouse.returncode is None:
                warehouse.kill()
            await warehouse.wait()


def the_recording(captures: str) -> None:
    with chapter("10. Everything they said was recorded, by the killed process too"):
        code, shown = command("capture", "recover", captures)
        console.out(shown, end="", highlight=False)
        check("what the killed process left open is sealed", holds=code == 0 and "1" in shown)
        code, shown = command("capture", "stats", captures)
        console.out(shown, end="", highlight=False)
        check("the recordings can be read", holds=code == 0)
    with chapter("11. The recordings on Spark: decoded in the JVM, without a line of Python on any worker"):
        from framewire import spark  # noqa: PLC0415 - only this chapter waits for it

        session = spark.session("local[2]")
        messages = spark.decode(session.read.parquet(captures))
        counts = messages.groupBy("direction", messages.identity.cast("string")).count().collect()
        for direction, identity, count in sorted(counts):
            console.print(f"  {direction:10} {identity or 'not a message':15} {count:6,}")
        counted = {(direction, identity): count for direction, identity, count in counts}
        answered = {counted["received", "shop.reserved"], counted["delivered", "shop.reserved"]}
        check(
            "every order and every answer is there", holds=answered == {counted["sent", "shop.order"]} == {ORDERS}
        )
        lost = ORDERS - counted["received", "shop.order"]
        console.print(f"  the killed process took {lost:,} of its own records with it: its last 200 ms, at most")
        session.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        fw.run(the_warehouse(*sys.argv[1:]))
        sys.exit()
    the_wire()
    fw.run(the_node())
    with tempfile.TemporaryDirectory() as folder:
        fw.run(the_cluster(f"{folder}/captures"))
        the_recording(f"{folder}/captures")
    console.print("\nNext: [bold]examples/hello.py[/], [bold]docs/[/], and `framewire inspect --help`.")
