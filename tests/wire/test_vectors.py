"""Frames recorded from the original encoder: the arbiter where words are unclear."""

import hmac

import pytest
from tests.wire import reference
from tests.wire.vectors import FOLDER, load

from framewire.wire import WireError, decode, encode, peek
from framewire.wire.layout import SIGNED

WIRE_VERSIONS = {"v1": 1, "v4": 4, "v5_int": 5, "v5": 5}
EDGE_FILES = {"edge_v1": 1, "edge_v4": 4, "edge_v5_int": 5, "edge_v5": 5}
ALGORITHMS = {"HMACMD5": "md5", "HMACSHA1": "sha1", "HMACSHA256": "sha256", "HMACSHA512": "sha512"}

CASES = [
    pytest.param(case, id=f"{revision}-{case['name']}") for revision in WIRE_VERSIONS for case in load(revision)
]
SIGNED_CASES = [param for param in CASES if "mac" in param.values[0]]
EDGES = [pytest.param(file, case, id=f"{file}-{case['name']}") for file in EDGE_FILES for case in load(file)]
LIVE = [
    pytest.param(case, id=f"{number:02}-{case['identity']}")
    for number, case in enumerate(load("live_capture_null_security"))
]

every_vector = pytest.mark.parametrize("case", CASES)


def unit_of(wire_version):
    """The recordings were made by the old .NET build, whose V1 counts ticks."""
    return "ticks" if wire_version == 1 else "ms"


def read(case):
    return decode(case["frames"], ttl_unit=unit_of(WIRE_VERSIONS[case["revision"]]))


def recorded(case):
    """What the original decoder read, under our names. It reads bottom-up, as docs/wire.md orders the lists.

    It never shows the socket identity, so that one is what the original encoder was given.
    """
    decoded, wire_version = case["decoded"], WIRE_VERSIONS[case["revision"]]
    hexed = bytes.fromhex
    number = hexed if wire_version == 1 else int
    return {
        "identity": hexed(decoded["identity"]),
        "version": number(decoded["version"]),
        "partition": hexed(decoded.get("partition", "")),
        "body_frames": [hexed(decoded["body"])],
        "correlation_id": hexed(decoded["correlation_id"]),
        "ttl_ticks": decoded["ttl_ticks"],
        "distribution": decoded["distribution"],
        "trace_options": decoded["trace_options"],
        "receiver_identity": hexed(decoded["receiver_identity"]),
        "receiver_node_identity": hexed(decoded.get("receiver_node_identity", "")),
        "callback_receiver_identity": hexed(decoded["callback_receiver_identity"]),
        "callback_receiver_node_identity": hexed(decoded.get("callback_receiver_node_identity", "")),
        "callback_key": decoded.get("callback_key", 0),
        "callback_points": [
            (hexed(identity), number(version), hexed(partition or ""))
            for identity, version, partition in decoded["callbacks"]
        ],
        "routing": [(uri, hexed(identity)) for uri, identity in decoded["routing"]],
        "hops": decoded["hops"],
        "domain": decoded.get("domain", ""),
        "signature": hexed(decoded.get("signature", "")),
        "socket_identity": hexed(case["fields"]["socket_identity"] or ""),
        "wire_version": wire_version,
    }


def test_every_recording_is_tested():
    files = {path.stem for path in FOLDER.glob("*.jsonl")}
    assert files == {*WIRE_VERSIONS, *EDGE_FILES, "live_capture_null_security"}
    assert len(CASES) == 35 + 47 + 47 + 47
    assert len(LIVE) == 85


@every_vector
def test_a_vector_decodes_to_what_the_original_read(case):
    assert reference.plain(read(case)) == recorded(case)


@every_vector
def test_the_lists_are_in_the_reverse_of_the_order_given_to_the_original_encoder(case):
    message = read(case)
    given = case["fields"]
    uris = [address.uri for address in message.routing]
    identities = [point.identity.hex() for point in message.callback_points]
    assert uris == [uri for uri, _ in reversed(given["routing"])]
    assert identities == [identity for identity, _, _ in reversed(given["callbacks"])]


@every_vector
def test_a_vector_encodes_to_the_same_bytes(case):
    wire_version = WIRE_VERSIONS[case["revision"]]
    expected = list(case["frames"])
    if case["revision"] == "v5_int":
        assert expected[-1] == b"\x05\x00\x00\x00"
        expected[-1] = b"\x05\x00"
    assert encode(read(case), wire_version, ttl_unit=unit_of(wire_version)) == expected


@every_vector
def test_peeking_at_a_vector_shows_what_decoding_does(case):
    message, selectors = read(case), peek(case["frames"])
    for name in selectors.__struct_fields__:
        assert getattr(selectors, name) == getattr(message, name)


@pytest.mark.parametrize("case", SIGNED_CASES)
def test_the_signature_is_the_mac_over_the_signed_fields(case):
    message = read(case)
    signed = {name: getattr(message, name) for name in SIGNED} | {"version": message.version.to_bytes(2, "little")}
    content = b"".join(signed[name] for name in SIGNED)
    mac = case["mac"]
    assert content.hex() == mac["inputhex"]
    assert hmac.digest(bytes.fromhex(mac["keyhex"]), content, ALGORITHMS[mac["algorithm"]]) == message.signature


def test_every_algorithm_has_a_signed_vector():
    algorithms = {param.values[0]["mac"]["algorithm"] for param in SIGNED_CASES}
    assert algorithms == set(ALGORITHMS)


@pytest.mark.parametrize("case", LIVE)
def test_frames_between_live_nodes_decode_and_encode_to_the_same_bytes(case):
    message = decode(case["frames"])
    assert message.identity == case["identity"].encode()
    assert reference.plain(message) == reference.decode(case["frames"])
    assert encode(message) == case["frames"]


ROUTES = [("tcp://127.0.0.1:5002", b"node-2"), ("tcp://127.0.0.1:5001", b"node-1")]

# What docs/wire.md says about every altered vector: a reason, or the fields that differ from the baseline.
VERSIONED_EDGES = {
    "baseline": {},
    "one_extra_leading_frame": {"socket_identity": None},
    "socket_identity_and_delimiter_stripped": {"socket_identity": None},
    "no_frames": "too_few_frames",
    "only_last_12_frames": "too_few_frames",
    # The body claims the empty frame of the envelope, so there is no envelope left.
    "two_body_frames_offset_plus_1_count_2": {"second_body_frame": b"", "socket_identity": None},
    "body_offset_out_of_range": "bad_offset",
    "callback_divisor_4_new_frame_on_top": {},
    "routing_divisor_3_new_frame_on_top": {},
    "callback_count_1_of_2": {"callback_points": [(b"R2", 9, b"eu")]},
    "callback_description_all_zero": {"callback_points": []},
    "callback_divisor_0": "bad_divisor",
    "callback_offset_0_count_2": "bad_offset",
    "routing_description_empty_frame": "bad_integer",
    "trace_distribution_high_bits_set": "bad_distribution",
    "callback_key_10_byte_frame": "bad_integer",
    "version_4_byte_frame": "bad_integer",
    "version_1_byte_frame": "bad_integer",
    "domain_invalid_utf8": "bad_text",
    "routing_uri_invalid": {"routing": [ROUTES[0], ("not a uri", b"node-1")]},
    "routing_uri_trailing_slash": {"routing": [ROUTES[0], ("tcp://127.0.0.1:5001/", b"node-1")]},
    "wire_version_int_9": "unknown_version",
    "wire_version_1_byte": "unknown_version",
    "wire_version_empty_frame": "unknown_version",
    "wire_version_int_5_big_endian": "unknown_version",
}
V1_EDGES = {
    "baseline": {},
    "one_extra_leading_frame": {"socket_identity": None},
    "socket_identity_and_delimiter_stripped": {"socket_identity": None},
    "no_frames": "too_few_frames",
    "only_last_12_frames": "too_few_frames",
    "callback_count_1_of_2": {"callback_points": [(b"R2", b"9.0", b"")]},
    "routing_count_1_of_2": {"routing": ROUTES[:1]},
    "callback_offset_shifted_by_one": {
        "callback_points": [(b"9.0", b"R1", b""), (b"1.0", b"node-2", b"")],
    },
    "distribution_undefined_2": "bad_distribution",
    "trace_undefined_1": {"trace_options": 1},
    "trace_undefined_3": {"trace_options": 3},
    "ttl_4_byte_frame": "bad_integer",
    "hops_empty_frame": "bad_integer",
    "delimiter_before_body_not_empty": "unknown_version",
}
EDGE_OUTCOMES = dict.fromkeys(EDGE_FILES, VERSIONED_EDGES) | {"edge_v1": V1_EDGES}


def unaltered(file):
    """The message that every edge vector of a file was made from, written out."""
    if file == "edge_v1":
        body = (
            "844c024d6c31ccd9ca38caf20a1e9eafcd2dc4a7d947676c1175df9d688b5d3c"
            "f2914d95169d5b827367257f70ace4fd4bb176de2c48733ce5953bf6512e713f"
        )
        own = {
            "version": b"3.1",
            "partition": b"",
            "receiver_node_identity": b"",
            "callback_receiver_node_identity": b"",
            "callback_key": 0,
            "callback_points": [(b"R2", b"9.0", b""), (b"R1", b"1.0", b"")],
            "trace_options": 2,
            "domain": "",
        }
    else:
        body = (
            "01ecce56c7008eec4447941191cb2621a647060168582865535e9b4105412b4a"
            "f80175164940598d7e334e6d76bd8e013fd379d746d4aea8c4690368654ce603"
        )
        own = {
            "version": 3,
            "partition": b"eu",
            "receiver_node_identity": b"nodeX",
            "callback_receiver_node_identity": b"nodeY",
            "callback_key": 42,
            "callback_points": [(b"R2", 9, b"eu"), (b"R1", 1, b"")],
            "trace_options": 1,
            "domain": "Domäin",
        }
    return own | {
        "identity": b"APP.DO.IT",
        "body_frames": [bytes.fromhex(body)],
        "correlation_id": b"corr",
        "ttl_ticks": 123456789,
        "distribution": 0,
        "receiver_identity": b"actor",
        "callback_receiver_identity": b"hub",
        "routing": ROUTES,
        "hops": 2,
        "signature": b"",
        "socket_identity": b"sock",
        "wire_version": EDGE_FILES[file],
    }


@pytest.mark.parametrize("file", EDGE_FILES)
def test_no_edge_vector_is_missing_from_the_table(file):
    assert {case["name"] for case in load(file)} == set(EDGE_OUTCOMES[file])


@pytest.mark.parametrize(("file", "case"), EDGES)
def test_an_edge_vector_gets_what_the_format_says(file, case):
    expected = EDGE_OUTCOMES[file][case["name"]]
    ttl_unit = unit_of(EDGE_FILES[file])
    if isinstance(expected, str):
        with pytest.raises(WireError) as caught:
            decode(case["frames"], ttl_unit=ttl_unit)
        assert caught.value.reason == expected
    else:
        fields = unaltered(file) | expected
        if "second_body_frame" in fields:
            fields["body_frames"] = [*fields["body_frames"], fields.pop("second_body_frame")]
        assert reference.plain(decode(case["frames"], ttl_unit=ttl_unit)) == fields
