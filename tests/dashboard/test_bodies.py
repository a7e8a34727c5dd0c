"""What messages say: by their types, by what they look like, in hex; never more than a page can show."""

import json
from types import ModuleType

import msgspec
import pytest

import framewire as fw
from framewire.capture.bodies import cut_body
from framewire.dashboard.bodies import Bodies
from framewire.node.payloads import type_of
from framewire.node.reports import Ping


@fw.message("shop.order", version=2)
class Order(msgspec.Struct):
    article: str
    number: int = 1


MODULE = ModuleType("shop")
MODULE.Order = Order
BODIES = Bodies(MODULE)


def read(body, identity=b"some.thing", version=1, partition=b""):
    return BODIES.read(body, identity, version, partition)


def test_a_body_whose_type_is_known_is_read_by_it():
    body = read(type_of(Order).encode(Order("tea")), b"shop.order", 2)
    assert body.how.startswith("Order, ")
    assert json.loads(body.content) == {"article": "tea", "number": 1}
    assert read(type_of(Ping).encode(Ping()), b"FRAMEWIRE.PING").how.startswith("Ping, ")


def test_a_body_that_is_not_what_its_type_says_is_told_and_shown_in_hex():
    body = read(b"\xc1 oops", b"shop.order", 2)
    assert "not a Order as msgpack" in body.how
    assert body.content == "000000  c1 20 6f 6f 70 73                                · oops"


@pytest.mark.parametrize(
    ("body", "how", "content"),
    [
        (b'{"a": [1]}', "looks like JSON", '{\n  "a": [\n    1\n  ]\n}'),
        (msgspec.msgpack.encode({"a": 1}), "looks like msgpack", '{\n  "a": 1\n}'),
        (b"plain words", "text", "plain words"),
        (b"\xff\xfe", "2 B, in hex", "000000  ff fe                                            ··"),
        (b"", "empty", ""),
        (b"[" * 100_000, "text", "[" * 8192 + "…"),
        (b"one\x1b[2Jtwo\n\xe2\x80\xaethree", "text", "one\\x1b[2Jtwo\n\\u202ethree"),
    ],
)
def test_other_bodies_are_shown_as_what_they_look_like(body, how, content):
    found = read(body)
    assert found.how.startswith(how)
    assert found.content == content


def test_a_body_that_was_cut_when_it_was_recorded_says_how_long_it_was():
    (cut,) = cut_body([b"x" * 5000], 3)
    found = read(cut)
    assert found.how == "cut when it was recorded; it had 4.9 KiB"
    assert found.content.endswith("xxx")


def test_a_megabyte_is_not_read_and_little_of_it_is_shown():
    found = read(b"\x81" * 1_000_000)
    assert "too long to be read here" in found.how
    assert len(found.content) < 6000
    assert found.content.endswith("more")


def test_values_that_json_has_not_are_told_all_the_same():
    assert '"0"' in read(msgspec.msgpack.encode({0: b"\xff"})).content
