import hashlib
import hmac
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framewire.errors import UsageError
from framewire.security import ALGORITHMS, DomainKey
from framewire.wire import Message

KEY = bytes(range(32))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_mac_covers_identity_version_partition_body_and_callback_receiver(algorithm):
    message = Message(b"id", 0x0102, b"part", (b"one", b"two"), callback_receiver_identity=b"hub")
    expected = hmac.new(KEY, b"id\x02\x01partonetwohub", getattr(hashlib, algorithm)).digest()
    assert DomainKey("d", KEY, algorithm).mac(message) == expected


def test_sha256_is_the_default():
    assert DomainKey("d", KEY).mac(Message(b"x")) == DomainKey("d", KEY, "sha256").mac(Message(b"x"))


@pytest.mark.parametrize("show", [repr, str, "{}".format, lambda key: f"{key!r:>90}", lambda key: repr([key])])
def test_a_key_is_never_shown(show):
    secret = b"correct horse battery staple, once more"
    shown = show(DomainKey("payments", secret))
    assert "payments" in shown
    assert "horse" not in shown
    assert secret.hex() not in shown


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("", KEY), "domain"),
        ((b"d", KEY), "domain"),
        (("d", b""), "key"),
        (("d", "text"), "key"),
        (("d", KEY, "sha3"), "algorithm"),
        (("d", KEY, "SHA256"), "algorithm"),
        (("d", KEY, None), "algorithm"),
    ],
)
def test_what_cannot_be_a_key_is_refused_by_name(arguments, field):
    with pytest.raises(UsageError, match=f"^{field}:"):
        DomainKey(*arguments)


def test_a_refused_key_is_not_shown_either():
    with pytest.raises(UsageError) as caught:
        DomainKey("d", "hunter2")
    assert "hunter2" not in str(caught.value)


def test_a_v1_message_cannot_be_signed():
    with pytest.raises(UsageError, match="upgrade"):
        DomainKey("d", KEY).mac(Message(b"x", b"1.0", wire_version=1))


@given(st.integers(70_000, 10**9))
def test_a_version_that_does_not_fit_cannot_be_signed(version):
    with pytest.raises(UsageError, match=r"^version:"):
        DomainKey("d", KEY).mac(Message(b"x", version))


def test_a_key_survives_a_trip_to_another_process():
    key = DomainKey("d", KEY)
    assert pickle.loads(pickle.dumps(key)) == key  # noqa: S301 - our own bytes


@pytest.mark.parametrize("length", [1, 16, 31])
def test_a_short_key_is_refused_unless_that_is_said_to_be_insecure(length):
    with pytest.raises(
        UsageError, match=rf"^key: .* has {length} bytes; it takes at least 32 .*insecure_short_keys"
    ):
        DomainKey("d", KEY[:length])
    with pytest.raises(UsageError, match=r"^key:"):
        DomainKey("d", KEY[:length], insecure_short_keys="no")
    short = DomainKey("d", KEY[:length], insecure_short_keys=True)
    expected = hmac.new(KEY[:length], b"x\x00\x00", hashlib.sha256).digest()
    assert short.mac(Message(b"x", 0)) == expected
    assert pickle.loads(pickle.dumps(short)) == short  # noqa: S301 - our own bytes


@given(st.lists(st.binary()), st.binary())
def test_the_mac_of_a_body_of_several_frames_is_that_of_the_same_bytes_in_one(frames, receiver):
    message = Message(b"id", 2, b"part", tuple(map(memoryview, frames)), callback_receiver_identity=receiver)
    key = DomainKey("d", KEY)
    assert key.mac(message) == key.mac(message.replace(body=b"".join(frames)))
    assert key.macs(message)(b"".join(frames)) == key.mac(message)
