"""What a memory of signed messages knows, and what it forgets."""

from hypothesis import given
from hypothesis import strategies as st

from framewire.security.replay import Replays, token
from framewire.wire import Message, RouterAddress


def signed(**changes):
    made = Message(b"pay.order", signature=b"mac", correlation_id=b"flow", callback_key=1)
    return made.replace(**({"routing": (RouterAddress("tcp://a:1", b"a"),)} | changes))


def test_the_same_message_is_new_on_its_own_connection_and_a_replay_on_another():
    replays = Replays(60, 100)
    assert replays.is_new(1, b"one", 0)
    assert replays.is_new(1, b"one", 1)
    assert not replays.is_new(1, b"other", 2)
    assert replays.is_new(1, b"one", 3)


def test_what_comes_only_once_is_a_replay_on_any_connection():
    replays = Replays(60, 100)
    assert replays.is_new(1, b"", 0)
    assert not replays.is_new(1, b"", 1)


def test_messages_are_told_apart_by_signature_flow_key_and_sender():
    other = (RouterAddress("tcp://b:1", b"b"),)
    different = [
        signed(),
        signed(signature=b"cam"),
        signed(correlation_id=b"wolf"),
        signed(callback_key=2),
        signed(routing=other),
        signed(routing=()),
    ]
    assert len({token(message, unique=False) for message in different}) == len(different)
    same = [signed(), signed(ttl_ticks=5), signed(hops=3), signed(trace_options=1)]
    assert len({token(message, unique=False) for message in same}) == 1


def test_of_what_comes_only_once_nothing_counts_but_the_signature():
    assert token(signed(), unique=True) == token(signed(correlation_id=b"wolf", callback_key=2), unique=True)
    assert token(signed(), unique=True) != token(signed(signature=b"cam"), unique=True)


def test_a_message_is_known_for_the_window_and_forgotten_after_two():
    replays = Replays(10, 100)
    replays.is_new(1, b"one", 0)
    assert not replays.is_new(1, b"other", 10)
    assert replays.is_new(1, b"other", 31)


def test_a_replay_does_not_make_a_message_known_for_longer():
    replays = Replays(10, 100)
    replays.is_new(1, b"", 0)
    for now in range(1, 20):
        replays.is_new(1, b"", now)
    assert replays.is_new(1, b"", 21)


@given(st.integers(2, 50), st.lists(st.integers(0, 1000), max_size=300))
def test_memory_is_bounded_and_the_last_half_is_always_known(most, tokens):
    replays = Replays(1e9, most)
    seen = []
    for number in tokens:
        if replays.is_new(number, b"", 0.0):
            seen.append(number)
        assert len(replays) <= most
    for number in seen[-(most // 2) :]:
        assert not replays.is_new(number, b"", 0.0)
