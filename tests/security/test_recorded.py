"""Signatures that the original made: a ring with the right key and algorithm takes them, and no other does."""

import pytest
from tests.wire.vectors import FOLDER, load

from framewire.security import BadSignature, DomainKey, KeyRing
from framewire.wire import decode

ALGORITHMS = {"HMACMD5": "md5", "HMACSHA1": "sha1", "HMACSHA256": "sha256", "HMACSHA512": "sha512"}
SIGNED = [
    pytest.param(case, id=f"{path.stem} {case['name']}")
    for path in sorted(FOLDER.glob("v*.jsonl"))
    for case in load(path.stem)
    if "mac" in case
]


def ring(case, algorithm):
    message = decode([bytes.fromhex(frame) if isinstance(frame, str) else frame for frame in case["frames"]])
    key = bytes.fromhex(case["mac"]["keyhex"])
    made = KeyRing(
        [DomainKey(message.domain, key, algorithm, insecure_short_keys=True)], {message.domain: [message.identity]}
    )
    return message, made


@pytest.mark.parametrize("case", SIGNED)
def test_a_recorded_signature_is_good(case):
    message, made = ring(case, ALGORITHMS[case["mac"]["algorithm"]])
    assert made.verify(message) is message
    assert made.sign(message).signature == message.signature


@pytest.mark.parametrize("case", SIGNED)
def test_an_algorithm_that_was_not_named_is_not_tried(case):
    used = ALGORITHMS[case["mac"]["algorithm"]]
    message, made = ring(case, "sha256" if used != "sha256" else "md5")
    with pytest.raises(BadSignature, match="does not match"):
        made.verify(message)


def test_old_algorithms_are_among_the_recordings():
    assert {ALGORITHMS[case.values[0]["mac"]["algorithm"]] for case in SIGNED} >= {"md5", "sha1", "sha256"}
