"""An account that cannot be wrong would prove nothing: each broken promise is found."""

from tests.chaos.journal import REPLIED, Ask, Entries, Journal, read
from tests.chaos.ledger import CALLER_KILLED, account


def journals(*outcomes, handled=("one",), timeout=1.0, asked=10.0):
    return {"a-1": Entries({"one": Ask(asked, timeout, list(outcomes))}, list(handled))}


def test_a_reply_to_what_was_handled_once_is_in_order():
    found = account(journals((10.5, REPLIED)))
    assert not found.problems
    assert found.outcomes == {REPLIED: 1}
    assert found.asks == 1


def test_a_typed_error_is_in_order_and_counted_by_its_name():
    found = account(journals((10.5, "Unreachable"), handled=()))
    assert not found.problems
    assert found.outcomes == {"Unreachable": 1}


def test_an_error_without_a_type_is_found():
    assert account(journals((10.5, "untyped: KeyError('x')"))).unknown


def test_an_answer_to_another_question_is_found():
    assert account(journals((10.5, "wrong answer"))).unknown


def test_an_ask_that_never_ends_is_found_unless_its_caller_was_killed():
    assert account(journals()).unknown == ["one"]
    found = account(journals(), killed={"a-1"})
    assert not found.problems
    assert found.outcomes == {CALLER_KILLED: 1}


def test_an_ask_that_ends_twice_is_found():
    assert account(journals((10.5, REPLIED), (10.6, "Expired"))).twice == ["one"]


def test_what_is_handled_twice_is_found_wherever_that_was():
    twice = journals((10.5, REPLIED)) | {"b-1": Entries({}, ["one"])}
    assert account(twice).twice == ["one"]


def test_an_answer_of_nobody_is_found():
    assert account(journals((10.5, REPLIED), handled=())).unasked == ["one"]


def test_a_caller_that_waits_too_long_is_found_but_not_one_that_stood_still():
    late = journals((12.5, "Expired"))
    assert account(late).overdue == ["one"]
    assert not account(late, stopped=[("a-1", 10.5, 11.5)]).overdue
    assert account(late, stopped=[("b-1", 10.5, 11.5)]).overdue
    assert account(late, stopped=[("a-1", 9.0, 10.2)]).overdue


def test_what_was_written_is_read_and_a_line_that_was_cut_off_is_not(tmp_path):
    path = tmp_path / "a.journal"
    written = Journal(path)
    written.asked("one", 2.5)
    written.handled("other")
    written.ended("one", REPLIED)
    written.close()
    with path.open("a") as cut_off:
        cut_off.write("asked\ttw")
    found = read(path)
    assert found.handled == ["other"]
    assert found.asks["one"].timeout == 2.5
    assert [what for _, what in found.asks["one"].outcomes] == [REPLIED]
    assert list(found.asks) == ["one"]
