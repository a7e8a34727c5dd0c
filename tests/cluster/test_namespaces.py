"""Nodes on hosts of their own: published ports, pulled cables, long lines."""

import asyncio
import contextlib
import sys
import time
from pathlib import Path

import pytest
from tests.cluster.namespaces import network
from tests.cluster.node_process import Change, Name, Never, Note, Noted, Notes, Who
from tests.cluster.processes import EXTRA, HEARTBEAT, MISSES, SOON, Processes, end, line_of, start

import framewire as fw

pytestmark = pytest.mark.namespaces

PULLED = 7.5
"""Seconds for which a cable is pulled: after that the system leaves old connections alone for five more, so what is
known sooner has come over new ones."""
RELAY = str(Path(__file__).with_name("relay_process.py"))


class Hosts(Processes):
    """Servers, nodes and the observer, each on a host of its own."""

    def __init__(self, net, names="ab", *, servers=("server",), pure=False):
        self.net = net
        self.at = {name: net.host(name) for name in (*servers, "observer", *names)}
        super().__init__({name: f"tcp://{self.at[name]}:7400" for name in servers}, pure=pure)

    def open(self):
        for name in self.servers:
            self.serve(name, inside=self.net.inside(name))

    def node(self, name, **options):
        told = {"bind": "tcp://0.0.0.0:7500", "advertise": f"tcp://{self.at[name]}:*", **options}
        self.launch(name, inside=self.net.inside(name), **told)

    def observe(self, main, **options):
        """Run a test with a node on the observer's host."""
        address = self.at["observer"]

        async def observed():
            async with self.observer(bind=f"tcp://{address}:*", **options) as observer:
                await main(observer)

        self.net.run("observer", observed())


@contextlib.contextmanager
def hosts(**options):
    with network() as net:
        made = Hosts(net, **options)
        with contextlib.closing(made):
            made.open()
            yield made


@contextlib.contextmanager
def relay(made, host, delay, *pairs):
    process = start(*made.net.inside(host), sys.executable, RELAY, str(delay), *pairs)
    try:
        assert line_of(process.stdout) == "relaying\n"
        yield
    finally:
        end(process)


PURE = pytest.mark.parametrize(
    "pure", [False, pytest.param(True, marks=pytest.mark.long)], ids=["compiled", "pure"]
)


@PURE
def test_nodes_that_listen_everywhere_are_reached_where_they_say(pure):
    async def main(observer):
        assert await made.answering(observer) == set("ab")

    with hosts(pure=pure) as made:
        made.node("a")
        made.node("b")
        assert made.addresses["a"] == f"tcp://{made.at['a']}:7500"
        made.observe(main)


def test_a_node_behind_published_ports_is_reached_there_and_is_seen_to_live():
    """As in a container: it listens where nobody else gets, and other ports of another address lead there."""

    async def main(observer):
        assert await made.answering(observer) == set("ab")
        hidden = made.identities["a"]
        assert observer._transport.uri_of(hidden) == f"tcp://{made.at['a']}:17500"
        await asyncio.sleep(HEARTBEAT * (MISSES + 1))  # if its heartbeats were not heard, it would be gone by now
        assert hidden in (await made.tables(observer))["observer"]

    with hosts() as made:
        outside = made.at["a"]
        pairs = (f"{outside}:17500=127.0.0.1:7500", f"{outside}:17501=127.0.0.1:7501")
        with relay(made, "a", 0, *pairs):
            made.node(
                "a",
                bind="tcp://127.0.0.1:7500",
                health="tcp://127.0.0.1:7501",
                advertise=f"tcp://{outside}:17500",
                advertise_health=f"tcp://{outside}:17501",
            )
            made.node("b")
            made.observe(main)


@PURE
def test_a_node_whose_cable_is_pulled_is_gone_and_known_again_when_the_cable_is_back(pure):
    """The times are measured from when the cable is pulled, and from when it is back."""

    async def main(observer):
        asking = asyncio.create_task(observer.hub.ask(Never(), Name, to_node=made.identities["a"], timeout=60))
        assert await made.answering(observer) == set("ab")
        pulled = time.monotonic()
        made.net.cut("a")
        cut_off = {"a": made.processes.pop("a")}
        try:
            done, _ = await asyncio.wait([asking], timeout=SOON)
            assert done
            with pytest.raises(fw.Unreachable, match="is gone"):
                await asking
            await made.settled(observer, pulled + SOON - time.monotonic())
            assert await made.answering(observer) == {"b"}
            await asyncio.sleep(pulled + PULLED - time.monotonic())  # the pulling itself
        finally:
            made.processes |= cut_off
        made.net.heal("a")
        await made.settled(observer, SOON)
        assert await made.answering(observer) == set("ab")

    with hosts(pure=pure) as made:
        made.node("a")
        made.node("b")
        made.observe(main)


def test_what_changed_while_the_servers_cable_was_pulled_is_known_when_it_is_back():
    """The time is measured from when the cable is back."""

    async def main(observer):
        made.net.cut("server")
        assert await made.answering(observer) == {"a"}
        began = time.monotonic()
        await asyncio.to_thread(made.node, "b")
        await asyncio.sleep(began + PULLED - time.monotonic())  # the pulling itself
        assert made.identities["b"] not in (await made.tables(observer))["observer"]
        made.net.heal("server")
        await made.settled(observer, SOON)
        assert await made.answering(observer) == set("ab")

    with hosts() as made:
        made.node("a")
        made.observe(main)


@pytest.mark.long
def test_what_changed_while_the_cable_between_two_servers_was_pulled_is_known_when_it_is_back():
    """Each node knows only one of them. The time is measured from when the cable is back."""

    async def main(observer):
        made.net.cut("right")
        began = time.monotonic()
        await observer.hub.ask(Change(there=True), Name, to_node=made.identities["a"])
        await asyncio.sleep(began + PULLED - time.monotonic())  # the pulling itself
        assert (await made.tables(observer, EXTRA))["b"] == set()
        made.net.heal("right")
        await made.settled(observer, SOON, message=EXTRA, handlers="a")

    with hosts(servers=("left", "right")) as made:
        made.node("a", rendezvous=[made.servers["left"]])
        made.node("b", rendezvous=[made.servers["right"]])
        made.observe(main)


@pytest.mark.long
def test_static_peers_know_each_other_again_after_a_cable_was_pulled():
    """The time is measured from when the cable is back."""

    async def main(observer):
        made.net.cut("a")
        cut_off = {"a": made.processes.pop("a")}
        began = time.monotonic()
        await made.settled(observer, SOON)
        await asyncio.sleep(began + PULLED - time.monotonic())  # the pulling itself
        made.processes |= cut_off
        made.net.heal("a")
        await made.settled(observer, SOON)
        assert await made.answering(observer) == {"a"}

    with hosts(names="a", servers=()) as made:
        made.node("a")
        made.observe(main, peers=[made.addresses["a"]])


async def numbered(observer, there, begin, until):
    """Tell a node one number after the other until a moment; which those were that left."""
    sent = []
    for number in range(begin, 1_000_000):
        if time.monotonic() > until:
            return sent
        with contextlib.suppress(fw.MessageError):
            await observer.hub.tell(Note(number), to_node=there, ttl=60)
            sent.append(number)
        await asyncio.sleep(0.005)
    raise AssertionError("that took too long")


def test_what_is_under_way_when_a_cable_is_pulled_for_a_moment_arrives_once_and_in_order():
    async def main(observer):
        there = made.identities["a"]
        sent = await numbered(observer, there, 0, time.monotonic() + 0.2)
        made.net.cut("a")
        sent += await numbered(observer, there, len(sent), time.monotonic() + HEARTBEAT / 2)
        made.net.heal("a")
        sent += await numbered(observer, there, len(sent), time.monotonic() + 0.2)
        assert (await observer.hub.ask(Notes(), Noted, to_node=there)).numbers == sent

    with hosts(names="a") as made:
        made.node("a")
        made.observe(main)


@pytest.mark.long
def test_what_is_under_way_when_a_cable_is_pulled_for_longer_arrives_once_in_order_or_not_at_all():
    async def main(observer):
        there = made.identities["a"]
        await numbered(observer, there, 0, time.monotonic() + 0.2)
        made.net.cut("a")
        await numbered(observer, there, 100_000, time.monotonic() + SOON + HEARTBEAT)
        made.net.heal("a")
        await made.settled(observer, SOON)
        last = await numbered(observer, there, 200_000, time.monotonic() + 0.2)
        arrived = (await observer.hub.ask(Notes(), Noted, to_node=there)).numbers
        assert arrived == sorted(set(arrived))
        assert arrived[-len(last) :] == last

    with hosts(names="a") as made:
        made.node("a")
        made.observe(main)


async def far_away(made, observer, round_trip):
    """What must be true of a node at the end of a long line."""
    there = made.identities["a"]
    began = time.monotonic()
    assert (await observer.hub.ask(Who(), Name, to_node=there)).name == "a"
    assert time.monotonic() - began >= round_trip
    replies = await asyncio.gather(*(observer.hub.ask(Who(), Name, to_node=there) for _ in range(500)))
    assert {reply.name for reply in replies} == {"a"}
    await asyncio.sleep(HEARTBEAT * (MISSES + 1))  # if it were taken to be dead, it would be by now
    assert there in (await made.tables(observer))["observer"]
    await observer.hub.send(Who(), to_node=there)


def test_a_node_at_the_end_of_a_long_line_is_not_taken_to_be_dead():
    async def main(observer):
        await far_away(made, observer, 0.2)

    with hosts(names="a") as made:
        outside = made.at["a"]
        pairs = (f"{outside}:17500=127.0.0.1:7500", f"{outside}:17501=127.0.0.1:7501")
        with relay(made, "a", 0.2, *pairs):
            made.node(
                "a",
                bind="tcp://127.0.0.1:7500",
                health="tcp://127.0.0.1:7501",
                advertise=f"tcp://{outside}:17500",
                advertise_health=f"tcp://{outside}:17501",
            )
            made.observe(main)


def test_a_node_whose_packets_are_late_is_not_taken_to_be_dead():
    async def main(observer):
        await far_away(made, observer, 0.2)

    with hosts(names="a") as made:
        made.net.delay("a", 200)
        made.node("a")
        made.observe(main)
