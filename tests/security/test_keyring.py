import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framewire.errors import UsageError
from framewire.security import BadSignature, DomainKey, KeyRing
from framewire.wire import Message, decode, encode

OLD, NEW = os.urandom(32), os.urandom(32)


def ring(*keys, **options):
    return KeyRing(keys or [DomainKey("payments", NEW)], identities={"payments": ["pay.*", b"ledger"]}, **options)


def order(**changes):
    return Message(b"pay.order", 3, b"eu", (b"100 EUR",), callback_receiver_identity=b"\x00hub").replace(**changes)


def test_a_signed_message_is_verified_after_a_trip_over_the_wire():
    signed = ring().sign(order())
    assert signed.domain == "payments"
    assert ring().verify(decode(encode(signed))) == signed


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha512"])
def test_older_and_longer_algorithms_work_when_named(algorithm):
    both = ring(DomainKey("payments", NEW, algorithm))
    both.verify(both.sign(order()))
    with pytest.raises(BadSignature):
        ring().verify(both.sign(order()))


SIGNED_FIELDS = ["identity", "version", "partition", "body", "callback_receiver_identity", "signature"]


@given(st.sampled_from(SIGNED_FIELDS), st.integers(0, 10_000))
def test_any_one_bit_change_to_a_signed_field_is_caught(field, place):
    keys = KeyRing([DomainKey("payments", NEW)], identities={"payments": ["*"]})
    signed = keys.sign(order())
    value = getattr(signed, field)
    if field == "version":
        changed = value ^ 1 << place % 16
    else:
        flipped = bytearray(value)
        flipped[place // 8 % len(value)] ^= 1 << place % 8
        changed = bytes(flipped)
    with pytest.raises(BadSignature):
        keys.verify(signed.replace(**{field: changed}))


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"signature": b""}, "not signed"),
        ({"signature": b"short"}, "does not match"),
        ({"signature": bytes(32)}, "does not match"),
        ({"domain": ""}, "belong to domain 'payments'"),
        ({"domain": "orders"}, "belong to domain 'payments'"),
    ],
)
def test_wrong_missing_and_foreign_signatures_are_refused(changes, detail):
    with pytest.raises(BadSignature, match=detail) as caught:
        ring().verify(ring().sign(order()).replace(**changes))
    assert caught.value.message_id == order().message_id
    assert caught.value.domain == changes.get("domain", "payments")


def test_an_error_names_domain_and_message_and_never_the_key():
    keys = ring(DomainKey("payments", b"sesame-" * 5))
    with pytest.raises(BadSignature) as caught:
        keys.verify(order(domain="payments", signature=b"x"))
    text = str(caught.value) + repr(caught.value) + repr(keys)
    assert "pay.order v3 [eu]" in text
    assert "'payments'" in text
    assert "sesame" not in text


def test_a_domain_without_a_key_here_is_neither_signed_nor_believed():
    outsider = KeyRing(identities={"payments": ["pay.*"]})
    with pytest.raises(UsageError, match="no key for 'payments'"):
        outsider.sign(order())
    with pytest.raises(BadSignature, match="no key for this domain"):
        outsider.verify(ring().sign(order()))


def test_the_longest_match_decides_the_domain():
    keys = KeyRing(
        identities={"all": ["*"], "pay": ["pay.*"], "refunds": ["pay.refund.*"], "one": ["pay.refund.one"]}
    )
    found = [keys.domain_of(name) for name in (b"x", b"pay.a", b"pay.refund.a", b"pay.refund.one", b"")]
    assert found == ["all", "pay", "refunds", "one", "all"]


def test_what_no_domain_claims_is_in_the_nameless_one_and_unsigned():
    free = ring().sign(Message(b"weather", domain="stale", signature=b"stale"))
    assert (free.domain, free.signature) == ("", b"")
    assert ring().verify(free) is free


def test_an_unsigned_domain_needs_no_signature():
    keys = ring(unsigned=["payments"])
    assert keys.sign(order()).signature == b""
    keys.verify(order(domain="payments"))


def test_single_identities_of_a_domain_can_be_unsigned():
    keys = ring(unsigned={"payments": ["pay.ping"]})
    assert keys.sign(Message(b"pay.ping")).signature == b""
    assert keys.sign(order()).signature
    with pytest.raises(BadSignature):
        keys.verify(order(domain="payments"))


def test_a_service_message_is_signed_for_the_domain_it_is_sent_in():
    service = Message(b"KINO.REGEXTROUTE")
    signed = ring().sign(service, domain="payments")
    assert ring().verify(signed, domain="payments") == signed
    with pytest.raises(BadSignature):
        ring().verify(signed, domain="orders")


def test_a_key_is_rotated_without_a_refused_message():
    before = ring(DomainKey("payments", OLD))
    prepared = ring(DomainKey("payments", OLD), DomainKey("payments", NEW))
    during = before.rotated(DomainKey("payments", NEW))
    after = during.retired("payments")
    for sender, receiver in [(before, prepared), (prepared, during), (during, prepared), (during, after)]:
        receiver.verify(sender.sign(order()))
    with pytest.raises(BadSignature):
        after.verify(before.sign(order()))


def test_rotation_leaves_the_old_ring_and_other_domains_alone():
    old = KeyRing(
        [DomainKey("a", OLD), DomainKey("b", OLD)],
        identities={"a": ["a.*"], "b": ["b.*"]},
        unsigned={"a": ["a.x"]},
    )
    new = old.rotated(DomainKey("a", NEW))
    assert old.sign(Message(b"a.1")) != new.sign(Message(b"a.1"))
    assert old.sign(Message(b"b.1")) == new.sign(Message(b"b.1"))
    assert new.sign(Message(b"a.x")).signature == b""


def test_an_identity_in_two_domains_is_a_mistake():
    with pytest.raises(UsageError, match=r"'pay\.\*' is in 'a' and in 'b'"):
        KeyRing(identities={"a": ["pay.*"], "b": ["pay.*"]})


def test_a_v1_message_is_never_believed_in_a_signed_domain():
    old = Message(b"pay.order", b"1.0", domain="payments", signature=b"x", wire_version=1)
    with pytest.raises(BadSignature, match="V1"):
        ring().verify(old)


def test_a_ring_knows_its_domains():
    keys = KeyRing([DomainKey("a", NEW)], unsigned=["b"])
    assert keys.domains == {"a", "b"}
    assert repr(keys) == "<KeyRing a (sha256), b (unsigned)>"


@pytest.mark.parametrize(
    "moved",
    [
        {"partition": b"", "body": b"eu100 EUR"},
        {"body": b"100", "callback_receiver_identity": b" EUR\x00hub"},
        {"body": b"100 EUR\x00hub", "callback_receiver_identity": b""},
    ],
    ids=["partition to body", "body to callback receiver", "callback receiver to body"],
)
def test_bytes_that_move_from_one_signed_field_to_the_next_are_not_noticed(moved):
    # That is the scheme of the original, which joins the fields without their lengths: docs/security.md says so.
    signed = ring().sign(order())
    assert ring().verify(signed.replace(**moved))
