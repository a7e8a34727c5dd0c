"""Messages as values."""

import pytest

from framewire.errors import UsageError
from framewire.wire import (
    Distribution,
    Message,
    MessageId,
    RouterAddress,
    Selectors,
    TraceOptions,
    decode,
    encode,
    forward,
)

MESSAGE = Message(
    b"orders.place",
    version=2,
    partition=b"eu",
    body_frames=(b"first", b"second"),
    callback_points=(MessageId(b"orders.placed"),),
    routing=(RouterAddress("tcp://10.0.0.1:7400", b"n1"),),
)


@pytest.mark.parametrize(
    "value",
    [
        MESSAGE,
        MessageId(b"orders.place"),
        RouterAddress("tcp://10.0.0.1:7400", b"n1"),
        Selectors(Distribution.UNICAST, b"orders.place", 1, b"", b"", b""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_field_can_be_changed(value):
    for name in value.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(value, name, getattr(value, name))


def test_replacing_changes_a_copy_and_shares_the_rest():
    changed = MESSAGE.replace(hops=3)
    assert changed.hops == 3
    assert MESSAGE.hops == 0
    for name in set(Message.__struct_fields__) - {"hops"}:
        assert getattr(changed, name) is getattr(MESSAGE, name)


def test_replacing_the_body_makes_it_one_frame():
    assert MESSAGE.replace(body=b"new").body_frames == (b"new",)


def test_replacing_a_field_that_does_not_exist_is_an_error():
    with pytest.raises(TypeError, match="colour"):
        MESSAGE.replace(colour="red")


@pytest.mark.parametrize(
    ("body_frames", "body"),
    [((), b""), ((b"",), b""), ((b"one",), b"one"), ((b"one", b"", b"two"), b"onetwo")],
)
def test_the_body_is_all_frames_joined_in_order(body_frames, body):
    assert MESSAGE.replace(body_frames=body_frames).body == body


def test_a_body_of_one_frame_is_not_copied():
    frame = bytes(range(200))
    assert MESSAGE.replace(body=frame).body is frame


@pytest.mark.parametrize(
    ("wire_version", "trace_options", "traced"),
    [
        (5, 1, True),
        (5, 2, False),
        (5, 3, True),
        (5, 0xFFFE, False),
        (4, 1, True),
        (4, 2, False),
        (1, 2, True),
        (1, 1, False),
        (1, 3, True),
        (1, 0, False),
        (1, -1, True),
    ],
)
def test_which_bit_asks_for_tracing_depends_on_the_format(wire_version, trace_options, traced):
    assert MESSAGE.replace(wire_version=wire_version, trace_options=trace_options).traced is traced


def test_the_trace_options_are_named_by_the_bits_of_v5():
    assert MESSAGE.replace(trace_options=TraceOptions.ROUTING).traced
    assert not MESSAGE.replace(trace_options=TraceOptions.NONE).traced


def test_a_message_id_finds_its_handler_in_a_dict():
    handlers = {MessageId(b"orders.place", 2, b"eu"): "handler"}
    assert handlers[MESSAGE.message_id] == "handler"
    for other in (
        MessageId(b"orders.refuse", 2, b"eu"),
        MessageId(b"orders.place", 3, b"eu"),
        MessageId(b"orders.place", 2, b"us"),
        MessageId(b"orders.place", b"2", b"eu"),
    ):
        assert other not in handlers


def test_selectors_and_messages_name_the_same_message_id():
    selectors = Selectors(Distribution.UNICAST, b"orders.place", 2, b"eu", b"", b"")
    assert selectors.message_id == MESSAGE.message_id == MessageId(b"orders.place", 2, b"eu")


@pytest.mark.parametrize(
    ("message_id", "text"),
    [
        (MessageId(b"orders.place"), "orders.place v1"),
        (MessageId(b"orders.place", 2, b"eu"), "orders.place v2 [eu]"),
        (MessageId(b"orders.place", b"1.0"), "orders.place v1.0"),
        (MessageId("größe".encode(), 1), "größe v1"),
        (MessageId(b"\xff\x00", b"\xfe", b"\x01"), "0xff00 v0xfe [0x01]"),
    ],
)
def test_a_message_id_reads_as_a_person_would_write_it(message_id, text):
    assert str(message_id) == text


def test_equal_messages_are_equal_and_hash_alike():
    assert MESSAGE.replace() == MESSAGE
    assert hash(MESSAGE) == hash(MESSAGE.replace())
    assert MESSAGE.replace(hops=1) != MESSAGE


def test_frames_of_a_body_may_be_views_and_travel_as_they_are():
    views = (memoryview(b"first"), b"second", memoryview(bytearray(b"third"))[1:])
    message = Message(b"x", body_frames=views, routing=(RouterAddress("tcp://a", b"a"),))
    frames = encode(message)
    assert encode(message) == frames  # the second time by what is remembered of the first
    assert all(any(frame is view for frame in frames) for view in views)
    assert frames == encode(message.replace(body_frames=tuple(map(bytes, views))))
    assert decode(frames) == message
    assert forward(frames, RouterAddress("tcp://b", b"b"))[2:5] == [b"hird", b"second", b"first"]
    assert message.body == b"firstsecondhird"
    assert message.replace(body_frames=views[:1]).body == b"first"
    assert type(message.replace(body_frames=views[:1]).body) is bytes


@pytest.mark.parametrize(
    "view",
    [memoryview(bytes(8)).cast("d"), memoryview(bytes(8)).cast("B", (2, 4)), memoryview(bytes(8))[::2]],
    ids=["doubles", "two dimensions", "stride"],
)
def test_a_view_that_is_not_flat_is_no_frame(view):
    with pytest.raises(UsageError, match=r"^body_frames: .* is neither bytes nor a flat memoryview"):
        encode(Message(b"x", body_frames=(b"", view)))
