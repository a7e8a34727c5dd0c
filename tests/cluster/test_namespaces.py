"""Nodes on hosts of their own: names, published ports, pulled cables, long lines."""

import asyncio
import contextlib
import os
import socket
import sys
import time
from pathlib import Path

import pytest
from tests.cluster.namespaces import ip, network
from tests.cluster.node_process import Change, Name, Never, Note, Noted, Notes, Who
from tests.cluster.processes import EXTRA, HEARTBEAT, MISSES, SOON, Processes, end, line_of, start
from tests.node.running import eventually

import framewire as fw

pytestmark = pytest.mark.namespaces

PULLED = 7.5
"""Seconds for which a cable is pulled: after that the system leaves old connections alone for five more, so what is
known sooner has come over new ones."""
RELAY = str(Path(__file__).with_name("relay_process.py"))
NAME_SERVER = str(Path(__file__).with_name("silent_name_server.py"))


class Hosts(Processes):
    """Servers, nodes and the observer, each on a host of its own."""

    def __init__(self, net, names="ab", *, servers=("server",), pure=False):
        self.net = net
        self.at = {name: net.host(name) for name in (*servers, "observer", *names)}
        super().__init__({name: f"tcp://{self.at[name]}:7400" for name in servers}, pure=pure)

    def open(self):
        for name in self.servers:
            self.serve(name, inside=self.net.inside(name))

    def node(self, name, *, files=(), **options):
        told = {"bind": "tcp://0.0.0.0:7500", "advertise": f"tcp://{self.at[name]}:*", **options}
        self.launch(name, inside=self.net.inside(name, files), **told)

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


def test_a_v1_node_whose_cable_is_pulled_is_gone_though_it_gives_no_sign_of_life():
    """A framewire node stands for it, which to a peer that writes V1 is a V1 node."""

    async def main(uri, address):
        told = {"heartbeat": HEARTBEAT, "misses": MISSES, "bind": f"tcp://{address}:*", "stop_timeout": 0}
        async with fw.Node(signals=False, v1_nodes={uri: [Who, Never]}, **told) as node:
            await eventually(lambda: node._router.table.nodes, SOON)
            assert (await node.hub.ask(Who(), Name, timeout=SOON)).name == "a"
            asking = [node.hub.start(Never(), Name, timeout=60) for _ in range(2)]
            await eventually(lambda: node._transport.traffic[f"V1 {uri}".encode()].sent == 3)
            made.net.cut("a")
            await eventually(lambda: all(promise.done for promise in asking), 2 * SOON)
            for promise in asking:
                with pytest.raises(fw.Unreachable, match="is gone"):
                    promise.result()
            made.net.heal("a")
            await eventually(lambda: node._router.table.nodes, 2 * SOON)
            assert (await node.hub.ask(Who(), Name, timeout=SOON)).name == "a"

    with hosts(names="a", servers=()) as made:
        made.node("a")
        made.net.run("observer", main(made.addresses["a"], made.at["observer"]))


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


@contextlib.contextmanager
def silent_name_server(net, folder):
    """A name server that answers nobody: what makes a host ask it, and a function that counts questions."""
    address = net.host("names")
    process = start(*net.inside("names"), sys.executable, NAME_SERVER, address)
    asked = []

    def questions():
        os.set_blocking(process.stdout.fileno(), False)
        asked.extend((process.stdout.read() or b"").splitlines())
        return len(asked)

    try:
        assert line_of(process.stdout) == "silent\n"
        (folder / "resolv.conf").write_text(f"nameserver {address}\n")
        yield {"/etc/resolv.conf": folder / "resolv.conf"}, questions
    finally:
        end(process)


NAMED = "silent.framewire.test"


@pytest.mark.parametrize("named", ["a server", "a peer", "another node"])
def test_nodes_that_know_each_other_by_number_answer_while_a_name_server_is_silent(tmp_path, named):
    """Whatever has a name that cannot be looked up: libzmq would look it up on the thread that carries messages."""

    async def main(observer):
        there = made.identities["a"]
        await eventually(lambda: questions() > 0, 20)  # from here on, whoever waits for a name does so for seconds
        for _ in range(15):
            assert (await observer.hub.ask(Who(), Name, to_node=there, timeout=2)).name == "a"
        await asyncio.sleep(HEARTBEAT * (MISSES + 1))  # if its heartbeats were not heard, it would be gone by now
        assert (await observer.hub.ask(Who(), Name, to_node=there, timeout=2)).name == "a"
        assert questions() > 0

    with network() as net, silent_name_server(net, tmp_path) as (files, questions):
        made = Hosts(net)
        with contextlib.closing(made):
            made.open()
            options = {}
            if named == "a server":
                options["rendezvous"] = [*made.servers.values(), f"tcp://{NAMED}:7400"]
            elif named == "a peer":
                options["peers"] = [f"tcp://{NAMED}:7500"]
            made.node("a", files=files, **options)
            if named == "another node":
                made.node("b", advertise=f"tcp://{NAMED}:7500")
                made.identities.pop("b")  # nobody can reach it
            made.observe(main)


def test_a_server_goes_on_while_the_name_of_its_partner_cannot_be_looked_up(tmp_path):
    async def main(observer):
        await eventually(lambda: questions() > 0, 20)
        began = time.monotonic()
        await observer.hub.ask(Change(there=True), Name, to_node=made.identities["a"])
        await made.settled(observer, SOON, message=EXTRA, handlers="a")
        assert time.monotonic() - began < SOON

    with network() as net, silent_name_server(net, tmp_path) as (files, questions):
        made = Hosts(net, names="a", servers=())
        server = net.host("server")
        made.servers = {"server": f"tcp://{server}:7400"}
        with contextlib.closing(made):
            command = (
                sys.executable,
                "-m",
                "framewire",
                "rendezvous",
                "tcp://*:7400",
                f"--partner=tcp://{NAMED}:7400",
            )
            made.processes["server"] = start(*net.inside("server", files), *command)
            assert "listening at" in line_of(made.processes["server"].stderr)
            made.node("a")
            made.observe(main)


DOCUMENTATION = Path(__file__).parents[2] / "docs" / "cluster.md"
PROGRAM = """
import asyncio
import sys

import msgspec

import framewire as fw


@fw.message("shop.order")
class Order(msgspec.Struct):
    item: str


@fw.message("shop.ordered")
class Ordered(msgspec.Struct):
    item: str


class Orders(fw.Actor):
    @fw.handles(Order)
    async def order(self, order):
        return Ordered(order.item)


async def main():
{example}
        print(node.uri, flush=True)
        if sys.argv[1:]:
            print((await node.hub.ask(Order(sys.argv[1]), Ordered, timeout=20)).item, flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
"""


def first_example():
    """The command and the program with which docs/cluster.md begins."""
    text = DOCUMENTATION.read_text()
    command = text.split("```sh\n")[1].splitlines()[0].split("#")[0].split()
    example = text.split("```py\n")[1].split("```")[0]
    assert command[0] == "framewire"
    assert "rendezvous=" in example
    return command[1:], example


@pytest.mark.parametrize("bind", ["", ', bind="tcp://0.0.0.0:*"'], ids=["no bind", "bind everywhere"])
def test_two_hosts_find_each_other_by_the_first_example_of_the_documentation(tmp_path, bind):
    """As its reader would: with the names of hosts, and with a host that takes its own name to be on loopback."""
    command, example = first_example()
    asking = example.splitlines()[0].replace("])", f"]{bind})")
    hosting = example.replace("])", f"]{bind})")
    for name, program in (("hosting", hosting), ("asking", asking)):
        indented = "\n".join(f"    {line}" for line in program.rstrip().splitlines())
        (tmp_path / f"{name}.py").write_text(PROGRAM.format(example=indented))
    with network() as net, contextlib.ExitStack() as closing:
        at = {name: net.host(name) for name in ("host", "other")}

        def begin(name, *command):
            hosts_file = tmp_path / f"hosts-{name}"
            hosts_file.write_text(f"127.0.0.1 localhost\n127.0.1.1 {socket.gethostname()}\n{at['host']} host\n")
            process = start(*net.inside(name, {"/etc/hosts": hosts_file}), sys.executable, *command)
            closing.callback(end, process)
            return process

        server = begin("host", "-m", "framewire", *command)
        assert "listening at" in line_of(server.stderr)
        first = begin("host", str(tmp_path / "hosting.py"))
        assert line_of(first.stdout).startswith(f"tcp://{at['host']}:"), first.stderr.read().decode()
        second = begin("other", str(tmp_path / "asking.py"), "tea")
        assert line_of(second.stdout).startswith(f"tcp://{at['other']}:")
        assert line_of(second.stdout) == "tea\n", second.stderr.read().decode()


@pytest.mark.parametrize("what", ["rendezvous", "peers"])
@pytest.mark.parametrize(
    "places",
    [
        {"bind": "tcp://127.0.0.1:*"},
        {"bind": "tcp://127.0.0.1:7500-7599"},
        {"bind": "tcp://0.0.0.0:*", "advertise": "tcp://localhost:*"},
        {"bind": "tcp://0.0.0.0:*", "advertise": "tcp://{here}:*", "advertise_health": "tcp://127.0.0.1:*"},
    ],
    ids=["bind", "range", "advertise", "health"],
)
def test_a_node_that_nobody_elsewhere_could_reach_does_not_start_and_says_what_to_do(what, places):
    async def main():
        told = {name: uri.format(here=here) for name, uri in places.items()}
        node = fw.Node(signals=False, **{what: [f"tcp://{there}:7400"]}, **told)
        with pytest.raises(fw.ConfigError) as caught:
            await node.start()
        (problem,) = caught.value.problems
        assert f"to tcp://{there}:7400, which is not on loopback" in problem
        assert "leave bind out, or give bind='tcp://0.0.0.0:*'" in problem
        assert "advertise='tcp://host:*'" in problem

    with network() as net:
        there, here = net.host("server"), net.host("observer")
        net.run("observer", main())


def test_a_host_without_a_route_to_its_server_must_be_told_where_it_is():
    async def main():
        for bind in ({}, {"bind": "tcp://0.0.0.0:*"}):
            with pytest.raises(fw.ConfigError, match=r"no route to tcp://198\.51\.100\.1:7400; say where others"):
                await fw.Node(signals=False, rendezvous=["tcp://198.51.100.1:7400"], **bind).start()

    with network() as net:
        net.host("observer")
        net.run("observer", main())


def test_a_server_whose_name_is_not_found_in_time_leaves_the_default_route(tmp_path):
    """A node starts without its server, and so without its server's name."""
    with network() as net, silent_name_server(net, tmp_path) as (files, _):
        made = Hosts(net, names="a", servers=())
        with contextlib.closing(made):
            address = made.at["a"]
            ip("-n", f"{net.run_id}-a", "route", "add", "default", "via", "10.77.0.1")
            made.launch(
                "a", inside=net.inside("a", files), bind="tcp://0.0.0.0:*", rendezvous=[f"tcp://{NAMED}:7400"]
            )
            assert made.addresses["a"].startswith(f"tcp://{address}:")
