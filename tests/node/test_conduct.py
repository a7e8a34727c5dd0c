"""Bad messages: all of them counted by peer, and only so many followed up."""

from framewire.node.conduct import OTHERS, Allowance, Conduct
from framewire.node.deadletters import Reason


class Time:
    now = 0.0

    def __call__(self):
        return self.now


def test_an_allowance_is_so_much_a_second_with_a_second_in_reserve():
    allowance = Allowance(10, 0.0)
    assert sum(allowance.spend(0.0) for _ in range(100)) == 10
    assert sum(allowance.spend(0.5) for _ in range(100)) == 5
    assert sum(allowance.spend(100.0) for _ in range(100)) == 10


def test_an_allowance_of_less_than_one_a_second_still_lets_one_pass():
    allowance = Allowance(0.5, 0.0)
    assert [allowance.spend(now) for now in (0.0, 1.0, 2.0, 3.0)] == [True, False, True, False]


def test_bad_messages_are_counted_by_peer_and_reason():
    conduct = Conduct(Time())
    conduct.note(b"a", Reason.MALFORMED)
    conduct.note(b"a", Reason.BAD_SIGNATURE, 2)
    conduct.note(b"b", Reason.MALFORMED)
    conduct.note(OTHERS, Reason.OVERSIZED, 5)
    assert conduct.counts == {
        b"a": {Reason.MALFORMED: 1, Reason.BAD_SIGNATURE: 2},
        b"b": {Reason.MALFORMED: 1},
        OTHERS: {Reason.OVERSIZED: 5},
    }


def test_only_so_many_of_a_peer_are_followed_up_in_a_second():
    time = Time()
    conduct = Conduct(time)
    assert sum(conduct.note(b"a", Reason.MALFORMED) for _ in range(1000)) == 100
    assert conduct.note(b"b", Reason.MALFORMED)
    time.now = 1.0
    assert conduct.note(b"a", Reason.MALFORMED)
    assert conduct.counts[b"a"][Reason.MALFORMED] == 1001


def test_many_peers_together_are_followed_up_only_so_often():
    conduct = Conduct(Time())
    assert sum(conduct.note(b"%d" % peer, Reason.MALFORMED) for peer in range(5000)) == 1000


def test_a_bounded_number_of_peers_is_kept_apart_and_nothing_is_uncounted():
    conduct = Conduct(Time())
    for peer in range(5000):
        conduct.note(b"%d" % peer, Reason.MALFORMED)
    assert len(conduct.counts) == 1001
    assert conduct.counts[OTHERS][Reason.MALFORMED] == 4000
    assert sum(counts[Reason.MALFORMED] for counts in conduct.counts.values()) == 5000


def test_a_peer_that_sends_too_much_rubbish_is_shunned_for_a_second_and_others_are_not():
    time = Time()
    conduct = Conduct(time)
    for _ in range(1001):
        assert not conduct.shunned
        conduct.note(b"a", Reason.MALFORMED)
    conduct.note(b"b", Reason.MALFORMED)
    assert conduct.shunned == {b"a"}
    assert all(conduct.shuns(b"a") for _ in range(5))
    assert conduct.counts[b"a"] == {Reason.MALFORMED: 1001, Reason.THROTTLED: 5}
    time.now = 1.0
    assert not conduct.shuns(b"a")
    assert not conduct.shunned


def test_a_shunned_peer_that_is_not_kept_apart_any_more_is_not_shunned_for_ever():
    conduct = Conduct(Time())
    for _ in range(1001):
        conduct.note(b"a", Reason.MALFORMED)
    for peer in range(1000):
        conduct.note(b"%d" % peer, Reason.MALFORMED)
    assert not conduct.shunned
