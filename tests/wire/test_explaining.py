import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framewire.wire import Distribution, Message, MessageId, RouterAddress, WireError, decode, encode
from framewire.wire.explaining import Part, explain, printable
from framewire.wire.layout import LAYOUTS, SELECTORS, Kind

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
RECORDED = [
    pytest.param([bytes.fromhex(frame) for frame in json.loads(line)["frames"]], id=f"{path.stem}-{number}")
    for path in sorted(VECTORS.glob("*.jsonl"))
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
]

FULL = Message(
    b"orders.place",
    version=2,
    partition=b"eu",
    body_frames=(b"first", b"second"),
    correlation_id=b"flow",
    ttl_ticks=123_456_789,
    distribution=Distribution.BROADCAST,
    trace_options=1,
    callback_points=(MessageId(b"orders.placed", 3, b"eu"), MessageId(b"orders.failed")),
    routing=(RouterAddress("tcp://10.0.0.1:7400", b"node-1"),),
    hops=1,
    domain="shop",
    socket_identity=b"sock",
)


def values(explanation):
    return {note.field: note.value for note in explanation.notes}


def altered(position, frame, message=FULL):
    frames = encode(message)
    frames[-position] = frame
    return frames


@pytest.mark.parametrize("frames", RECORDED)
def test_a_recorded_message_gets_a_note_for_every_frame_and_what_decode_says(frames):
    explanation = explain(frames)
    assert [note.position for note in explanation.notes] == list(range(1, len(frames) + 1))
    assert [note.size for note in explanation.notes] == [len(frame) for frame in reversed(frames)]
    if explanation.error is None:
        assert explanation.message == decode(frames)
    else:
        assert explanation.message is None
        with pytest.raises(WireError) as raised:
            decode(frames)
        assert str(explanation.error) == str(raised.value)


def test_every_frame_of_a_v5_message_is_named_from_the_end():
    fields = [note.field for note in explain(encode(FULL)).notes]
    assert fields == [
        *(field.name for field in LAYOUTS[5].fields),
        "callback_points[0].identity",
        "callback_points[0].version",
        "callback_points[0].partition",
        "callback_points[1].identity",
        "callback_points[1].version",
        "callback_points[1].partition",
        "routing[0].identity",
        "routing[0].uri",
        "body[0]",
        "body[1]",
        "delimiter",
        "socket_identity",
    ]


def test_values_are_told_as_a_person_would_say_them():
    told = values(explain(encode(FULL)))
    assert told["wire_version"] == "5"
    assert told["body_descriptor"] == "body_offset=26 body_count=2"
    assert told["ttl"] == "123456789 (12.35 s)"
    assert told["trace_and_distribution"] == "trace_options=routing distribution=broadcast"
    assert told["routing_descriptor"] == "routing_offset=24 routing_count=1 routing_step=2 hops=1"
    assert told["version"] == "2"
    assert told["domain"] == "shop"
    assert told["callback_points[1].version"] == "1"
    assert told["body[0]"] == "first"
    assert told["signature"] == ""


def test_v1_numbers_and_names_are_told_too():
    old = Message(b"A", version=b"1.0", body_frames=(b"",), ttl_ticks=50_000_000, trace_options=2, wire_version=1)
    told = values(explain(encode(old, 1)))
    assert told["ttl"] == "5000 (5 s)"
    assert told["distribution"] == "unicast"
    assert told["trace_options"] == "routing"
    assert told["callback_count"] == "0"
    assert told["version"] == "1.0"


def test_the_ttl_of_v1_is_told_in_ticks_when_asked():
    frames = encode(Message(b"A", version=b"1.0", ttl_ticks=50_000_000, wire_version=1), 1, ttl_unit="ticks")
    assert values(explain(frames, ttl_unit="ticks"))["ttl"] == "50000000 (5 s)"


@pytest.mark.parametrize(
    ("ticks", "told"),
    [
        (0, "no limit"),
        (1, "100 ns"),
        (15, "1.5 µs"),
        (25_000, "2.5 ms"),
        (599_000_000, "59.9 s"),
        (900_000_000, "1 min 30 s"),
        (36_000_000_000, "1 h"),
        (2**63 - 1, "10675199 d 2 h"),
        (-20_000, "-2 ms"),
    ],
)
def test_a_ttl_is_also_told_as_time(ticks, told):
    assert values(explain(encode(FULL.replace(ttl_ticks=ticks))))["ttl"] == f"{ticks} ({told})"


def test_unknown_trace_bits_and_lanes_that_a_format_does_not_name_are_told():
    frames = altered(5, b"\x41\x00\x01\x00\x00\x00\x07\x00")
    told = values(explain(frames))["trace_and_distribution"]
    assert told == "trace_options=routing+0x40 distribution=broadcast lane4=7"


@pytest.mark.parametrize("version", [4, 5])
def test_route_selectors_are_marked(version):
    marked = {note.field for note in explain(encode(FULL, version)).notes if note.selector}
    assert marked == {"trace_and_distribution", *SELECTORS[1:]}


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", ""),
        (b"plain", "plain"),
        ("größe".encode(), "größe"),
        (b"\xff\xfe", "0xfffe"),
        (b"\x01\x02", "0x0102"),
        (b'{\n "a": 1234567\n}', r'{\n "a": 1234567\n}'),
        (b"\x00d5d75f2f-7b76-4375", r"\x00d5d75f2f-7b76-4375"),
        (b"[bold red]not markup[/]", "[bold red]not markup[/]"),
        (b"a harmless looking text\x1b[2J", r"a harmless looking text\x1b[2J"),
        ("right to left \u202e override".encode(), r"right to left \u202e override"),
    ],
)
def test_bytes_are_told_as_text_where_they_are_text_and_as_hex_otherwise(raw, told):
    assert values(explain(encode(FULL.replace(body=raw))))["body[0]"] == told


def test_long_values_are_cut_when_asked_and_never_inside_a_character():
    frames = encode(FULL.replace(body="aé".encode() * 100))
    assert values(explain(frames, longest=8))["body[0]"] == "aéaéa…"
    assert values(explain(frames))["body[0]"] == "aé" * 100
    frames = encode(FULL.replace(body=b"\xff" * 100))
    assert values(explain(frames, longest=2))["body[0]"] == "0xffff…"


def test_the_offending_frame_is_marked_and_the_rest_still_named():
    explanation = explain(altered(7, b"\x01"))
    assert explanation.error is not None
    assert explanation.error.reason == "bad_integer"
    assert [note.field for note in explanation.notes if note.offending] == ["version"]
    told = values(explanation)
    assert told["version"] == "0x01"
    assert told["identity"] == "orders.place"
    assert told["routing[0].uri"] == "tcp://10.0.0.1:7400"


def test_a_bad_frame_inside_an_entry_is_the_one_that_is_marked():
    explanation = explain(altered(19, b"\x01"))
    assert [note.field for note in explanation.notes if note.offending] == ["callback_points[0].version"]


def test_a_section_that_is_nowhere_has_no_frames_and_the_others_keep_theirs():
    explanation = explain(altered(12, bytes.fromhex("e803 0200 0300 0000")))
    assert explanation.error is not None
    assert explanation.error.reason == "bad_offset"
    fields = [note.field for note in explanation.notes]
    assert fields[17:] == [*[None] * 6, "routing[0].identity", "routing[0].uri", "body[0]", "body[1]",
                           "delimiter", "socket_identity"]  # fmt: skip


def test_a_section_whose_descriptor_cannot_be_read_has_no_frames():
    fields = [note.field for note in explain(altered(2, b"\x01")).notes]
    assert "body[0]" not in fields
    assert "routing[0].uri" in fields


def test_the_format_is_told_even_where_too_few_frames_came():
    explanation = explain(encode(FULL)[-6:])
    assert explanation.wire_version == 5
    assert explanation.error is not None
    assert explanation.error.reason == "too_few_frames"
    assert [note.field for note in explanation.notes] == [field.name for field in LAYOUTS[5].fields[:6]]


def test_an_unknown_format_names_no_frame_but_the_one_that_was_to_tell_it():
    explanation = explain(altered(1, b"\x09\x00"))
    assert explanation.wire_version is None
    assert [note.field for note in explanation.notes if note.field] == ["wire_version"]
    assert {note.part for note in explanation.notes} == {Part.UNKNOWN}


def test_frames_of_a_newer_writer_are_marked_as_extra():
    frames = encode(FULL.replace(callback_points=(), body=b"x"))
    # One routing entry of three frames: the descriptor says so, and a frame is put on top of the entry.
    frames[-13] = bytes.fromhex("1200 0100 0300 0100")
    frames[-2] = bytes.fromhex("1500 0100 0000 0000")
    frames.insert(len(frames) - 19, b"new")
    extra = [note for note in explain(frames).notes if note.part is Part.EXTRA]
    assert [(note.field, note.position, note.value) for note in extra] == [("routing[0].extra[0]", 20, "new")]


def test_a_frame_that_two_sections_share_names_both():
    frames = encode(FULL)
    frames[-2] = bytes.fromhex("1200 0100 0000 0000")
    shared = explain(frames).notes[17]
    assert (shared.field, shared.also) == ("callback_points[0].identity", ("body[0]",))


def test_frames_above_the_message_are_an_envelope_only_if_frame_1_is_empty():
    with_envelope = explain(encode(FULL)).notes[-2:]
    assert [(note.field, note.part, note.kind) for note in with_envelope] == [
        ("delimiter", Part.ENVELOPE, Kind.EMPTY),
        ("socket_identity", Part.ENVELOPE, Kind.BYTES),
    ]
    another_on_top = explain([b"other", *encode(FULL)]).notes[-3:]
    assert [(note.field, note.part) for note in another_on_top] == [(None, Part.UNKNOWN)] * 3
    stripped = explain(encode(FULL)[2:]).notes[-1]
    assert stripped.field == "body[1]"


@pytest.mark.parametrize("frames", [[], [b""], [b"", b""], [b"\x05\x00"], [b"x", b"\x05\x00"]])
def test_next_to_nothing_is_explained_as_malformed(frames):
    explanation = explain(frames)
    assert explanation.message is None
    assert explanation.error is not None
    assert len(explanation.notes) == len(frames)


def test_a_count_beyond_all_frames_costs_nothing():
    old = encode(Message(b"A", version=b"1.0", wire_version=1), 1)
    old[-5], old[-6] = (16).to_bytes(4, "little"), (2**31 - 1).to_bytes(4, "little")
    explanation = explain(old)
    assert explanation.error is not None
    assert explanation.error.reason == "bad_offset"
    assert len(explanation.notes) == len(old)


@given(st.data())
def test_nothing_escapes_whatever_the_frames(data):
    frames = data.draw(
        st.sampled_from(
            [encode(FULL), encode(FULL, 4), encode(Message(b"A", version=b"1.0", wire_version=1), 1), []]
        )
    )
    frames = list(frames)
    for at in data.draw(st.lists(st.integers(0, max(len(frames) - 1, 0)), max_size=4)):
        frames[at : at + 1] = data.draw(
            st.lists(st.one_of(st.binary(max_size=12), st.binary(min_size=8, max_size=8)), max_size=3)
        )
    explanation = explain(frames)
    assert [note.position for note in explanation.notes] == list(range(1, len(frames) + 1))
    assert (explanation.message is None) != (explanation.error is None)
    assert all(note.value.isprintable() for note in explanation.notes)
    offending = [note.position for note in explanation.notes if note.offending]
    blamed = explanation.error.frame if explanation.error else None
    assert offending == ([] if blamed is None else [blamed])


@given(st.text(alphabet=st.characters()))
def test_printable_text_does_nothing_to_a_terminal(text):
    assert printable(text).isprintable()
