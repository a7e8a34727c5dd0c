"""What a ledger remembers of a batch."""

import pytest

from framewire.errors import UsageError
from framewire.spark.ledger import Ledger

ONE, TWO = b"1" * 16, b"2" * 16


@pytest.fixture(params=["a path", "a uri"])
def place(request, tmp_path):
    return str(tmp_path / "led ger") if request.param == "a path" else (tmp_path / "led").as_uri()


def test_what_was_noted_is_known_to_the_same_part_of_the_same_batch(place):
    notes = Ledger(place, "b").notes(3)
    notes.add(ONE)
    notes.add(ONE)
    notes.add(TWO)
    notes.flush()
    assert Ledger(place, "b").sent(3) == {ONE: 2, TWO: 1}
    assert not Ledger(place, "b").sent(33)
    assert not Ledger(place, "c").sent(3)


def test_attempts_add_up(place):
    for _ in range(2):
        notes = Ledger(place, "b").notes(0)
        notes.add(ONE)
        notes.flush()
    assert Ledger(place, "b").sent(0) == {ONE: 2}


def test_a_batch_that_is_through_is_known_and_keeps_no_digests(place, tmp_path):
    ledger = Ledger(place, "b")
    assert ledger.done() is None
    notes = ledger.notes(0)
    notes.add(ONE)
    notes.flush()
    ledger.finish({"confirmed": 1})
    assert Ledger(place, "b").done() == {"confirmed": 1}
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["done"]


def test_batches_may_have_any_name(tmp_path):
    ledger = Ledger(str(tmp_path / "l"), "../../evil/name")
    ledger.finish({})
    assert ledger.done() == {}
    assert all(path.is_relative_to(tmp_path / "l") for path in tmp_path.rglob("done"))


def test_a_place_that_cannot_be_is_told():
    with pytest.raises(UsageError, match="nonsense://x"):
        Ledger("nonsense://x", "b")
