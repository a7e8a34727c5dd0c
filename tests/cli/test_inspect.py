import json

import pytest
from tests.cli.zmtp_bytes import READY, greeting, on_the_wire

from framewire.security import KeyRing
from framewire.wire import Message, MessageId, encode

HELLO = Message(b"greet.hello", body_frames=(b"Ada",), correlation_id=b"flow-1", hops=1)
BROKEN = [*encode(HELLO)[:-7], b"\x01", *encode(HELLO)[-6:]]
KEYS = f"""
[payments]
key = "hex:{"ab" * 32}"
identities = ["pay.*"]
"""


def recorded(*messages, **extra):
    """JSON lines of messages, or of frames where they are not one."""
    lines = []
    for message in messages:
        frames = encode(message) if isinstance(message, Message) else message
        lines.append(json.dumps({"frames": [frame.hex() for frame in frames], **extra}))
    return "\n".join(lines).encode()


def row(result, position):
    """The cells of the table's row for frame n-position."""
    return next(line for line in result.stdout.splitlines() if f"n-{position} " in line).split()


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys.toml"
    path.write_text(KEYS)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("file", "version"), [("v1", "V1"), ("v4", "V4"), ("v5", "V5"), ("v5_int", "V5"), ("edge_v5", "V5")]
)
def test_every_format_is_shown(inspect, vectors, file, version):
    result = inspect(vectors / f"{file}.jsonl", "--limit", 1)
    assert result.exit_code == 0
    assert version in result.stdout.splitlines()[1]
    assert "identity" in result.stdout


def test_a_message_is_shown_with_a_heading_and_its_frames_from_the_end(inspect):
    result = inspect(stdin=recorded(HELLO, name="first"))
    assert result.exit_code == 0
    title, heading, *_ = result.stdout.splitlines()
    assert title.startswith("first ─")
    assert heading.strip() == "V5  greet.hello v1  unicast · 1 hop · unsigned · 20 frames, 72 bytes"
    assert row(result, 1) == ["n-1", "wire_version", "2", "5"]
    assert row(result, 4) == ["n-4", "correlation_id", "6", "flow-1"]
    assert row(result, 6) == ["→", "n-6", "identity", "11", "greet.hello"]
    assert row(result, 14) == ["n-14", "signature", "0", "empty"]
    assert row(result, 18) == ["n-18", "body[0]", "3", "Ada"]


def test_the_frame_at_fault_is_marked_and_the_reason_is_below(inspect):
    result = inspect(stdin=recorded(BROKEN))
    assert result.exit_code == 1
    assert row(result, 7) == ["✗→", "n-7", "version", "1", "0x01"]
    assert result.stdout.rstrip().endswith("✗ bad_integer: version (frame n-7): 1 bytes where 2 are needed")


def test_the_frame_at_fault_is_red_on_a_terminal(inspect, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    lines = inspect(stdin=recorded(BROKEN)).stdout.splitlines()
    red = [line for line in lines if "\x1b[1;31m" in line]
    assert len(red) == 3
    assert "malformed" in red[0]
    assert "version" in red[1]
    assert "bad_integer" in red[2]


def test_no_frames_at_all_are_a_malformed_message(inspect):
    result = inspect(stdin=b"[]")
    assert result.exit_code == 1
    assert "✗ too_few_frames: frames: 0 where at least 15 are needed" in result.stdout


def test_a_ttl_that_overflows_as_milliseconds_points_to_ticks(inspect, vectors):
    file = vectors / "v1.jsonl"
    result = inspect(file, "--only", "random_09")
    assert result.exit_code == 1
    assert "try --ttl-unit ticks" in result.stdout
    assert inspect(file, "--only", "random_09", "--ttl-unit", "ticks").exit_code == 0


@pytest.mark.parametrize(
    "stdin",
    [
        recorded(HELLO),
        "\n".join(frame.hex() or "-" for frame in encode(HELLO)).encode(),
        greeting() + READY + on_the_wire(encode(HELLO)),
    ],
    ids=["jsonl", "hex", "zmtp"],
)
@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_every_kind_of_input_is_read_from_the_standard_input(inspect, stdin, arguments):
    result = inspect(*arguments, stdin=stdin)
    assert result.exit_code == 0
    assert row(result, 18) == ["n-18", "body[0]", "3", "Ada"]


def test_an_input_can_be_named(inspect):
    result = inspect("--input", "zmtp", stdin=recorded(HELLO))
    assert result.exit_code == 1
    assert result.stderr == "Error: <stdin>: byte 0: 0x7b cannot start a ZMTP frame\n0 messages: 1 unreadable\n"


def test_what_cannot_be_read_is_told_and_the_rest_shown(inspect, tmp_path):
    stdin = recorded(HELLO) + b"\nnonsense\n" + recorded(HELLO)
    result = inspect(tmp_path / "none", "-", "--brief", stdin=stdin)
    assert result.exit_code == 1
    assert result.stdout.count("greet.hello v1") == 2
    missing, bad, tally = result.stderr.splitlines()
    assert missing == f"Error: {tmp_path / 'none'}: No such file or directory"
    assert bad.startswith("Error: <stdin>:2: not JSON: ")
    assert tally == "2 messages: 2 unreadable"


def test_brief_is_one_line_a_message(inspect, vectors):
    file = vectors / "edge_v5.jsonl"
    result = inspect(file, "--brief", columns=60)
    lines = result.stdout.splitlines()
    assert len(lines) == len(file.read_text(encoding="utf-8").splitlines())
    assert lines[0].split()[:4] == ["baseline", "V5", "APP.DO.IT", "v3"]
    assert "bad_divisor: callback_descriptor (frame n-12)" in result.stdout
    assert result.stderr == "25 messages: 15 malformed\n"


def test_the_limit_stops_before_what_comes_after(inspect):
    result = inspect("--limit", 2, "--brief", stdin=recorded(HELLO, HELLO, BROKEN))
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2


def test_only_shows_what_matches_by_name_or_identity(inspect):
    stdin = recorded(HELLO, name="one") + b"\n" + recorded(HELLO.replace(identity=b"pay.order"), name="two")
    for pattern, shown in [("one", ["one"]), ("pay.*", ["two"]), ("*", ["one", "two"]), ("x", [])]:
        lines = inspect("--only", pattern, "--brief", stdin=stdin).stdout.splitlines()
        assert [line.split()[0] for line in lines] == shown


@pytest.mark.parametrize("columns", [60, 100, 140])
def test_tables_keep_to_the_width_of_the_terminal(inspect, vectors, columns):
    for file in ("v5.jsonl", "edge_v5.jsonl", "live_capture_null_security.jsonl"):
        lines = inspect(vectors / file, columns=columns).stdout.splitlines()
        assert max(map(len, lines)) <= columns


def test_a_narrow_terminal_still_shows_whole_names_and_numbers(inspect, vectors):
    shown = inspect(vectors / "edge_v5.jsonl", "--limit", 1, columns=60).stdout
    for piece in (
        "callback_receiver_",
        "node_identity",
        ".partition",
        "routing_count=2",
        "tcp://127.0.0.1:5002",
    ):
        assert piece in shown


def test_long_values_are_cut_unless_shown_in_full(inspect):
    stdin = recorded(HELLO.replace(body=b"long " * 1000))
    assert row(inspect(stdin=stdin), 18)[-1].endswith("…")
    shown = inspect("--full", stdin=stdin).stdout
    assert shown.count("long") == 1000


def test_a_message_of_very_many_frames_is_cut_to_its_lowest_and_the_one_at_fault(inspect):
    frames = encode(HELLO.replace(callback_points=(MessageId(b"x"),) * 500))
    frames[-1501] = b"bad"  # the version of callback point 494: 18 + 3 * 494 + 1
    result = inspect(stdin=recorded(frames))
    assert row(result, 1501) == ["✗", "n-1501", "callback_points[494].version", "3", "bad"]
    assert "… 1,119 more frames; --full shows them" in result.stdout
    assert len(inspect("--full", stdin=recorded(frames)).stdout.splitlines()) > 1500


HOSTILE = [
    b"\x1b[2J\x1b]0;owned\x07",
    b"a text long enough to be shown as one \x1b[31m",
    b"\r\n\x08\x08 overwritten text, long enough to be text",
    "\u202e right to left, long enough to be text".encode(),
    "\x9b31m C1 control, long enough to be text".encode(),
    b"[bold red]markup[/bold red] [/] [link=http://x]y[/link] :smile:",
    bytes(range(256)),
]


@pytest.mark.parametrize("content", HOSTILE)
@pytest.mark.parametrize("options", [[], ["--full"], ["--brief"], ["--json"]])
def test_hostile_content_is_shown_and_never_obeyed(inspect, content, options):
    text = content.decode("latin-1")
    message = HELLO.replace(identity=content, partition=content, body=content, domain=text)
    result = inspect(*options, stdin=recorded(message, name=text))
    assert result.exit_code == 0
    assert all(character.isprintable() or character == "\n" for character in result.stdout)


def test_markup_is_shown_as_it_is(inspect):
    result = inspect(stdin=recorded(HELLO.replace(body=b"[bold]x[/] :smile:"), name="[red]n[/red]"))
    assert "[bold]x[/] :smile:" in result.stdout
    assert result.stdout.startswith("[red]n[/red] ─")


def test_hostile_input_that_cannot_be_read_is_quoted_harmlessly(inspect):
    result = inspect("\x1b[2Jnone", "-", stdin=b'["\\u001b[2J"]\n')
    assert r"\x1b[2Jnone: No such file" in result.stderr
    assert "\x1b" not in result.stderr


def test_a_good_signature_is_verified(inspect, keys):
    message = KeyRing.from_file(keys).sign(Message(b"pay.order"))
    result = inspect("--verify", keys, stdin=recorded(message))
    assert result.exit_code == 0
    assert "verified in payments" in result.stdout


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"body": b"forged"}, "the signature does not match"),
        ({"signature": b""}, "the message is not signed"),
    ],
)
def test_a_bad_signature_is_told_with_what_is_wrong(inspect, keys, change, told):
    message = KeyRing.from_file(keys).sign(Message(b"pay.order")).replace(**change)
    for options in ([], ["--brief"]):
        result = inspect("--verify", keys, *options, stdin=recorded(message, HELLO))
        assert result.exit_code == 1
        assert f"BAD SIGNATURE: {told}" in result.stdout
        assert result.stderr == "2 messages: 1 badly signed\n"


def test_a_message_of_an_unsigned_domain_is_told_as_such(inspect, keys):
    result = inspect("--verify", keys, stdin=recorded(HELLO))
    assert result.exit_code == 0
    assert "unsigned domain" in result.stdout


def test_a_malformed_message_has_no_signature_to_verify(inspect, keys):
    result = inspect("--verify", keys, "--json", stdin=recorded(BROKEN))
    assert result.exit_code == 1
    assert json.loads(result.stdout)["signature"] is None


def test_a_signed_message_says_so_without_keys(inspect):
    result = inspect(stdin=recorded(HELLO.replace(domain="payments", signature=b"mac")))
    assert "signed in payments" in result.stdout


def test_keys_that_are_missing_or_wrong_are_told_at_once(inspect, keys):
    missing = inspect("--verify", keys.with_name("none.toml"), stdin=recorded(HELLO))
    assert missing.exit_code == 2
    assert missing.stderr.startswith("Error: ")
    assert "none.toml" in missing.stderr
    keys.chmod(0o644)
    exposed = inspect("--verify", keys, stdin=recorded(HELLO))
    assert exposed.exit_code == 2
    assert "chmod 600" in exposed.stderr
    assert missing.stdout == exposed.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [["--limit", "0"], ["--input", "xml"], ["--json", "--brief"], ["--ttl-unit", "s"], ["--nope"]],
)
def test_a_wrong_command_line_is_a_usage_error(inspect, arguments):
    result = inspect(*arguments, stdin=recorded(HELLO))
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage: ")


def test_an_empty_input_is_no_error(inspect):
    result = inspect(stdin=b"")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "0 messages\n")
