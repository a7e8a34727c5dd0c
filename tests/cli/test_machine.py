import json

import pytest

from framewire.security import DomainKey, KeyRing
from framewire.wire import Message, MessageId, RouterAddress, encode

FULL = Message(
    b"orders.place",
    version=2,
    partition=b"\xff\x00",
    body_frames=(b"first", b"\x01\x02"),
    callback_points=(MessageId(b"orders.placed", 3, b"eu"),),
    routing=(RouterAddress("tcp://10.0.0.1:7400", b"node-1"),),
    hops=1,
    trace_options=1,
)


def line(frames, **extra):
    return json.dumps({"frames": [frame.hex() for frame in frames], **extra}).encode()


@pytest.mark.parametrize("file", ["v1", "v4", "v5", "v5_int", "edge_v1", "edge_v5", "live_capture_null_security"])
def test_the_frames_come_out_as_they_went_in_and_can_be_read_again(inspect, vectors, file):
    path = vectors / f"{file}.jsonl"
    first = inspect("--json", path)
    recorded = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    found = [json.loads(text) for text in first.stdout.splitlines()]
    assert [(item["name"], item["frames"]) for item in found] == [
        (item.get("name"), item["frames"]) for item in recorded
    ]
    again = [json.loads(text) for text in inspect("--json", "-", stdin=first.stdout.encode()).stdout.splitlines()]
    for item in (*found, *again):
        del item["place"]
    assert found == again


def test_a_message_is_told_field_by_field(inspect):
    found = json.loads(inspect("--json", stdin=line(encode(FULL), name="one")).stdout)
    assert (found["name"], found["place"], found["wire_version"]) == ("one", "<stdin>:1", 5)
    assert found["error"] is None
    assert found["signature"] is None
    message = found["message"]
    assert message["identity"] == {"hex": b"orders.place".hex(), "text": "orders.place"}
    assert message["partition"] == {"hex": "ff00", "text": None}
    assert message["body_frames"] == [{"hex": b"first".hex(), "text": "first"}, {"hex": "0102", "text": None}]
    assert message["routing"] == [
        {"uri": "tcp://10.0.0.1:7400", "identity": {"hex": b"node-1".hex(), "text": "node-1"}}
    ]
    assert message["callback_points"][0]["version"] == 3
    assert (message["distribution"], message["traced"], message["hops"]) == ("unicast", True, 1)


def test_every_frame_has_a_note(inspect):
    found = json.loads(inspect("--json", stdin=line(encode(FULL))).stdout)
    assert len(found["notes"]) == len(found["frames"])
    assert found["notes"][5] == {
        "position": 6,
        "field": "identity",
        "part": "fixed",
        "kind": "bytes",
        "value": "orders.place",
        "size": 12,
        "selector": True,
        "offending": False,
        "also": [],
    }


def test_a_malformed_message_tells_reason_field_frame_and_detail(inspect):
    frames = encode(FULL)
    frames[-7] = b"\x01"
    result = inspect("--json", stdin=line(frames))
    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert found["message"] is None
    assert found["error"] == {
        "reason": "bad_integer",
        "field": "version",
        "frame": 7,
        "detail": "1 bytes where 2 are needed",
    }
    assert [note["position"] for note in found["notes"] if note["offending"]] == [7]


def test_the_state_of_a_signature_is_told(inspect, tmp_path):
    key = bytes(range(32))
    path = tmp_path / "keys.toml"
    path.write_text(f'[payments]\nkey = "hex:{key.hex()}"\nidentities = ["pay.*"]\n')
    path.chmod(0o600)
    ring = KeyRing([DomainKey("payments", key)], identities={"payments": ["pay.*"]})
    good = ring.sign(Message(b"pay.order"))
    messages = [good, good.replace(body=b"forged"), FULL]
    stdin = b"\n".join(line(encode(message)) for message in messages)
    result = inspect("--json", "--verify", path, stdin=stdin)
    assert [json.loads(text)["signature"] for text in result.stdout.splitlines()] == [
        {"state": "verified", "detail": ""},
        {"state": "bad", "detail": "the signature does not match"},
        {"state": "unsigned", "detail": ""},
    ]
    assert result.exit_code == 1
    assert result.stderr == ""


def test_notes_are_cut_where_frames_are_long_unless_asked_for_in_full(inspect):
    stdin = line(encode(FULL.replace(body=b"x" * 1000)))
    short, whole = (json.loads(inspect("--json", *more, stdin=stdin).stdout) for more in ([], ["--full"]))
    notes = [next(note for note in found["notes"] if note["field"] == "body[0]") for found in (short, whole)]
    assert [len(note["value"]) for note in notes] == [257, 1000]
    assert short["message"] == whole["message"]
