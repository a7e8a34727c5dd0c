"""Declaring messages, and what their bodies are."""

import dataclasses
from typing import NamedTuple

import msgspec
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tests.node.messages import Answer, Question
from tests.node.running import run

import framewire as fw
from framewire.node.payloads import type_of
from framewire.wire import MessageId


@fw.message("kinds.struct")
class Struct(msgspec.Struct):
    name: str
    age: int = 0


@fw.message("kinds.dataclass")
@dataclasses.dataclass
class Dataclass:
    name: str
    age: int = 0


@fw.message("kinds.json", codec="json")
class Json(msgspec.Struct):
    name: str


@fw.message("kinds.raw")
class Raw(bytes):
    pass


@fw.message("kinds.tree")
class Tree(msgspec.Struct):
    children: list["Tree"] = []


@fw.message("kinds.early")
class Early(msgspec.Struct):
    later: "Later"


class Later(msgspec.Struct):
    name: str


def person():
    """What protoc would make of a message with a name."""
    file = descriptor_pb2.FileDescriptorProto(name="tests.proto", package="tests", syntax="proto3")
    described = file.message_type.add(name="Person")
    field = descriptor_pb2.FieldDescriptorProto
    described.field.add(name="name", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tests.Person"))


Person = fw.message("kinds.protobuf")(person())
ALL = [
    Struct("Ada", 36),
    Dataclass("Ada", 36),
    Json("Ada"),
    Raw(b"\x00\xff"),
    Tree([Tree(), Tree([Tree()])]),
    Early(Later("Ada")),
    Person(name="Ada"),
]


def named(values):
    return [type(value).__name__ for value in values]


@pytest.mark.parametrize("payload", ALL, ids=named(ALL))
def test_every_kind_of_message_survives_its_bytes(payload):
    declared = type_of(type(payload))
    assert declared.decode(declared.encode(payload)) == payload


@pytest.mark.parametrize("payload", ALL, ids=named(ALL))
def test_every_kind_of_message_can_be_asked_and_answered(payload):
    async def main():
        async with fw.Node() as node:

            @node.handler(type(payload))
            async def echo(given):
                return given

            assert await node.hub.ask(payload, type(payload)) == payload

    run(main())


def test_a_message_has_identity_version_and_partition():
    @fw.message("orders.place", version=2, partition="eu")
    class Place(msgspec.Struct):
        pass

    assert type_of(Place).message_id == MessageId(b"orders.place", 2, b"eu")


def test_version_is_1_and_partition_empty_by_default():
    assert type_of(Struct).message_id == MessageId(b"kinds.struct", 1, b"")


@pytest.mark.parametrize(
    ("cls", "codec"),
    [(Struct, "msgpack"), (Dataclass, "msgpack"), (Json, "json"), (Raw, "raw"), (Person, "protobuf")],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_the_codec_follows_from_the_type_unless_it_is_named(cls, codec):
    assert type_of(cls).codec == codec


def test_json_bodies_are_json():
    assert type_of(Json).encode(Json("Ada")) == b'{"name":"Ada"}'


@pytest.mark.parametrize(
    ("cls", "body", "words"),
    [
        (Struct, msgspec.msgpack.encode({"name": "Ada", "age": "old"}), ["Struct", "field age", "int", "str"]),
        (Struct, msgspec.msgpack.encode({}), ["Struct", "name", "missing"]),
        (Dataclass, msgspec.msgpack.encode({"name": 1}), ["Dataclass", "field name", "str"]),
        (Json, b'{"name": 1}', ["Json", "field name", "str"]),
        (Json, b"{", ["Json", "truncated"]),
        (Person, b"\xff", ["Person", "protobuf"]),
    ],
    ids=["field", "missing", "dataclass", "json field", "json", "protobuf"],
)
def test_a_body_that_does_not_decode_names_type_field_and_reason(cls, body, words):
    with pytest.raises(fw.BadBody) as raised:
        type_of(cls).decode(body)
    assert [word for word in words if word not in str(raised.value)] == []
    assert raised.value.message_id == type_of(cls).message_id


def other_version_of(cls, **fields):
    """What another program may have declared under the same name."""
    made = msgspec.defstruct("Theirs", list(fields.items()))
    message_id = type_of(cls).message_id
    return fw.message(message_id.identity, message_id.version, message_id.partition)(made)


def test_a_request_that_does_not_decode_becomes_an_error_to_the_caller():
    theirs = other_version_of(Struct, name=int)

    async def main():
        async with fw.Node() as node:

            @node.handler(Struct)
            async def never(_):
                pytest.fail("a body that does not fit must not be handled")

            with pytest.raises(
                fw.BadBody, match=r"kinds.struct v1: not a Struct as msgpack: field name: .*str.*int"
            ):
                await node.hub.ask(theirs(7), Answer)
            assert node.dead_letters.counts == {fw.Reason.BAD_BODY: 1}

    run(main())


def test_a_reply_that_does_not_decode_becomes_an_error_to_the_caller():
    theirs = other_version_of(Answer, text=int)

    async def main():
        async with fw.Node() as node:

            @node.handler(Question)
            async def answer(_):
                return theirs(7)

            with pytest.raises(fw.BadBody, match="not a Answer as msgpack: field text"):
                await node.hub.ask(Question(), Answer)
            assert node.dead_letters.counts == {fw.Reason.BAD_BODY: 1}

    run(main())


def test_a_body_of_another_class_with_the_same_id_is_read_as_the_handlers_own():
    theirs = other_version_of(Struct, name=str, age=int, more=int)

    async def main():
        async with fw.Node() as node:

            @node.handler(Struct)
            async def answer(given):
                return Answer(f"{type(given).__name__} {given.name}")

            assert await node.hub.ask(theirs("Ada", 36, 1), Answer) == Answer("Struct Ada")

    run(main())


def test_a_payload_that_cannot_be_written_becomes_an_error_to_the_caller():
    theirs = other_version_of(Struct, name=object)

    async def main():
        async with fw.Node() as node:

            @node.handler(Struct)
            async def never(_):
                pytest.fail("there is no body to handle")

            with pytest.raises(fw.BadBody, match="cannot write this Theirs as msgpack"):
                await node.hub.ask(theirs(object()), Answer)
            assert node.stats().pending == []

    run(main())


def test_a_huge_message_passes():
    async def main():
        async with fw.Node() as node:

            @node.handler(Raw)
            async def measure(raw):
                return Answer(str(len(raw)))

            assert await node.hub.ask(Raw(64 * 2**20), Answer) == Answer(str(64 * 2**20))

    run(main())


class Plain:
    pass


class Pair(NamedTuple):
    left: int


@pytest.mark.parametrize(
    ("declare", "complaint"),
    [
        (lambda: fw.message("")(Plain), "identity"),
        (lambda: fw.message(5)(Plain), "identity: 5 is neither text nor bytes"),
        (lambda: fw.message("x", version=65536)(Plain), "version: 65536"),
        (lambda: fw.message("x", version=-1)(Plain), "version: -1"),
        (lambda: fw.message("x", codec="xml")(Plain), "codec: 'xml' for Plain; there are msgpack, json"),
        (lambda: fw.message("x", codec="raw")(Plain), "subclass of bytes"),
        (lambda: fw.message("x", codec="protobuf")(Plain), "Plain cannot travel as protobuf"),
        (lambda: fw.message("x")(Plain), "no struct and no dataclass"),
        (lambda: fw.message("x")(Pair), "stands for several"),
        (lambda: fw.message("x")(Struct), "already declared as kinds.struct v1"),
        (lambda: type_of(Plain), "Plain is not a message; declare it with @fw.message"),
    ],
    ids=["empty", "number", "high", "low", "codec", "raw", "protobuf", "class", "tuple", "twice", "undeclared"],
)
def test_a_wrong_declaration_is_an_error_at_once(declare, complaint):
    with pytest.raises(fw.UsageError) as raised:
        declare()
    assert complaint in str(raised.value)


def test_a_subclass_of_a_message_is_not_that_message():
    class Special(Struct):
        pass

    with pytest.raises(fw.UsageError, match="Special is not a message"):
        type_of(Special)
