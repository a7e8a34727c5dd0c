"""The messages that nodes and rendezvous servers exchange about themselves, in kino's own words.

Bodies are protobuf, by the table below; the classes are made from it, so there is nothing to generate. Optional
fields have presence, as protobuf-net writes them: an empty byte string is written, an absent one is not.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from framewire.wire import Message, MessageId

__all__ = [
    "DISCOVER_MESSAGE_ROUTE",
    "EXTERNAL_ROUTES",
    "HEARTBEAT",
    "INTERNAL_ROUTES",
    "MESSAGE_ROUTES",
    "NO_FLOW",
    "PING",
    "PONG",
    "REGISTER_EXTERNAL_ROUTE",
    "RENDEZVOUS_NOT_LEADER",
    "RENDEZVOUS_RECONFIGURED",
    "REQUEST_CLUSTER_ROUTES",
    "REQUEST_EXTERNAL_ROUTES",
    "REQUEST_INTERNAL_ROUTES",
    "REQUEST_MESSAGE_ROUTES",
    "REQUEST_NODE_ROUTES",
    "UNREGISTER_MESSAGE_ROUTE",
    "UNREGISTER_NODE",
    "UNREGISTER_UNREACHABLE_NODE",
    "body",
    "contract",
    "kind",
    "message_id",
    "parse",
    "seconds",
    "service_message",
    "time_span",
]

REGISTER_EXTERNAL_ROUTE = MessageId(b"KINO.REGEXTROUTE")
UNREGISTER_MESSAGE_ROUTE = MessageId(b"KINO.UNREGMSGROUTE")
UNREGISTER_NODE = MessageId(b"KINO.UNREGNODE")
UNREGISTER_UNREACHABLE_NODE = MessageId(b"KINO.UNREGUNREACHABLENODE")
REQUEST_CLUSTER_ROUTES = MessageId(b"KINO.REQCLUSTROUTES")
REQUEST_NODE_ROUTES = MessageId(b"KINO.REQNODEROUTES")
DISCOVER_MESSAGE_ROUTE = MessageId(b"KINO.DISCOVMSGROUTE")
HEARTBEAT = MessageId(b"KINO.HEARTBEAT")
PING = MessageId(b"KINO.PING")
PONG = MessageId(b"KINO.PONG")
RENDEZVOUS_NOT_LEADER = MessageId(b"KINO.RNDZVNOTLEADER")
RENDEZVOUS_RECONFIGURED = MessageId(b"KINO.RNDZVRECONFIG")
REQUEST_MESSAGE_ROUTES = MessageId(b"KINO.REQMSGROUTES")
MESSAGE_ROUTES = MessageId(b"KINO.MSGROUTES")
REQUEST_EXTERNAL_ROUTES = MessageId(b"KINO.REQEXTROUTES")
EXTERNAL_ROUTES = MessageId(b"KINO.EXTROUTES")
REQUEST_INTERNAL_ROUTES = MessageId(b"KINO.REQINTROUTES")
INTERNAL_ROUTES = MessageId(b"KINO.INTROUTES")

NO_FLOW = b"00000000-0000-0000-0000-000000000000"
"""The correlation id of messages that belong to no flow."""

# Each body: its fields as (name, number, type); a type in brackets is repeated, a capitalised one a body here.
_BODIES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "TimeSpan": (("value", 1, "sint64"), ("scale", 2, "int32")),
    "MessageContract": (("version", 1, "uint32"), ("identity", 2, "bytes"), ("partition", 3, "bytes")),
    "RouteRegistration": (
        ("receiver_identity", 1, "bytes"),
        ("contracts", 2, "[MessageContract]"),
        ("actors", 100, "[bytes]"),  # ours; protobuf-net skips fields that it does not know
    ),
    "Health": (("uri", 1, "string"), ("interval", 2, "TimeSpan")),
    "RendezvousNode": (("broadcast_uri", 1, "string"), ("unicast_uri", 2, "string"), ("partner_uri", 3, "string")),
    "KINO.REGEXTROUTE": (
        ("uri", 1, "string"),
        ("node_identity", 2, "bytes"),
        ("routes", 3, "[RouteRegistration]"),
        ("health", 4, "Health"),
        ("gone", 100, "[bytes]"),  # ours, too
        ("introduces", 101, "bool"),  # ours: it says who it is on each connection that it makes (senders.py)
    ),
    "KINO.UNREGMSGROUTE": (
        ("uri", 1, "string"),
        ("node_identity", 2, "bytes"),
        ("routes", 3, "[RouteRegistration]"),
        ("grace", 100, "TimeSpan"),  # ours, too
    ),
    "KINO.UNREGNODE": (("uri", 1, "string"), ("node_identity", 2, "bytes")),
    "KINO.UNREGUNREACHABLENODE": (("node_identity", 1, "bytes"),),
    "KINO.REQCLUSTROUTES": (("requestor_uri", 1, "string"), ("requestor_node_identity", 2, "bytes")),
    "KINO.REQNODEROUTES": (("target_uri", 1, "string"), ("target_node_identity", 2, "bytes")),
    "KINO.DISCOVMSGROUTE": (
        ("requestor_node_identity", 1, "bytes"),
        ("requestor_uri", 2, "string"),
        ("receiver_identity", 3, "bytes"),
        ("contract", 4, "MessageContract"),
    ),
    "KINO.HEARTBEAT": (("interval", 1, "TimeSpan"), ("socket_identity", 2, "bytes"), ("health_uri", 3, "string")),
    "KINO.PING": (),
    "KINO.PONG": (),
    "KINO.RNDZVNOTLEADER": (("leader", 1, "RendezvousNode"),),
    "KINO.RNDZVRECONFIG": (("servers", 1, "[RendezvousNode]"),),
    "NodeActors": (("node", 1, "bytes"), ("actors", 2, "[bytes]")),
    "MessageActors": (("contract", 1, "MessageContract"), ("actors", 2, "[bytes]")),
    "NodeRoutes": (
        ("node", 1, "bytes"),
        ("uri", 2, "string"),
        ("hubs", 3, "[bytes]"),
        ("messages", 4, "[MessageActors]"),
    ),
    "Hub": (("identity", 1, "bytes"), ("local", 2, "bool")),
    "KINO.REQMSGROUTES": (("contract", 1, "MessageContract"), ("kind", 2, "int32")),
    "KINO.MSGROUTES": (
        ("contract", 1, "MessageContract"),
        ("external", 2, "[NodeActors]"),
        ("internal", 3, "NodeActors"),
    ),
    "KINO.REQEXTROUTES": (),
    "KINO.EXTROUTES": (("nodes", 1, "[NodeRoutes]"),),
    "KINO.REQINTROUTES": (),
    "KINO.INTROUTES": (("hubs", 1, "[Hub]"), ("messages", 2, "[MessageActors]")),
}

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
    "int32": _Field.TYPE_INT32,
    "sint64": _Field.TYPE_SINT64,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="framewire/service.proto", package="framewire", syntax="proto2")
    for name, fields in _BODIES.items():
        described = file.message_type.add(name=_type_name(name))
        for field, number, kind in fields:
            element = kind.strip("[]")
            added = described.field.add(name=field, number=number)
            added.label = _Field.LABEL_REPEATED if kind != element else _Field.LABEL_OPTIONAL
            if element in _SCALARS:
                added.type = _SCALARS[element]
            else:
                added.type = _Field.TYPE_MESSAGE
                added.type_name = f".framewire.{_type_name(element)}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = {name: pool.FindMessageTypeByName(f"framewire.{_type_name(name)}") for name in _BODIES}
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in found.items()}


def _type_name(name: str) -> str:
    return name.replace(".", "_")


_CLASSES = _classes()


def kind(message: MessageId) -> Any:
    """The protobuf class of a service message's body."""
    return _CLASSES[message.identity.decode()]


def body(name: str | MessageId, **fields: Any) -> Any:
    """A body, or a part of one, with some of its fields set."""
    return (_CLASSES[name] if isinstance(name, str) else kind(name))(**fields)


def contract(message: MessageId) -> Any:
    """A message id as bodies name it."""
    return body("MessageContract", version=message.version, identity=message.identity, partition=message.partition)


def message_id(contract: Any) -> MessageId:
    """The message id that a body names."""
    return MessageId(contract.identity, contract.version, contract.partition)


def parse(message: Message) -> Any:
    """The body of a service message; ``ValueError`` where it is none."""
    known = _CLASSES.get(message.identity.decode(errors="replace"))
    if known is None:
        raise ValueError(f"{message.message_id} is not a service message")
    try:
        return known.FromString(message.body)
    except Exception as problem:
        raise ValueError(f"the body of {message.message_id} cannot be read: {problem}") from problem


def service_message(message_id: MessageId, **fields: Any) -> Message:
    """A service message as it goes out: unicast, in no flow."""
    return Message(
        message_id.identity,
        message_id.version,
        message_id.partition,
        (body(message_id, **fields).SerializeToString(),),
        NO_FLOW,
    )


# A TimeSpan is a number of the largest unit that divides it.
_UNITS = ((0, 86_400 * 10**7), (1, 3_600 * 10**7), (2, 60 * 10**7), (3, 10**7), (4, 10**4), (5, 1))


def time_span(seconds: float) -> Any:
    """A duration as protobuf-net writes it."""
    ticks = round(seconds * 10**7)
    scale, unit = next((scale, unit) for scale, unit in _UNITS if ticks % unit == 0)
    span = body("TimeSpan")
    if ticks:
        span.value = ticks // unit
    if scale:
        span.scale = scale
    return span


def seconds(span: Any) -> float:
    """How long a duration is that somebody wrote."""
    unit = dict(_UNITS).get(span.scale)
    if unit is None:
        raise ValueError(f"a time span of scale {span.scale} has no length")
    return float(span.value * unit) / 10**7
