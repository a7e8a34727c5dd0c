"""Failures as messages, read and written."""

import bson
import pytest

import framewire as fw
from framewire.node.exceptions import error_from, exception_from, shortened
from framewire.node.payloads import type_of

EXCEPTIONS = type_of(fw.ExceptionMessage)


def through_the_wire(told):
    return EXCEPTIONS.decode(EXCEPTIONS.encode(told))


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


def test_a_failure_survives_the_wire():
    told = exception_from(raised(ValueError("no")), actor="Shop.sell", node=b"here", about="orders.place v1")
    assert through_the_wire(told) == told
    error = error_from(through_the_wire(told))
    assert (error.type_name, error.detail, error.actor, error.node) == ("ValueError", "no", "Shop.sell", b"here")
    assert "raise error" in error.traceback


@pytest.mark.parametrize(
    "kind", [fw.Expired, fw.NoRoute, fw.NodeStopped, fw.Overloaded, fw.Unreachable, fw.BadBody, fw.BadSignature]
)
def test_errors_of_ours_come_back_as_what_they_were(kind):
    error = error_from(through_the_wire(exception_from(kind("why"), node=b"there")))
    assert type(error) is kind
    assert (error.detail, error.node) == ("why", b"there")


def test_a_class_that_only_looks_like_ours_is_a_remote_error():
    told = exception_from(type("NoRoute", (Exception,), {"__module__": "shop"})("none"), actor="Shop.sell")
    assert error_from(through_the_wire(told)).type_name == "shop.NoRoute"


@pytest.mark.parametrize("text", ["\ud800", "\x00", "🜁", ""])
def test_any_text_survives_the_wire(text):
    told = through_the_wire(exception_from(ValueError(text), actor="a"))
    assert told.message.replace("\\ud800", "\ud800") == text


@pytest.mark.parametrize("padding", [b"", b"\x00" * 100])
def test_a_document_of_dotnet_is_read_whatever_follows_it(padding):
    document = bson.encode({"Message": "nein", "ExceptionType": "System.Exception", "StackTrace": "at Foo()"})
    told = EXCEPTIONS.decode(document + padding)
    assert (told.message, told.exception_type, told.stack_trace) == ("nein", "System.Exception", "at Foo()")


@pytest.mark.parametrize("body", [b"", b"\xff\xff\xff\xff", b"not bson at all", bson.encode({"Message": 5})])
def test_a_document_that_cannot_be_read_is_still_a_failure(body):
    assert isinstance(error_from(EXCEPTIONS.decode(body)), fw.RemoteError)


def oddly(**attributes):
    """An exception of a class that a program has made by hand."""
    return raised(type("Odd", (Exception,), attributes)("why"))


@pytest.mark.parametrize("module", [None, 7, "", property(lambda _: "no")], ids=repr)
def test_a_class_without_a_module_is_a_remote_error(module):
    told = through_the_wire(exception_from(oddly(__module__=module), actor="Shop.sell"))
    error = error_from(told)
    assert isinstance(error, fw.RemoteError)
    assert (error.type_name, error.detail) == ("Odd", "why")
    assert "raise error" in error.traceback
    assert error.traceback.endswith("Odd: why\n")


def test_the_middle_of_a_text_that_is_too_long_is_left_out():
    text = "begin" + "x" * 50_000_000 + "end"
    told = exception_from(raised(ValueError(text)), actor="Shop.sell")
    assert len(told.message) + len(told.stack_trace) < 4_000_000
    assert told.message.startswith("begin")
    assert told.message.endswith("end")
    assert "characters left out" in told.message
    assert "raise error" in told.stack_trace
    assert told.exception_type == "builtins.ValueError"


def test_an_exception_can_be_told_in_ever_fewer_words_until_they_are_few():
    told = exception_from(
        raised(ValueError("x" * 100_000)), actor="Shop.sell", node=b"here", about="orders.place v1"
    )
    sizes = []
    while told is not None:
        sizes.append(len(EXCEPTIONS.encode(told)))
        last, told = told, shortened(told)
    assert len(sizes) == 3
    assert sizes[1] < 70_000
    assert sizes[2] < 700
    assert (last.exception_type, last.actor, last.node) == ("builtins.ValueError", "Shop.sell", "here")
