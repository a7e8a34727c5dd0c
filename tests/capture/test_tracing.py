"""What is traced is recorded, whatever the settings leave out."""

import pytest
from tests.capture.recording import recording

from framewire.capture import cut_of, read
from framewire.capture.tracing import TracedFlows
from framewire.errors import ConfigError
from framewire.wire import Message, decode, encode

NO_FLOW = b"00000000-0000-0000-0000-000000000000"
STRICT = [{"sample": 0.0}, {"identities": ["orders.*"]}, {"directions": ["dead"]}]
"""Each of these leaves out all that is recorded here, unless it is traced."""


def message(number=0, *, flow=b"flow", traced=False, version=5):
    about, options = (b"1", 2) if version == 1 else (1, 1)
    said = Message(b"capture.note", about, b"", (b"%d" % number,), flow, trace_options=options if traced else 0)
    return encode(said.replace(wire_version=version), version)


def recorded(path, *messages, **options):
    """What is on disk of these, which go to another node."""
    with recording(path, **options) as capture:
        for frames in messages:
            capture.record("sent", b"peer", frames)
    if not capture.stats.captured:
        return [], capture.stats
    return [decode(frames).body for frames in read(path)["frames"].to_pylist()], capture.stats


@pytest.mark.parametrize("version", [1, 4, 5])
@pytest.mark.parametrize("options", STRICT)
def test_a_traced_message_is_recorded_whatever_is_left_out(tmp_path, options, version):
    mine = message(1, traced=True, version=version), message(2, flow=b"other", version=version)
    bodies, stats = recorded(tmp_path, *mine, **options)
    assert bodies == [b"1"]
    assert (stats.captured, stats.left_out) == (1, 1)


@pytest.mark.parametrize("version", [1, 4, 5])
@pytest.mark.parametrize("options", STRICT)
def test_all_later_messages_of_a_traced_flow_are_recorded(tmp_path, options, version):
    before = message(0, version=version)
    later = [message(number, version=version) for number in (2, 3)]
    bodies, _ = recorded(tmp_path, before, message(1, traced=True, version=version), *later, **options)
    assert bodies == [b"1", b"2", b"3"]


@pytest.mark.parametrize("limit", ["drop", 0, 2])
def test_no_body_of_a_traced_flow_is_cut(tmp_path, limit):
    flow = message(1234567, traced=True), message(7654321)
    bodies, _ = recorded(tmp_path, *flow, message(1111111, flow=b"other"), bodies=limit)
    assert bodies[:2] == [b"1234567", b"7654321"]
    assert cut_of(bodies[2]).length == 7


@pytest.mark.parametrize("flow", [b"", NO_FLOW])
def test_a_traced_message_without_a_flow_is_recorded_alone(tmp_path, flow):
    messages = message(1, flow=flow, traced=True), message(2, flow=flow)
    bodies, _ = recorded(tmp_path, *messages, identities=["orders.*"])
    assert bodies == [b"1"]


def test_what_is_no_message_is_not_traced(tmp_path):
    bodies, stats = recorded(tmp_path, [b"", b"", b"nonsense"], identities=["orders.*"])
    assert (bodies, stats.left_out) == ([], 1)


def test_a_recorder_can_be_told_to_treat_what_is_traced_like_all_else(tmp_path):
    with recording(tmp_path, traced=False, bodies="drop", identities=["capture.*"]) as capture:
        capture.record("sent", b"peer", message(1, traced=True))
        capture.record("trace", b"", message(2, traced=True))
    [frames] = read(tmp_path)["frames"].to_pylist()
    assert cut_of(decode(frames).body) is not None
    assert capture.stats.left_out == 1, "steps are not recorded either"
    with pytest.raises(ConfigError, match="traced: 'no'; must be true or false"):
        recorded(tmp_path, traced="no")


def test_traced_flows_take_bounded_memory_and_the_one_not_heard_of_for_longest_is_forgotten():
    flows = TracedFlows()
    for number in range(10_000):
        assert flows.includes(message(flow=b"%d" % number, traced=True))
    assert flows.includes(message(flow=b"0")), "heard of again"
    assert flows.includes(message(flow=b"one more", traced=True))
    assert len(flows) == 10_000
    assert flows.includes(message(flow=b"0"))
    assert not flows.includes(message(flow=b"1"))
    assert not flows.holds(message(flow=b"1"))
