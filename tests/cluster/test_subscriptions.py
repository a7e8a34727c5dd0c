"""Listeners that subscribe to what nobody publishes: large topics end a connection, and many are forgotten."""

import contextlib
import threading

import pytest
import zmq
from fuzz import zmtp
from tests.cluster.clustering import in_a_row
from tests.cluster.strangers import MODES, Cluster, attacked
from tests.node.running import until

from framewire.cluster import publishing
from framewire.cluster.publishing import Publisher

SUBSCRIBE, UNSUBSCRIBE = b"\1", b"\0"


@contextlib.contextmanager
def published(**options):
    """A publisher that publishes all the time, on a thread of its own."""
    context = zmq.Context()
    publisher = Publisher(context, **options)
    uri = publisher.bind([f"tcp://127.0.0.1:{in_a_row(1)}"])
    ended, anew = threading.Event(), []

    def publish():
        while not ended.wait(0.002):
            if publisher.check():
                anew.append(publisher.socket)
            publisher.send([b"news"])

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield uri, anew
    finally:
        ended.set()
        thread.join(10)
        publisher.close()
        context.destroy(0)


@contextlib.contextmanager
def listener(uri):
    with zmq.Context() as context, context.socket(zmq.SUB) as made:
        made.linger = 0
        made.subscribe(b"")
        made.connect(uri)
        yield made


def hears(made):
    """Whether something is published that was not there before."""
    while made.poll(0):
        made.recv()
    return made.poll(10_000)


def test_a_short_topic_is_taken_and_a_longer_one_ends_its_connection():
    with published() as (uri, anew):
        with zmtp.connect(uri, b"SUB") as modest:
            modest.send([SUBSCRIBE + b"x" * 80])
            modest.send([SUBSCRIBE])
            assert modest.receive() == [b"news"]
        with zmtp.connect(uri, b"SUB") as greedy:
            greedy.send([SUBSCRIBE + b"x" * 101])
            with pytest.raises(ConnectionError):
                greedy.receive()
        assert not anew


def test_where_there_are_too_many_topics_all_are_forgotten_and_honest_listeners_go_on(monkeypatch):
    monkeypatch.setattr(publishing, "_MAX_TOPIC_BYTES", 5_000)
    with published() as (uri, anew), listener(uri) as honest:
        assert hears(honest)
        with zmtp.connect(uri, b"SUB") as greedy, contextlib.suppress(ConnectionError):
            for number in range(200):
                greedy.send([SUBSCRIBE + b"%d" % number + b"x" * 80])
            while True:
                greedy.receive()
        until(lambda: anew)
        assert hears(honest)


def test_topics_of_those_who_are_gone_do_not_count(monkeypatch):
    monkeypatch.setattr(publishing, "_MAX_TOPIC_BYTES", 5_000)
    with published() as (uri, anew):
        for _ in range(10):
            with zmtp.connect(uri, b"SUB") as modest:
                for number in range(20):
                    modest.send([SUBSCRIBE + b"%d" % number + b"x" * 80])
                modest.send([SUBSCRIBE])
                assert modest.receive() == [b"news"]
        assert not anew


def test_unsubscribing_from_what_was_never_subscribed_to_makes_little_room(monkeypatch):
    monkeypatch.setattr(publishing, "_MAX_TOPIC_BYTES", 5_000)
    with published() as (uri, anew), zmtp.connect(uri, b"SUB") as greedy, contextlib.suppress(ConnectionError):
        for number in range(5000):
            greedy.send([UNSUBSCRIBE + b"%d" % number + b"x" * 80])
        for number in range(400):
            greedy.send([SUBSCRIBE + b"%d" % number + b"x" * 80])
        until(lambda: anew)
    assert anew


def test_one_topic_counts_for_each_connection_that_has_it(monkeypatch):
    monkeypatch.setattr(publishing, "_MAX_TOPIC_BYTES", 5_000)
    with published() as (uri, anew), contextlib.ExitStack() as held, contextlib.suppress(ConnectionError):
        for _ in range(10):
            greedy = held.enter_context(zmtp.connect(uri, b"SUB"))
            for number in range(20):
                greedy.send([SUBSCRIBE + b"%d" % number + b"x" * 80])
        until(lambda: anew)
    assert anew


def test_what_listeners_say_besides_is_dropped():
    with published() as (uri, anew), zmtp.connect(uri, b"SUB") as talkative:
        for _ in range(5000):
            talkative.send([b"hello", b"there"])
        talkative.send([SUBSCRIBE])
        assert talkative.receive() == [b"news"]
        assert not anew


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("first", ["", "unsubscribes"])
@pytest.mark.parametrize(("kind", "place"), [("node", "health"), ("server", "broadcast"), ("server", "relay")])
def test_megabytes_of_topics_take_bounded_memory(kind, place, first, mode, tmp_path):
    with attacked(kind, Cluster(mode, tmp_path), heartbeat=0.2) as target:
        before = target.memory
        uri, sent, most = target.places[place], 0, 0
        with contextlib.ExitStack() as held:
            while sent < 8 << 20:
                try:
                    greedy = held.enter_context(zmtp.connect(uri, b"SUB"))
                    for number in range(5000 if first else 0):
                        greedy.send([UNSUBSCRIBE + b"%d." % number + b"x" * 85])
                    for number in range(sent, sent + 3000):
                        greedy.send([SUBSCRIBE + b"%d." % number + b"x" * 85])
                        sent += 85
                except (ConnectionError, TimeoutError):
                    if mode == "curve":
                        break  # it is not even let in
                most = max(most, target.memory - before)
        assert most < 200 << 20
        if mode != "curve":
            with listener(uri) as honest:
                assert hears(honest)
        assert target.is_alive
