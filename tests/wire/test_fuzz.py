"""The fuzzer runs, ends, finds nothing in the codec as it is, and would find something if it were broken."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz import wire as fuzzer

from framewire.wire import decode, encode, forward, peek

SCRIPT = Path(fuzzer.__file__)


def run(*options):
    return fuzzer.main(["--seconds", "0", "--seed", "1", *options])


def test_a_short_run_breaks_no_promise(tmp_path):
    finished = subprocess.run(
        [sys.executable, SCRIPT, "--seconds", "2", "--crashes", tmp_path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert list(tmp_path.iterdir()) == []
    for outcome in ("bad_integer", "bad_offset", "unknown_version", "valid V5", "valid V1"):
        assert outcome in finished.stdout


def test_every_outcome_is_in_the_corpus():
    signatures = [fuzzer.examine(frames) for frames in fuzzer.read_corpus(fuzzer.CORPUS)]
    assert len(signatures) == len(set(signatures)), "an input that shows nothing new"
    assert {signature[2] for signature in signatures if signature[0] == "refused"} == {
        "unknown_version",
        "too_few_frames",
        "bad_integer",
        "bad_divisor",
        "bad_offset",
        "bad_distribution",
        "bad_text",
    }
    assert {signature[1] for signature in signatures if signature[0] == "accepted"} == {1, 4, 5}


def test_without_a_corpus_it_starts_from_the_vectors_and_keeps_what_is_new(tmp_path, capsys):
    corpus = tmp_path / "new" / "corpus.jsonl"
    assert run("--corpus", str(corpus), "--keep") == 0
    kept = fuzzer.read_corpus(corpus)
    assert 0 < len(kept) < len(list(fuzzer.seeds()))
    assert f"{len(kept)} inputs in {corpus}" in capsys.readouterr().out


def test_the_same_seed_tries_the_same_inputs():
    def inputs():
        rng = fuzzer.random.Random(7)
        corpus = fuzzer.read_corpus(fuzzer.CORPUS)
        return [fuzzer.mutated(rng, rng.choice(corpus), rng.choice(corpus)) for _ in range(50)]

    assert inputs() == inputs()


def decode_letting_a_key_error_out(frames):
    if len(frames) == 30:
        raise KeyError(frames[-5])
    return decode(frames)


def peek_confusing_two_frames(frames):
    selectors = peek(frames)
    return type(selectors)(
        selectors.distribution,
        selectors.identity,
        selectors.version,
        selectors.receiver_node_identity,
        selectors.partition,
        selectors.receiver_identity,
    )


def encode_losing_the_correlation(message, version=5):
    return encode(message.replace(correlation_id=b""), version)


def forward_without_a_hop(frames, router):
    message = decode(forward(frames, router))
    return encode(message.replace(hops=message.hops - 1), message.wire_version)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("decode", decode_letting_a_key_error_out),
        ("peek", peek_confusing_two_frames),
        ("encode", encode_losing_the_correlation),
        ("forward", forward_without_a_hop),
    ],
)
def test_a_broken_codec_is_found_and_the_frames_are_saved(monkeypatch, tmp_path, capsys, name, broken):
    monkeypatch.setattr(fuzzer, name, broken)
    assert run("--crashes", str(tmp_path)) == 1
    (crash,) = tmp_path.iterdir()
    assert str(crash) in capsys.readouterr().out

    saved = json.loads(crash.read_text(encoding="utf-8"))
    assert saved["seed"] == 1
    with pytest.raises((KeyError, fuzzer.BrokenPromiseError)):
        fuzzer.main(["--replay", str(crash)])
    monkeypatch.undo()
    assert fuzzer.main(["--replay", str(crash)]) == 0
