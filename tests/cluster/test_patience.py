"""For how long somebody who should give signs of life may be silent."""

import pytest

from framewire.cluster import service
from framewire.cluster.patience import Patience
from framewire.wire import encode


def beat(interval):
    return encode(service.service_message(service.HEARTBEAT, interval=service.time_span(interval)))


def test_silence_is_too_long_after_the_misses_and_then_another_begins():
    patience = Patience(1.0, 3, now=100.0)
    patience.heard(beat(1.0), 100.0)
    assert not patience.is_over(103.0)
    assert patience.is_over(103.1)
    assert not patience.is_over(106.0)
    assert patience.is_over(106.2)


def test_what_was_promised_counts():
    patience = Patience(1.0, 3, now=0.0)
    assert patience.heard(beat(20.0), 0.0)
    assert not patience.is_over(60.0)
    assert patience.is_over(60.1)
    assert not patience.is_over(120.0), "a promise is a promise"
    assert patience.is_over(120.2)


def test_who_promised_nothing_has_more_time_after_each_try():
    patience = Patience(60.0, 3, now=0.0)
    now, had = 0.0, []
    for _ in range(4):
        had.append(patience.seconds)
        now += patience.seconds
        assert not patience.is_over(now)
        now += 0.1
        assert patience.is_over(now)
    assert had == [180.0, 360.0, 600.0, 600.0]


def test_who_is_expected_to_be_slow_is_not_hurried():
    patience = Patience(1000.0, 3, now=0.0)
    assert patience.is_over(3001.0)
    assert patience.seconds == 3000.0


def test_every_message_is_a_sign_of_life_but_not_nothing_else():
    patience = Patience(1.0, 3, now=0.0)
    assert not patience.heard(encode(service.service_message(service.PONG)), 2.0)
    assert not patience.heard([b"x"], 2.5)
    assert not patience.is_over(5.0)


@pytest.mark.parametrize(
    "frames", [[b"", b"KINO.HEARTBEAT", *[b""] * 5], encode(service.service_message(service.HEARTBEAT))]
)
def test_a_heartbeat_that_promises_nothing_that_can_be_read_is_a_sign_of_life(frames):
    patience = Patience(1.0, 3, now=0.0)
    assert patience.heard(frames, 2.0)
    assert patience.seen == 2.0


def test_a_promise_that_is_too_good_to_be_true_is_not_believed():
    patience = Patience(1.0, 4, now=0.0)
    patience.heard(beat(0.0001), 0.0)
    assert patience.seconds == pytest.approx(0.2)
