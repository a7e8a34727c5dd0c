"""Messages that a person writes."""

from dataclasses import dataclass
from types import ModuleType

import msgspec
import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import framewire as fw
from framewire.operation.sending import Types, message_id, plain


@fw.message("t.struct", version=2)
class Struct(msgspec.Struct):
    number: int
    raw: bytes = b""


@fw.message("t.struct", version=3)
class Newer(msgspec.Struct):
    number: int


@fw.message("t.eu", partition="eu")
@dataclass
class Data:
    text: str


@fw.message("t.raw")
class Raw(bytes):
    pass


def generated():
    """A class as protoc makes them; one of the library's own is not ours to declare."""
    file = descriptor_pb2.FileDescriptorProto(name="framewire_test_sending.proto", package="framewire.test.sending")
    file.message_type.add(name="Proto").field.add(name="value", number=1, type=9, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("framewire.test.sending.Proto"))


Proto = fw.message("t.proto")(generated())


@fw.message("t.json", codec="json")
class Json(msgspec.Struct):
    number: int


@fw.message("t.several")
class Frames(fw.Buffers):
    pass


@pytest.fixture
def types():
    module = ModuleType("messages_of_a_test")
    for each in (Struct, Newer, Data, Raw, Proto, Json, Frames, fw.Actor):
        setattr(module, each.__name__, each)
    module.number = 7
    module.Alias = Raw
    return Types(module)


@pytest.mark.parametrize(
    ("name", "found", "versioned"),
    [
        ("orders.place", fw.MessageId(b"orders.place"), False),
        ("orders.place@2", fw.MessageId(b"orders.place", 2), True),
        ("orders.place v2 [eu]", fw.MessageId(b"orders.place", 2, b"eu"), True),
        ("orders.place@2[eu west]", fw.MessageId(b"orders.place", 2, b"eu west"), True),
        ("orders.place [eu]", fw.MessageId(b"orders.place", 1, b"eu"), False),
        ("a b v65535", fw.MessageId(b"a b", 65535), True),
    ],
)
def test_a_message_is_named_as_tables_show_it(name, found, versioned):
    assert message_id(name) == (found, versioned)
    assert message_id(str(found))[0] == found


@pytest.mark.parametrize("name", ["", "a@65536", "a@99999"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(fw.UsageError, match="message: "):
        message_id(name)


def test_a_version_is_needed_only_where_there_are_several(types):
    assert types.named("t.raw").python_type is Raw
    assert types.named("t.eu").python_type is Data
    assert types.named("t.struct@3").python_type is Newer
    with pytest.raises(fw.UsageError, match=r"'t\.struct' may be t\.struct v2, t\.struct v3: say which"):
        types.named("t.struct")
    with pytest.raises(
        fw.UsageError, match=r"has no 't\.other'; it has t\.eu v1 \[eu\], t\.json v1, t\.proto v1, t\.raw v1"
    ):
        types.named("t.other")


@pytest.mark.parametrize(
    ("name", "text", "payload"),
    [
        ("t.struct@2", '{"number": 1, "raw": "aGk="}', Struct(1, b"hi")),
        ("t.eu", '{"text": "ü"}', Data("ü")),
        ("t.raw", '"text"', Raw(b"text")),
        ("t.raw", '{"a":1}', Raw(b'{"a":1}')),
        ("t.json", '{"number": 1}', Json(1)),
        ("t.several", '["text", {"a": 1}]', Frames([b"text", b'{"a": 1}'])),
        ("t.several", '["only"]', Frames([b"only"])),
    ],
)
def test_json_becomes_the_type_that_the_module_has_and_json_again(types, name, text, payload):
    made = types.payload(types.named(name), text)
    assert made == payload
    assert type(made) is type(payload)
    again = plain(made)
    assert types.payload(types.named(name), msgspec.json.encode(again).decode()) == payload


def test_an_answer_with_an_array_is_shown_as_python_shows_it():
    @fw.message("t.array", codec="msgpack+buffers")
    class Array(msgspec.Struct):
        values: np.ndarray

    assert plain(Array(np.arange(3))) == {"values": "array([0, 1, 2])"}


def test_protobuf_is_written_and_read_in_its_own_json(types):
    made = types.payload(types.named("t.proto"), '{"value": "tea"}')
    assert isinstance(made, Proto)
    assert made.value == "tea"
    assert plain(made) == {"value": "tea"}
    with pytest.raises(fw.UsageError, match="payload: not a Proto: "):
        types.payload(types.named("t.proto"), '{"nothing": 1}')


def test_without_a_module_the_json_is_the_body():
    declared = Types().named("any.thing@3")
    assert declared.message_id == fw.MessageId(b"any.thing", 3)
    assert declared.encode(Types().payload(declared, '{"a": 1}')) == b'{"a": 1}'
    with pytest.raises(fw.UsageError, match="payload: not JSON"):
        Types().payload(declared, "{")


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"a": [1]}', {"a": [1]}),
        (b"7", 7),
        (msgspec.msgpack.encode({"a": b"x"}), {"a": "eA=="}),
        (b"plain words", "plain words"),
        (b"\xff\x00", "0xff00"),
        (b"", ""),
    ],
)
def test_what_comes_back_without_a_type_is_shown_as_well_as_can_be(body, shown):
    answer = Types().named("any.thing").python_type(body)
    assert plain(answer) == shown
