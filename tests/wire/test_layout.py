"""The tables say what docs/wire.md says, and the codec knows nothing that they do not."""

import builtins
import dataclasses
import dis
import inspect

import pytest
from hypothesis import given
from tests.wire.strategies import versioned_messages

from framewire.wire import Message, RouterAddress, WireError, layout_of
from framewire.wire.compiler import compile_layout, source
from framewire.wire.layout import LAYOUTS, SELECTORS, SIGNED, V1, V4, V5, Field, Kind

# frame, field, kind, lanes, whether it is a route selector
V5_ROWS = [
    (1, "wire_version", "format", (), False),
    (2, "body_descriptor", "lanes", ("body_offset", "body_count"), False),
    (3, "ttl", "i64", (), False),
    (4, "correlation_id", "bytes", (), False),
    (5, "trace_and_distribution", "lanes", ("trace_options", "distribution"), True),
    (6, "identity", "bytes", (), True),
    (7, "version", "u16", (), True),
    (8, "partition", "bytes", (), True),
    (9, "receiver_node_identity", "bytes", (), True),
    (10, "callback_receiver_identity", "bytes", (), False),
    (11, "receiver_identity", "bytes", (), True),
    (12, "callback_descriptor", "lanes", ("callback_offset", "callback_count", "callback_step"), False),
    (13, "routing_descriptor", "lanes", ("routing_offset", "routing_count", "routing_step", "hops"), False),
    (14, "signature", "bytes", (), False),
    (15, "domain", "text", (), False),
    (16, "callback_key", "i64", (), False),
    (17, "callback_receiver_node_identity", "bytes", (), False),
]
V5_SECTIONS = [
    ("callback_points", [(0, "identity", "bytes"), (1, "version", "u16"), (2, "partition", "bytes")]),
    ("routing", [(0, "identity", "bytes"), (1, "uri", "text")]),
    ("body", [(0, "body", "bytes")]),
]
# frame, field, kind, whether 0 is an empty frame, whether it is a route selector
V1_ROWS = [
    (1, "body", "bytes", False, False),
    (2, "delimiter", "empty", False, False),
    (3, "ttl", "i64", False, False),
    (4, "callback_receiver_identity", "bytes", False, False),
    (5, "callback_offset", "i32", True, False),
    (6, "callback_count", "i32", True, False),
    (7, "correlation_id", "bytes", False, False),
    (8, "distribution", "i32", False, True),
    (9, "receiver_identity", "bytes", False, True),
    (10, "identity", "bytes", False, True),
    (11, "version", "bytes", False, True),
    (12, "trace_options", "i64", False, False),
    (13, "routing_offset", "i32", True, False),
    (14, "routing_count", "i32", True, False),
    (15, "hops", "i32", False, False),
]
V1_SECTIONS = [
    ("callback_points", [(0, "identity", "bytes"), (1, "version", "bytes")]),
    ("routing", [(0, "identity", "bytes"), (1, "uri", "text")]),
]


def sections(layout):
    return [
        (section.name, [(field.frame, field.name, field.kind) for field in section.entry])
        for section in layout.sections
    ]


@pytest.mark.parametrize("layout", [V4, V5])
def test_the_table_of_v5_and_v4(layout):
    rows = [(field.frame, field.name, field.kind, field.lanes, field.selector) for field in layout.fields]
    assert rows == V5_ROWS
    assert sections(layout) == V5_SECTIONS
    assert not any(field.optional for field in layout.fields)
    assert (layout.trace_routing, layout.ticks_per_ttl) == (1, 1)


def test_the_table_of_v1():
    rows = [(field.frame, field.name, field.kind, field.optional, field.selector) for field in V1.fields]
    assert rows == V1_ROWS
    assert sections(V1) == V1_SECTIONS
    assert not any(field.lanes for field in V1.fields)
    assert (V1.trace_routing, V1.ticks_per_ttl) == (2, 10_000)


def test_what_v1_lacks_reads_as_empty_or_zero():
    lacking = {
        "partition": b"",
        "receiver_node_identity": b"",
        "callback_receiver_node_identity": b"",
        "callback_key": 0,
        "domain": b"",
        "signature": b"",
    }
    assert {name: V1.absent.get(name) for name in lacking} == lacking


def test_v4_and_v5_differ_in_their_version_frame_only():
    assert (V4.version, V4.trailer) == (4, b"\x04\x00\x00\x00")
    assert (V5.version, V5.trailer) == (5, b"\x05\x00")
    assert dataclasses.replace(V4, version=5, trailer=V5.trailer) == V5


def test_v1_has_no_version_frame():
    assert V1.trailer is None
    assert not V1.numbered
    assert V4.numbered
    assert V5.numbered


def test_the_formats_by_version():
    assert dict(LAYOUTS) == {1: V1, 4: V4, 5: V5}


def test_what_routes_a_message_and_what_a_signature_covers():
    assert SELECTORS == (
        "distribution",
        "identity",
        "version",
        "partition",
        "receiver_node_identity",
        "receiver_identity",
    )
    assert SIGNED == ("identity", "version", "partition", "body", "callback_receiver_identity")


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=lambda layout: f"v{layout.version}")
def test_selectors_are_exactly_the_frames_marked_so(layout):
    holders = {layout.holder(name) for name in SELECTORS} - {None}
    assert holders == {field for field in layout.fields if field.selector}


@pytest.mark.parametrize(
    ("kind", "width"),
    [("u16", 2), ("i32", 4), ("i64", 8), ("lanes", 8), ("bytes", None), ("text", None), ("format", None)],
)
def test_the_width_of_every_kind(kind, width):
    assert Kind(kind).width == width


def test_the_tables_cannot_be_changed():
    with pytest.raises(TypeError):
        LAYOUTS[6] = V5
    with pytest.raises(dataclasses.FrozenInstanceError):
        V5.fields[0].name = "other"
    with pytest.raises(TypeError):
        V1.absent["domain"] = b"x"


def test_the_layout_of_frames_is_the_table_they_follow():
    for layout in LAYOUTS.values():
        assert layout_of(compile_layout(layout).encode(Message(b"m"), 1)) is layout


def made_up():
    """A format of tomorrow: two frames have changed places, and there is one more at the top."""
    moved = {6: 14, 14: 6}
    fields = [dataclasses.replace(field, frame=moved.get(field.frame, field.frame)) for field in V5.fields]
    fields.append(Field(18, "padding", Kind.EMPTY))
    return dataclasses.replace(
        V5,
        version=6,
        trailer=b"\x06\x00",
        fields=tuple(sorted(fields, key=lambda field: field.frame)),
    )


TOMORROW = compile_layout(made_up())


@given(versioned_messages(wire_version=5))
def test_a_new_format_is_a_new_table(message):
    message = message.replace(wire_version=6)
    frames = TOMORROW.encode(message, 1)
    assert (frames[-1], frames[-14], frames[-6], frames[-18]) == (
        b"\x06\x00",
        message.identity,
        message.signature,
        b"",
    )
    assert TOMORROW.decode(frames, 1) == message
    assert TOMORROW.peek(frames).identity == message.identity


def test_a_new_table_is_obeyed_in_forwarding_and_in_errors():
    router = RouterAddress("tcp://10.0.0.1:7400", b"n1")
    frames = TOMORROW.encode(Message(b"m", wire_version=6), 1)
    sent = TOMORROW.decode(TOMORROW.forward(frames, router, None, 1, b"signed"), 1)
    assert (sent.hops, sent.routing, sent.signature) == (1, (router,), b"signed")
    frames[-2] = bytes([18, 0, 1, 0, 0, 0, 0, 0])
    with pytest.raises(WireError, match=r"bad_offset: .* above n-18"):
        TOMORROW.decode(frames, 1)


def test_a_table_that_leaves_something_out_is_refused():
    without = dataclasses.replace(V5, fields=tuple(field for field in V5.fields if field.name != "domain"))
    with pytest.raises(LookupError, match="says nothing about domain"):
        compile_layout(without)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=lambda layout: f"v{layout.version}")
@pytest.mark.parametrize("name", ["peek", "decode", "encode", "forward"])
def test_compiled_functions_know_every_name_that_they_use(layout, name):
    function = getattr(compile_layout(layout), name)
    code = [function.__code__]
    code += [const for const in function.__code__.co_consts if inspect.iscode(const)]
    used = {
        instruction.argval
        for block in code
        for instruction in dis.get_instructions(block)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    assert used
    assert used <= set(function.__globals__) | set(dir(builtins))


def test_compiled_functions_can_be_read():
    text = source(V5)
    compile(text, "V5", "exec")
    assert inspect.getsource(compile_layout(V5).peek).rstrip() in text
