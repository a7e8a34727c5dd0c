"""How fast an actor works, as its counters tell."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from framewire.node.load import LoadEstimate
from framewire.wire import MessageId

ID = MessageId(b"x")


@dataclass
class Watched:
    """An actor's counters, and an estimate that looks at them every 25 ms."""

    concurrency: int = 1
    now: float = 0.0
    figures: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(handled=0, seconds=0.0))

    def __post_init__(self):
        self.load = LoadEstimate(self.concurrency, 0.0)

    def work(self, seconds, each, backlog=100, took=None, late=0.0, stuck=0.0):
        """Handle messages for a while, one after another every so often."""
        end = self.now + seconds
        while self.now < end - 1e-9:
            self.now += 0.025
            done = int(self.now / each) - self.figures.handled if each else 0
            self.figures.handled += done
            self.figures.seconds += done * (each if took is None else took)
            handlers = [(ID, SimpleNamespace(figures=self.figures))]
            self.load.look(handlers, self.now, late, stuck, backlog)
        return self.load.service


def test_nothing_is_known_at_first():
    assert Watched().load.service == 0


def test_it_is_the_time_from_one_message_to_the_next_while_some_wait():
    assert Watched().work(1.0, 0.01) == pytest.approx(0.01, rel=0.05)


def test_handlers_that_wait_at_the_same_time_count_for_what_they_get_done():
    watched = Watched(concurrency=4)
    assert watched.work(2.0, 0.05, took=0.2) == pytest.approx(0.05, rel=0.2)
    assert watched.load.handling[ID] == pytest.approx(0.2)


def test_an_event_loop_that_others_keep_busy_tells_nothing_of_the_actor():
    watched = Watched()
    watched.work(1.0, 0.001)
    watched.figures.handled = 0
    watched.load._handled = 0
    before = watched.load.service
    assert watched.work(0.5, 0.05, took=0.0001, late=0.02) == before


def test_what_others_refuse_makes_an_actor_no_quicker():
    watched = Watched()
    watched.work(1.0, 0.02)
    end = watched.now + 2.0
    while watched.now < end:  # for each message that it handles, three end at once that it can do nothing for
        watched.now += 0.02
        watched.figures.handled += 4
        watched.figures.seconds += 0.02 + 3 * 0.001
        for _ in range(3):
            watched.load.refused(ID, 0.001)
        watched.load.look([(ID, SimpleNamespace(figures=watched.figures))], watched.now, 0.0, 0.0, 100)
    assert watched.load.service == pytest.approx(0.02, rel=0.05)
    assert watched.load.handling[ID] == pytest.approx(0.02, rel=0.05)


def test_the_first_estimate_is_there_after_twelve_messages():
    watched = Watched()
    assert watched.work(0.25, 0.025) == 0
    assert watched.work(0.075, 0.025) == pytest.approx(0.025, rel=0.05)


def test_handlers_that_come_to_wait_for_others_are_known_to_take_long_after_some_seconds():
    watched = Watched(concurrency=50)
    watched.work(2.0, 0.02, took=0.02)
    watched.work(6.0, 0.02, took=1.0)
    assert watched.load.handling[ID] == pytest.approx(1.0)


def test_a_handler_that_does_not_end_makes_messages_slower():
    watched = Watched()
    assert watched.work(0.1, 0, stuck=0.05) == 0
    assert watched.work(0.1, 0, stuck=0.5) == 0.5


def test_one_stop_of_the_event_loop_changes_nothing():
    watched = Watched()
    watched.work(2.0, 0.001)
    watched.now += 3.0
    watched.figures.handled += 3
    watched.figures.seconds += 3.0
    watched.load.look([(ID, SimpleNamespace(figures=watched.figures))], watched.now, 0.0, 0.0, 100)
    assert watched.load.service == pytest.approx(0.001, rel=0.2)
