import pytest
from hypothesis import given
from hypothesis import strategies as st

import framewire as fw
from framewire.testing import Faults
from framewire.testing.faults import Dice, corrupted

RATES = ("drop", "duplicate", "reorder", "corrupt")


def throws(faults, count=50, sender=b"a", receiver=b"b"):
    dice = Dice(faults, sender, receiver)
    return [dice.throw() for _ in range(count)]


def test_all_problems_are_told_at_once():
    with pytest.raises(fw.ConfigError) as caught:
        Faults(seed="x", drop=2, duplicate=-0.1, delay=(3, 1), reorder=float("nan"), corrupt="often")
    told = [problem.split(":")[0] for problem in caught.value.problems]
    assert sorted(told) == ["corrupt", "delay", "drop", "duplicate", "reorder", "seed"]


@pytest.mark.parametrize("delay", [(1,), (-1, 1), (0, float("inf")), 3, (1, 2, 3), ("0", "1")])
def test_a_delay_is_two_numbers_in_order(delay):
    with pytest.raises(fw.ConfigError, match="delay"):
        Faults(delay=delay)


def test_faults_are_a_value():
    assert Faults(seed=1, drop=0.5) == Faults(seed=1, drop=0.5)
    with pytest.raises(AttributeError):
        Faults().drop = 1.0


def test_the_same_seed_throws_the_same():
    faults = Faults(seed=7, drop=0.3, duplicate=0.3, delay=(0, 1), reorder=0.3, corrupt=0.3)
    assert throws(faults) == throws(faults)


def test_another_seed_or_another_link_throws_differently():
    one, other = Faults(seed=1, drop=0.5), Faults(seed=2, drop=0.5)
    assert throws(one) != throws(other)
    assert throws(one) != throws(one, sender=b"b", receiver=b"a")


def test_one_fault_does_not_shift_the_chances_of_another():
    with_drops = throws(Faults(seed=3, corrupt=0.5, drop=0.5))
    without = throws(Faults(seed=3, corrupt=0.5))
    assert [throw.corrupt for throw in with_drops] == [throw.corrupt for throw in without]


@pytest.mark.parametrize("rate", RATES)
def test_never_and_always_are_meant(rate):
    field = {"reorder": "overtake"}.get(rate, rate)
    assert not any(getattr(throw, field) for throw in throws(Faults()))
    assert all(getattr(throw, field) for throw in throws(Faults(**{rate: 1.0})))


def test_rates_are_about_what_they_say():
    dropped = sum(throw.drop for throw in throws(Faults(seed=1, drop=0.3), count=10_000))
    assert 2700 < dropped < 3300


def test_delays_lie_within_their_span():
    delays = [throw.delay for throw in throws(Faults(delay=(0.5, 2.0)), count=1000)]
    assert min(delays) >= 0.5
    assert max(delays) <= 2.0
    assert max(delays) - min(delays) > 1.0


@given(
    st.lists(st.binary(max_size=20), min_size=1, max_size=12),
    st.floats(min_value=0, max_value=1, exclude_max=True),
)
def test_exactly_one_bit_is_flipped(frames, place):
    altered, where = corrupted(frames, place)
    before = int.from_bytes(b"".join(frames), "big")
    after = int.from_bytes(b"".join(altered), "big")
    assert [len(frame) for frame in altered] == [len(frame) for frame in frames]
    assert (before ^ after).bit_count() == (1 if any(frames) else 0)
    assert where


def test_every_frame_may_be_hit():
    frames = [b"", b"a", b"b" * 1000, b"c"]
    hit = set()
    for n in range(100):
        altered, _ = corrupted(frames, n / 100)
        hit |= {i for i, (one, other) in enumerate(zip(frames, altered, strict=True)) if one != other}
    assert hit == {1, 2, 3}
