"""Service messages: those that a live .NET cluster wrote are read and written again to the same bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.vectors import load

from framewire.cluster import service
from framewire.wire import Message, MessageId, decode

RECORDED = [decode(case["frames"]) for case in load("live_capture_null_security")]
SERVICE = list(
    {
        (message.identity, message.body): message
        for message in RECORDED
        if message.identity.decode() in service._CLASSES
    }.values()
)


def ids(messages):
    return [f"{number}-{message.identity.decode()}" for number, message in enumerate(messages)]


def test_the_recording_has_every_kind_that_nodes_exchange():
    assert {message.message_id for message in SERVICE} >= {
        service.REGISTER_EXTERNAL_ROUTE,
        service.UNREGISTER_MESSAGE_ROUTE,
        service.UNREGISTER_NODE,
        service.REQUEST_CLUSTER_ROUTES,
        service.DISCOVER_MESSAGE_ROUTE,
        service.HEARTBEAT,
        service.PING,
        service.PONG,
    }


@pytest.mark.parametrize("message", SERVICE, ids=ids(SERVICE))
def test_a_recorded_body_is_read_and_written_to_the_same_bytes(message):
    assert service.parse(message).SerializeToString() == message.body


@pytest.mark.parametrize("message", SERVICE, ids=ids(SERVICE))
def test_a_body_made_of_the_same_fields_has_the_same_bytes(message):
    said = service.parse(message)
    fields = {descriptor.name: value for descriptor, value in said.ListFields()}
    assert service.service_message(message.message_id, **fields).body == message.body


@pytest.mark.parametrize("message", SERVICE, ids=ids(SERVICE))
def test_a_service_message_goes_out_as_the_original_does(message):
    ours = service.service_message(message.message_id).replace(body=message.body)
    assert ours == message.replace(socket_identity=ours.socket_identity)


def test_a_recorded_registration_says_what_it_should():
    said = service.parse(SERVICE[1])
    assert said.uri == "tcp://127.0.0.1:15101"
    assert len(said.node_identity) == 36
    [route] = said.routes
    assert route.receiver_identity[0] == 1
    [contract] = route.contracts
    assert (contract.identity, contract.version, contract.partition) == (b"NET.ECHO", 1, b"")
    assert contract.HasField("partition")
    assert said.health.uri == "tcp://127.0.0.1:15201"
    assert service.seconds(said.health.interval) == 1.0


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (1, "08021003"),
        (0.5, "08e8071004"),
        (0.0000001, "08021005"),
        (60, "08021002"),
        (3600, "08021001"),
        (86_400, "0802"),
        (90, "08b4011003"),
        (-1, "08011003"),
        (0, ""),
    ],
)
def test_a_time_span_is_a_number_of_its_largest_whole_unit(seconds, written):
    span = service.time_span(seconds)
    assert span.SerializeToString() == bytes.fromhex(written)
    assert service.seconds(span) == seconds


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_a_time_span_keeps_every_tick(ticks):
    span = service.time_span(ticks / 10**7)
    assert round(service.seconds(span) * 10**7) == ticks


@pytest.mark.parametrize("scale", [6, 15, -1])
def test_a_time_span_of_no_known_unit_has_no_length(scale):
    with pytest.raises(ValueError, match="no length"):
        service.seconds(service.body("TimeSpan", value=1, scale=scale))


@pytest.mark.parametrize("body", [b"\xff", b"\x0a\x7fshort", b"\x12" + b"\xff" * 12])
def test_a_body_that_is_none_is_a_value_error_naming_the_message(body):
    with pytest.raises(ValueError, match=r"KINO\.REGEXTROUTE"):
        service.parse(Message(b"KINO.REGEXTROUTE").replace(body=body))


def test_fields_of_a_newer_writer_are_passed_over():
    said = service.parse(Message(b"KINO.UNREGNODE").replace(body=b"\x0a\x01u\x12\x01n\x7a\x03new"))
    assert (said.uri, said.node_identity) == ("u", b"n")


@pytest.mark.parametrize("identity", [b"some.message", b"MessageContract ", b"\xff\xfe"])
def test_what_is_no_service_message_is_a_value_error(identity):
    with pytest.raises(ValueError, match="not a service message"):
        service.parse(Message(identity))


def test_an_unknown_field_cannot_be_written():
    with pytest.raises(ValueError, match="nonsense"):
        service.service_message(MessageId(b"KINO.PING"), nonsense=1)
