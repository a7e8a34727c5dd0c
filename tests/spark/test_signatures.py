"""The verdict on signatures is the key ring's own, and no key shows anywhere."""

import base64
import secrets

import pytest
from tests.spark.rows import recorded, table

from framewire.errors import BadSignature, UsageError, WireError
from framewire.security import ALGORITHMS, DomainKey, KeyRing
from framewire.spark import decode, verify
from framewire.wire import Message
from framewire.wire import decode as decode_one
from framewire.wire import encode as encode_one

KEYS = {algorithm: secrets.token_bytes(40) for algorithm in ALGORITHMS}
LONG = secrets.token_bytes(200)
FORMER = secrets.token_bytes(32)
DOMAINS = [DomainKey(algorithm, key, algorithm) for algorithm, key in KEYS.items()]
RING = KeyRing(
    [*DOMAINS, DomainKey("sha256", FORMER), DomainKey("sha256", LONG, "md5")],
    identities={
        **{algorithm: [f"{algorithm}.*"] for algorithm in ALGORITHMS},
        "sha1": ["sha1.*", "sha256.legacy.*", "sha256.one"],
        "telemetry": ["metrics.*"],
        "mixed": ["mixed.*"],
        "keyless": ["keyless.*"],
    },
    unsigned={"telemetry": [], "mixed": ["mixed.free"], "md5": ["md5.free"]},
)
FORMER_RING = KeyRing([DomainKey("sha256", FORMER)], identities={"sha256": ["*"]})
LONG_RING = KeyRing([DomainKey("sha256", LONG, "md5")], identities={"sha256": ["*"]})
OTHER_RING = KeyRing([DomainKey("sha256", secrets.token_bytes(32))], identities={"sha256": ["*"]})


def messages():
    """(frames, the state they should have)"""
    cases = []
    for algorithm in ALGORITHMS:
        made = Message(
            f"{algorithm}.order".encode(),
            version=300,
            partition=b"eu",
            body_frames=(b"a", b"", b"bc"),
            callback_receiver_identity=b"\0hub",
        )
        signed = RING.sign(made)
        cases.append((signed, "valid"))
        cases.append((signed.replace(wire_version=4), "valid"))
        cases.append((signed.replace(body=b"abc"), "valid"))  # the same bytes in one frame
        changes = {"body": b"abd", "version": 301, "partition": b"us", "callback_receiver_identity": b"\0hux"}
        cases += [(signed.replace(**{name: value}), "invalid") for name, value in changes.items()]
        cases.append((signed.replace(signature=signed.signature[:-1]), "invalid"))
        cases.append((signed.replace(signature=b""), "invalid"))
        cases.append((signed.replace(domain="", signature=b""), "invalid"))
        cases.append((signed.replace(domain="nowhere"), "unknown_domain"))
    order = Message(b"sha256.order", body_frames=(b"x",))
    cases += [(ring.sign(order), "valid") for ring in (FORMER_RING, LONG_RING)]
    cases.append((OTHER_RING.sign(order), "invalid"))
    cases += [
        (RING.sign(Message(b"sha256.legacy.order")), "valid"),
        (RING.sign(Message(b"sha256.one")), "valid"),
        (Message(b"anything"), "unsigned"),
        (Message(b"anything", signature=b"x"), "unsigned"),
        (Message(b"anything", domain="sha256"), "invalid"),
        (Message(b"metrics.cpu", domain="telemetry"), "unsigned"),
        (Message(b"metrics.cpu"), "invalid"),
        (Message(b"mixed.free", domain="mixed"), "unsigned"),
        (Message(b"mixed.other", domain="mixed", signature=b"x"), "unknown_domain"),
        (Message(b"md5.free", domain="md5"), "unsigned"),
        (Message(b"keyless.x", domain="keyless"), "unknown_domain"),
        (Message(b"keyless.x"), "invalid"),
        (Message(b"anything", domain="", version=b"1.0", wire_version=1), "unsigned"),
        (Message(b"sha256.order", version=b"1.0", wire_version=1), "invalid"),
    ]
    return [(encode_one(message, message.wire_version), state) for message, state in cases]


def accepted(frames, ring):
    try:
        ring.verify(decode_one(frames))
    except BadSignature:
        return False
    except WireError:
        return None
    return True


def states(spark, cases, ring):
    rows = verify(decode(table(spark, cases)), ring).select("row", "signature_state").collect()
    return [state for _, state in sorted(tuple(row) for row in rows)]


def test_every_state_is_what_the_ring_decides(spark):
    cases = messages()
    found = states(spark, [frames for frames, _ in cases], RING)
    assert found == [state for _, state in cases]
    for (frames, _), state in zip(cases, found, strict=True):
        assert accepted(frames, RING) == (state in ("valid", "unsigned"))


def test_recorded_messages_are_judged_as_the_ring_judges_them(spark):
    ring = KeyRing(DOMAINS, identities={"sha256": ["*"]})
    found = states(spark, recorded(), ring)
    for frames, state in zip(recorded(), found, strict=True):
        assert accepted(frames, ring) == (None if state is None else state in ("valid", "unsigned"))


def test_an_empty_ring_knows_no_domain(spark):
    cases = [encode_one(Message(b"x")), encode_one(Message(b"x", domain="d", signature=b"s")), []]
    assert states(spark, cases, KeyRing()) == ["unsigned", "unknown_domain", None]


def test_what_is_not_a_ring_or_not_decoded_is_refused(spark):
    with pytest.raises(UsageError, match="keys: dict is not a KeyRing"):
        verify(decode(table(spark, [])), {})
    with pytest.raises(UsageError, match=r"columns: the table has no identity, .*; decode\(\) adds them"):
        verify(table(spark, []), RING)


def spellings(key):
    padded = [bytes(byte ^ mask for byte in key.ljust(64, b"\0")) for mask in (0, 0x36, 0x5C)]
    for raw in padded:
        part = raw[: min(len(key), 12)]
        yield from (part.hex(), part.hex().upper(), base64.b64encode(part).decode()[:14])
        yield ", ".join(str(byte) for byte in part)
        yield ", ".join(str(byte - 256 if byte > 127 else byte) for byte in part)
        yield part.decode("latin-1")
        yield repr(part)[2:-1]


def assert_no_key_in(text):
    for key in (*KEYS.values(), FORMER):
        for spelling in spellings(key):
            assert spelling not in text


def test_no_key_shows_in_any_plan(spark, capsys):
    verified = verify(decode(table(spark, [frames for frames, _ in messages()])), RING)
    for mode in ("simple", "extended", "codegen", "cost", "formatted"):
        verified.explain(mode)
    execution = verified._jdf.queryExecution()
    text = capsys.readouterr().out + repr(verified) + execution.toString()
    text += execution.logical().toJSON() + execution.optimizedPlan().toJSON() + execution.executedPlan().toJSON()
    assert "signature_state" in text
    assert_no_key_in(text)


def test_no_python_runs_in_the_plan(spark):
    plan = verify(decode(table(spark, [])), RING)._jdf.queryExecution().executedPlan().toString()
    assert "Python" not in plan
    assert "BroadcastHashJoin" in plan


def test_a_stream_is_verified_too(spark, tmp_path):
    cases = messages()
    table(spark, [frames for frames, _ in cases]).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("row int, frames array<binary>").parquet(str(tmp_path / "in"))
    query = (
        verify(decode(stream), RING)
        .select("row", "signature_state")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    assert query.awaitTermination(100)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert [state for _, state in sorted(tuple(row) for row in rows)] == [state for _, state in cases]
