"""Names are looked up on threads of their own, remembered, and looked up again when a connection is lost."""

import contextlib
import socket
import threading

import pytest
import zmq
from tests.cluster.clustering import Named, free_ports, handled_by, in_a_row, make_node, rendezvous, served
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.cluster import resolver as resolving
from framewire.cluster.resolver import AddressBook, Dialer, Resolver, is_name

WAIT_S = 10


class NameServer:
    """What look-ups ask instead of the system, and how often."""

    def __init__(self, **names):
        self.names = {name.replace("_", "."): numbers for name, numbers in names.items()}
        self.asked = []
        self.answers = threading.Event()
        self.answers.set()

    def look_up(self, host):
        self.asked.append(host)
        assert self.answers.wait(WAIT_S)
        if host not in self.names:
            raise socket.gaierror(-2, "Name or service not known")
        return tuple(self.names[host])


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@contextlib.contextmanager
def resolver(**names):
    server, clock = NameServer(**names), Clock()
    made = Resolver(server.look_up, clock)
    try:
        yield made, server, clock
    finally:
        server.answers.set()
        made.close()


def resolved(made, uri, **options):
    """What a look-up finds, with the thread on which it tells."""
    done, found = threading.Event(), []

    def note(numbers):
        found.append((numbers, threading.current_thread()))
        done.set()

    made.resolve(uri, note, **options)
    assert done.wait(WAIT_S)
    return found[0]


def waited(made, uri, **options):
    done = threading.Event()
    made.resolve(uri, lambda _: done.set(), **options)
    return done


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("tcp://127.0.0.1:7400", False),
        ("tcp://[::1]:7400", False),
        ("tcp://[fe80::1%eth0]:7400", False),
        ("ipc:///tmp/place", False),
        ("inproc://place", False),
        ("nowhere", False),
        ("tcp://localhost:7400", True),
        ("tcp://workers.shop.svc:7400", True),
    ],
)
def test_what_has_to_be_looked_up(uri, name):
    assert is_name(uri) == name


def test_numbers_are_not_looked_up():
    with resolver() as (made, server, _):
        assert resolved(made, "tcp://10.0.0.1:7400") == (("tcp://10.0.0.1:7400",), threading.current_thread())
        assert not server.asked


def test_a_name_is_looked_up_elsewhere_and_remembered_for_all_its_ports():
    with resolver(host=["10.0.0.1", "[::1]"]) as (made, server, _):
        numbers, thread = resolved(made, "tcp://host:7400")
        assert numbers == ("tcp://10.0.0.1:7400", "tcp://[::1]:7400")
        assert thread is not threading.current_thread()
        assert resolved(made, "tcp://host:7401") == (
            ("tcp://10.0.0.1:7401", "tcp://[::1]:7401"),
            threading.current_thread(),
        )
        assert made.known("tcp://host:1")[0] == "tcp://10.0.0.1:1"
        assert server.asked == ["host"]


def test_what_is_old_or_has_failed_is_looked_up_again_but_not_at_once():
    with resolver(host=["10.0.0.1"]) as (made, server, clock):
        resolved(made, "tcp://host:1")
        server.names["host"] = ["10.0.0.2"]
        assert resolved(made, "tcp://host:1", fresh=True)[0] == ("tcp://10.0.0.1:1",)
        clock.now += resolving.MIN_AGE_S
        assert resolved(made, "tcp://host:1")[0] == ("tcp://10.0.0.1:1",)
        assert resolved(made, "tcp://host:1", fresh=True)[0] == ("tcp://10.0.0.2:1",)
        server.names["host"] = ["10.0.0.3"]
        clock.now += resolving.MAX_AGE_S
        assert resolved(made, "tcp://host:1")[0] == ("tcp://10.0.0.3:1",)
        assert len(server.asked) == 3


def test_a_name_that_is_not_found_keeps_the_addresses_that_it_had(caplog):
    with resolver(host=["10.0.0.1"]) as (made, server, clock):
        resolved(made, "tcp://host:1")
        del server.names["host"]
        clock.now += resolving.MAX_AGE_S
        assert resolved(made, "tcp://host:1")[0] == ("tcp://10.0.0.1:1",)
        assert resolved(made, "tcp://other:1")[0] == ()
    assert (
        "host cannot be looked up: [Errno -2] Name or service not known; the addresses found before" in caplog.text
    )
    assert "other cannot be looked up" in caplog.text


def test_a_look_up_without_an_answer_is_tried_again_beside_it(caplog):
    with resolver(host=["10.0.0.1"]) as (made, server, clock):
        server.answers.clear()
        first = waited(made, "tcp://host:1")
        waited(made, "tcp://host:1")
        clock.now += resolving.LOOKUP_TIMEOUT_S
        second = waited(made, "tcp://host:1")
        assert not first.is_set()
        server.answers.set()
        assert first.wait(WAIT_S)
        assert second.wait(WAIT_S)
        assert server.asked == ["host"] * 2
    assert "no answer from a name server within 2 s" in caplog.text


def test_names_of_the_configuration_do_not_wait_for_names_that_others_make_up():
    made_up = [f"tcp://made-up-{number}:1" for number in range(2 * resolving.MAX_THREADS)]
    with resolver(ours=["10.0.0.1"]) as (made, server, _):
        server.answers.clear()
        for uri in made_up:
            waited(made, uri)
        configured = waited(made, "tcp://ours:1", trusted=True)
        server.answers.set()
        assert configured.wait(WAIT_S)
        assert len(server.asked) == resolving.MAX_THREADS + 1


def test_only_so_many_names_are_remembered(monkeypatch):
    monkeypatch.setattr(resolving, "MAX_NAMES", 2)
    with resolver(a=["10.0.0.1"], b=["10.0.0.2"], c=["10.0.0.3"]) as (made, _, clock):
        for name in "abc":
            assert resolved(made, f"tcp://{name}:1")[0]
            clock.now += 1
        assert not made.known("tcp://a:1")
        assert made.known("tcp://b:1")


def test_nobody_is_called_back_after_the_end():
    with resolver(host=["10.0.0.1"]) as (made, server, _):
        server.answers.clear()
        done = waited(made, "tcp://host:1")
        made.close()
        server.answers.set()
        assert resolved(made, "tcp://host:1")[0] == ()
        assert not done.is_set()


class Publisher:
    def __init__(self, context):
        self.socket = context.socket(zmq.PUB)
        self.socket.bind("tcp://127.0.0.1:*")
        self.port = self.socket.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0").rpartition(":")[2]


def test_a_socket_follows_a_name_to_other_addresses():
    with resolver(host=["127.0.0.1"]) as (made, server, clock), zmq.Context() as context:
        publisher = Publisher(context)
        with context.socket(zmq.SUB) as listener, publisher.socket:
            listener.subscribe(b"")
            found = threading.Event()
            dialer = Dialer(listener, made, found.set)
            uri = f"tcp://host:{publisher.port}"
            dialer.connect(uri)

            def heard():
                publisher.socket.send(b"x")
                return listener.poll(10) and listener.recv()

            def settled():
                assert found.wait(WAIT_S)
                found.clear()
                dialer.settle()

            settled()
            assert any(heard() for _ in range(1000))
            server.names["host"] = ["127.0.0.9"]
            clock.now += resolving.MIN_AGE_S
            dialer.renew(uri)
            settled()
            assert not dialer.is_waiting
            assert not any([heard() for _ in range(20)][10:])  # what was under way may still arrive
            server.names["host"] = ["127.0.0.9", "127.0.0.1"]
            clock.now += resolving.MIN_AGE_S
            dialer.renew(uri)
            settled()
            assert any(heard() for _ in range(1000))
            dialer.disconnect(uri)
            assert not any([heard() for _ in range(20)][10:])


def test_an_address_book_tells_when_something_else_was_found():
    with resolver(host=["10.0.0.1"]) as (made, server, clock):
        found = threading.Event()
        book = AddressBook(made, found.set)
        assert book.numbers("tcp://10.9.9.9:1") == ("tcp://10.9.9.9:1",)
        server.answers.clear()
        assert book.numbers("tcp://host:1") == ()
        server.answers.set()
        assert found.wait(WAIT_S)
        assert book.numbers("tcp://host:1") == ("tcp://10.0.0.1:1",)
        found.clear()
        server.names["host"] = ["10.0.0.1", "10.0.0.2"]
        clock.now += resolving.MIN_AGE_S
        book.numbers("tcp://host:1", fresh=True)
        assert found.wait(WAIT_S)
        assert book.numbers("tcp://host:1") == ("tcp://10.0.0.1:1", "tcp://10.0.0.2:1")


@pytest.fixture
def names(monkeypatch):
    """Names that the system of this process knows besides its own."""
    known = {}
    system = socket.getaddrinfo

    def look_up(host, *arguments, **options):
        if host not in known:
            return system(host, *arguments, **options)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, 0)) for number in known[host]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return known


def test_each_address_of_a_servers_name_is_a_server(names):
    """As behind a headless service of Kubernetes, with partners that name each other by it, too."""

    async def main():
        port = in_a_row(3)
        names["servers"] = ["127.0.0.1", "127.0.0.2"]
        name = f"tcp://servers:{port}"
        with (
            rendezvous(f"tcp://127.0.0.1:{port}", partners=[name]) as left,
            rendezvous(f"tcp://127.0.0.2:{port}", partners=[name]) as right,
        ):
            async with (
                make_node(rendezvous=[name]) as both,
                make_node(left) as one,
                make_node(right) as other,
            ):
                await one.host(Named("one"))
                await other.host(Named("other"))
                await handled_by(2, both, one, other)
                assert {place[0] for place in both._transport._ways.servers} == {left.uri, right.uri}

    run(main())


def test_a_server_that_moves_is_found_where_its_name_is_now(names):
    async def main():
        port = in_a_row(3)
        names["server"] = ["127.0.0.1"]
        name = f"tcp://server:{port}"
        options = {"rendezvous": [name], "misses": 3}
        async with make_node(**options) as one, make_node(**options) as two:
            with rendezvous(f"tcp://127.0.0.1:{port}"):
                await two.host(Named("two"))
                await handled_by(1, one)
            names["server"] = ["127.0.0.2"]
            with rendezvous(f"tcp://127.0.0.2:{port}"):
                await two.host(Named("another"))
                await eventually(lambda: len(list(one._router.table.all(fw.MessageId(b"test.question")))) == 2, 20)
                await eventually(lambda: len(one._transport._ways.servers) == 1, 20)

    run(main())


def test_each_address_of_a_peers_name_is_a_peer_and_a_node_that_moves_is_found(names):
    async def main():
        port = in_a_row(1)
        names["workers"] = ["127.0.0.1", "127.0.0.2"]
        async with (
            make_node(bind=f"tcp://127.0.0.1:{port}") as one,
            make_node(bind=f"tcp://127.0.0.2:{port}") as two,
            make_node(peers=[f"tcp://workers:{port}"]) as both,
        ):
            await one.host(Named("one"))
            await two.host(Named("two"))
            await handled_by(2, both)
            names["workers"] = ["127.0.0.1", "127.0.0.3"]
            await two.stop()
            async with make_node(bind=f"tcp://127.0.0.3:{port}") as three:
                await three.host(Named("three"))
                await eventually(lambda: three.identity in both._router.table.nodes, 40)
                assert {(await both.hub.ask(Question(), Answer)).text for _ in range(4)} == {"one", "three"}

    run(main())


def test_a_node_that_is_advertised_by_name_is_reached_where_the_name_is_now(names):
    async def main(server):
        names["pod"] = ["127.0.0.9", "127.0.0.1"]
        taken, port = free_ports(1)
        taken.close()
        places = {"advertise": f"tcp://pod:{port}", "advertise_health": f"tcp://pod:{port + 1}"}
        bound = {"bind": f"tcp://127.0.0.1:{port}", "health": f"tcp://127.0.0.1:{port + 1}"}
        async with make_node(server) as one:
            async with make_node(server, **places, **bound) as two:
                await two.host(Named("two"))
                await handled_by(1, one)
                assert (await one.hub.ask(Question(), Answer)).text == "two"
            names["pod"] = ["127.0.0.2"]
            moved = {name: uri.replace("127.0.0.1", "127.0.0.2") for name, uri in bound.items()}
            async with make_node(server, **places, **moved) as three:
                await three.host(Named("three"))
                await eventually(lambda: three.identity in one._router.table.nodes)
                assert (await one.hub.ask(Question(), Answer)).text == "three"

    run(served(main))
