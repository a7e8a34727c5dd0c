"""Throws broken frames at the codec and checks what must hold for any frames at all.

    python fuzz/wire.py --seconds 60            fuzz for a minute
    python fuzz/wire.py --seconds 600 --keep    and add inputs with new outcomes to the corpus
    python fuzz/wire.py --replay FILE           look at a saved crash again

An input is kept for further mutation when its outcome has not been seen before (the format, the reason, the
field and the kind of frame; for a message, its shape), so the search moves towards what is rare. The first
broken promise is saved under ``fuzz/crashes`` and ends the run with exit code 1.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import random
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from framewire.errors import UsageError
from framewire.wire import (
    Message,
    MessageId,
    RouterAddress,
    WireError,
    decode,
    encode,
    forward,
    layout_of,
    peek,
    upgrade,
)

HERE = Path(__file__).parent
ROOT = HERE.parent
CORPUS = HERE / "corpus" / "wire.jsonl"
CRASHES = HERE / "crashes"

Frames = list[bytes]
Signature = tuple[object, ...]

MOST_FRAMES = 120
MOST_BYTES = 400
ROUTER = RouterAddress("tcp://10.0.0.9:7400", b"router")


def _load_reference() -> ModuleType:
    path = ROOT / "tests" / "wire" / "reference.py"
    spec = importlib.util.spec_from_file_location("framewire_wire_reference", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = _load_reference()


class BrokenPromiseError(Exception):
    """Something that must hold for all frames does not hold for these."""


def promise(held: bool, text: str, *values: object) -> None:
    """Raise where a promise is not held, with the values that show it."""
    if not held:
        raise BrokenPromiseError("\n".join([text, *map(repr, values)]))


# What must hold. Anything but WireError or UsageError that escapes from the codec is a crash by itself.


def examine(frames: Frames) -> Signature:
    """Check every promise on some frames, and tell what kind of frames they are."""
    before = list(frames)
    try:
        message = decode(frames)
    except WireError as error:
        promise(error.reason == reference.decode(frames), "decode and reference differ", error)
        signature = _refused(frames, error)
    else:
        promise(reference.plain(message) == reference.decode(frames), "decode and reference differ", message)
        signature = _accepted(frames, message)
    promise(frames == before, "the frames were changed")
    return signature


def _refused(frames: Frames, error: WireError) -> Signature:
    promise(bool(str(error)), "an error without words")
    try:
        sent = forward(frames, ROUTER)
    except WireError as same:
        forwarded = same.reason
        promise(same.reason == error.reason, "decode and forward differ in the reason", error, same)
    except UsageError as impossible:
        forwarded = "impossible"
        promise(False, "forward blames the caller for malformed frames", impossible)
    else:
        forwarded = "sent"
        promise(_reason(sent) == error.reason, "forwarding changed what is wrong", error)
    try:
        version = layout_of(frames).version
    except WireError:
        version = 0
    frame = error.frame if error.frame is None or error.frame <= 17 else "entry"
    return "refused", version, error.reason, error.field, frame, forwarded, _peeked(frames)


def _accepted(frames: Frames, message: Message) -> Signature:
    selectors = peek(frames)
    for name in selectors.__struct_fields__:
        same = getattr(selectors, name) == getattr(message, name)
        promise(same, "decode and peek differ", name, message, selectors)
    written = encode(message, message.wire_version)
    promise(decode(written) == message, "a message does not survive being written", message, written)
    _check_forward(frames, message)
    _check_other_formats(message)
    _check_spoiled(message, random.Random(b"|".join(frames)))
    return (
        "accepted",
        message.wire_version,
        min(len(message.callback_points), 2),
        min(len(message.routing), 2),
        min(len(message.body_frames), 2),
        message.socket_identity is None,
        written == frames,
        _peeked(frames),
    )


def _peeked(frames: Frames) -> str:
    expected = reference.peek(frames)
    try:
        selectors = peek(frames)
    except WireError as error:
        promise(error.reason == expected, "peek and reference differ", error, expected)
        return error.reason
    promise(reference.plain_selectors(selectors) == expected, "peek and reference differ", selectors, expected)
    return "selectors"


def _check_forward(frames: Frames, message: Message) -> None:
    most = 2**31 - 1 if message.wire_version == 1 else 0xFFFF
    try:
        sent = forward(frames, ROUTER)
    except UsageError as error:
        promise(message.hops == most and str(error).startswith("hops: "), "forward refuses", error, message)
        return
    expected = message.replace(hops=message.hops + 1, routing=(*message.routing, ROUTER))
    promise(decode(sent) == expected, "forward is not decode, hop and entry", message, sent)


def _check_other_formats(message: Message) -> None:
    for version in (1, 4, 5):
        frames = _written(message, version)
        if frames is not None:
            read = decode(frames)
            promise(read.body == message.body and read.wire_version == version, "another format", read)
    try:
        upgraded = upgrade(message)
    except UsageError:
        promise(message.wire_version == 1, "only V1 may fail to upgrade", message)
        return
    promise(decode(encode(upgraded)) == upgraded, "an upgraded message is not a V5 one", message, upgraded)


def _check_spoiled(message: Message, rng: random.Random) -> None:
    """A message with one hostile value is refused by name, or written so that it reads back."""
    name = rng.choice(list(SPOILERS))
    spoiled = message.replace(**{name: rng.choice(SPOILERS[name])})
    try:
        frames = encode(spoiled, message.wire_version)
    except UsageError as error:
        promise(str(error).split(":")[0] in SPOILERS, "no field of a message is named", error)
        return
    read = decode(frames)
    if message.wire_version == 1 and isinstance(spoiled.version, int):
        spoiled = spoiled.replace(version=b"%d.0" % spoiled.version)
    promise(read == spoiled, "a message does not survive being written", spoiled, read)


def _written(message: Message, version: int) -> Frames | None:
    try:
        return encode(message, version)
    except UsageError:
        return None


def _reason(frames: Frames) -> str | None:
    try:
        decode(frames)
    except WireError as error:
        return error.reason
    return None


_NUMBERS = (0, 1, -1, 0xFFFF, 0x10000, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, -(2**63), 1.5, "1")
_BYTES = (b"", b"\xff\xfe", b"x" * 40, "text", 5)
SPOILERS: dict[str, Sequence[Any]] = {
    "identity": _BYTES,
    "version": (*_NUMBERS, b"1.0", b"", None),
    "body_frames": ((b"",), (b"a", b""), (b"a", "b"), (b"", 5), None, 7),
    "correlation_id": _BYTES,
    "ttl_ticks": (*_NUMBERS, 10_000, 10_001),
    "distribution": (0, 1, 2, -1, "1"),
    "trace_options": _NUMBERS,
    "receiver_identity": _BYTES,
    "callback_receiver_identity": _BYTES,
    "callback_points": ((), (MessageId(b"a", "1"),), (MessageId(5),), (b"a",), None, 7),
    "routing": (
        (),
        (RouterAddress("\ud800", b""),),
        (RouterAddress("", "x"),),
        (RouterAddress(b"", b""),),
        7,
    ),
    "hops": _NUMBERS,
    "domain": ("", "\ud800", b"x", 7),
    "signature": (b"", b"x", "x", 7),
    "partition": (b"", b"x", "x", 7),
    "callback_key": _NUMBERS,
    "socket_identity": (None, b"", b"x", "x", 7),
    "wire_version": (0, 2, 6, "5"),
}
"""Values for every field that the codec must write faithfully or refuse."""


# Accidents. Each changes frames in place; there is at least one frame, and ``at`` is the index of one.


def _drop(_rng: random.Random, frames: Frames, at: int) -> None:
    del frames[at]


def _duplicate(_rng: random.Random, frames: Frames, at: int) -> None:
    frames.insert(at, frames[at])


def _truncate(rng: random.Random, frames: Frames, at: int) -> None:
    frames[at] = frames[at][: rng.randrange(len(frames[at]) + 1)]


def _extend(rng: random.Random, frames: Frames, at: int) -> None:
    frames[at] += rng.randbytes(rng.randrange(1, 4))


def _flip(rng: random.Random, frames: Frames, at: int) -> None:
    if frames[at]:
        changed = bytearray(frames[at])
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        frames[at] = bytes(changed)


def _swap(rng: random.Random, frames: Frames, at: int) -> None:
    other = rng.randrange(len(frames))
    frames[at], frames[other] = frames[other], frames[at]


def _shuffle(rng: random.Random, frames: Frames, at: int) -> None:
    part = frames[at:]
    rng.shuffle(part)
    frames[at:] = part


def _insert(rng: random.Random, frames: Frames, at: int) -> None:
    frames.insert(at, rng.choice((b"", b"", b"\x01\x00", b"new")))


def _behead(_rng: random.Random, frames: Frames, at: int) -> None:
    del frames[:at]


def _envelope(rng: random.Random, frames: Frames, _at: int) -> None:
    frames[:0] = rng.choice(([b"socket", b""], [b""], [b"", b""], [b"top"]))


def _overwrite(rng: random.Random, frames: Frames, at: int) -> None:
    size = rng.choice((0, 1, 2, 2, 4, 4, 8, 8, 9))
    frames[at] = rng.choice((bytes(size), b"\xff" * size, rng.randbytes(size)))


def _number(rng: random.Random, frames: Frames, at: int) -> None:
    """Keep the size of a frame, and make its number one that some check could get wrong."""
    size = len(frames[at])
    if size in (2, 4, 8):
        near = rng.choice((0, 1, 2, 3, 15, 16, 17, 18, 19, len(frames) + rng.randrange(-3, 4), 2 ** (8 * size - 1)))
        frames[at] = (rng.choice((near, -near)) % 2 ** (8 * size)).to_bytes(size, "little")


def _lane(rng: random.Random, frames: Frames, _at: int) -> None:
    """Set one lane of a descriptor to something around the edges of the message."""
    place = rng.choice((2, 5, 12, 13))
    if len(frames) >= place and len(frames[-place]) == 8:
        lanes = list(struct.unpack("<4H", frames[-place]))
        top = len(frames) + rng.randrange(-3, 4)
        lanes[rng.randrange(4)] = rng.choice((0, 1, 2, 3, 4, 17, 18, 19, 24, top, 0x7FFF, 0xFFFF)) & 0xFFFF
        frames[-place] = struct.pack("<4H", *lanes)


def _v1_number(rng: random.Random, frames: Frames, _at: int) -> None:
    place = rng.choice((5, 6, 8, 13, 14, 15))
    if len(frames) >= place:
        frames[-place] = struct.pack("<i", rng.choice((-1, 0, 1, 2, 15, 16, 17, len(frames) - 1, 2**31 - 1)))


def _trailer(rng: random.Random, frames: Frames, _at: int) -> None:
    frames[-1] = rng.choice((b"\x05\x00", b"\x05\x00\x00\x00", b"\x04\x00", b"\x04\x00\x00\x00", b"\x06\x00", b""))


def _not_text(rng: random.Random, frames: Frames, at: int) -> None:
    frames[at] = rng.choice((b"\xff\xfe", b"\xed\xa0\x80", b"\xc3"))


ACCIDENTS: Sequence[Callable[[random.Random, Frames, int], None]] = (
    _drop,
    _duplicate,
    _truncate,
    _extend,
    _flip,
    _swap,
    _shuffle,
    _insert,
    _behead,
    _envelope,
    _overwrite,
    _number,
    _number,
    _lane,
    _lane,
    _v1_number,
    _trailer,
    _not_text,
)


def mutated(rng: random.Random, frames: Frames, other: Frames) -> Frames:
    """The frames after one to five accidents, now and then crossed with others first."""
    out = list(frames)
    if rng.random() < 0.05:
        kept = rng.randrange(1, 20)
        out = other[:-kept] + out[-kept:]
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        if out:
            rng.choice(ACCIDENTS)(rng, out, rng.randrange(len(out)))
    return [frame[:MOST_BYTES] for frame in out[-MOST_FRAMES:]]


# The corpus and the run.


def seeds() -> Iterator[Frames]:
    """The recorded frames of the original encoder, but for the very large ones."""
    for path in sorted((ROOT / "tests" / "data" / "vectors").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            frames = _from_hex(json.loads(line)["frames"])
            if len(frames) <= MOST_FRAMES and all(len(frame) <= MOST_BYTES for frame in frames):
                yield frames


def read_corpus(path: Path) -> list[Frames]:
    """The inputs that were kept by earlier runs."""
    if not path.exists():
        return []
    return [_from_hex(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def write_corpus(path: Path, inputs: Sequence[Frames]) -> None:
    """One input a line, as a list of frames in hex."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps([frame.hex() for frame in frames], separators=(",", ":")) for frames in inputs]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def save_crash(folder: Path, frames: Frames, problem: str, seed: int) -> Path:
    """Keep what broke a promise, with all that is needed to see it again."""
    digest = hashlib.sha256(b"|".join(frames)).hexdigest()[:12]
    path = folder / f"wire-{digest}.json"
    folder.mkdir(parents=True, exist_ok=True)
    crash = {"problem": problem, "seed": seed, "frames": [frame.hex() for frame in frames]}
    path.write_text(json.dumps(crash, indent=1) + "\n", encoding="utf-8")
    return path


def _from_hex(frames: Sequence[str]) -> Frames:
    return [bytes.fromhex(frame) for frame in frames]


class Run:
    """One fuzzing run: what was tried, what came of it, and what was worth keeping."""

    def __init__(self, crashes: Path, seed: int) -> None:
        self.crashes = crashes
        self.seed = seed
        self.tried = 0
        self.kept: list[Frames] = []
        self.outcomes: Counter[str] = Counter()
        self._seen: set[Signature] = set()
        self._start = time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._start

    def attempt(self, frames: Frames) -> bool:
        """Examine one input; False where it broke a promise."""
        self.tried += 1
        try:
            signature = examine(frames)
        except Exception:  # noqa: BLE001 - whatever escapes here is what this program looks for
            problem = traceback.format_exc()
            path = save_crash(self.crashes, frames, problem, self.seed)
            print(f"\n{problem}\nsaved to {path}; look again with --replay {path}")
            return False
        self.outcomes[str(signature[2]) if signature[0] == "refused" else f"valid V{signature[1]}"] += 1
        if signature not in self._seen:
            self._seen.add(signature)
            self.kept.append(frames)
        return True

    def report(self) -> str:
        """The progress so far in one line."""
        rate = self.tried / max(self.elapsed, 0.001)
        return f"{self.elapsed:6.1f} s  {self.tried:>9,} inputs  {rate:>8,.0f}/s  {len(self.kept):>4} kept"


def fuzz(run: Run, first: Sequence[Frames], seconds: float) -> bool:
    """Try the given inputs, then mutations of what was kept until the time is over. False after a crash."""
    rng = random.Random(run.seed)
    if not all(run.attempt(frames) for frames in first):
        return False
    reported = 0.0
    while run.elapsed < seconds:
        for _ in range(200):
            if not run.attempt(mutated(rng, rng.choice(run.kept), rng.choice(run.kept))):
                return False
        if run.elapsed - reported >= 5 or (sys.stdout.isatty() and run.elapsed - reported >= 0.5):
            reported = run.elapsed
            print(run.report(), end="\r" if sys.stdout.isatty() else "\n", flush=True)
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 1 where a promise was broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=30, help="how long to fuzz (default: 30)")
    parser.add_argument("--seed", type=int, help="of the random numbers (default: another one every time)")
    parser.add_argument("--keep", action="store_true", help="add inputs with new outcomes to the corpus")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="inputs to start from")
    parser.add_argument("--crashes", type=Path, default=CRASHES, help="where to save what broke a promise")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="examine the frames of one saved crash")
    options = parser.parse_args(argv)

    if options.replay:
        print(*examine(_from_hex(json.loads(options.replay.read_text(encoding="utf-8"))["frames"])))
        return 0

    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    first = read_corpus(options.corpus) or list(seeds())
    print(f"seed {seed}, {len(first)} inputs to start from, {options.seconds:g} s")
    run = Run(options.crashes, seed)
    unbroken = fuzz(run, first, options.seconds)
    print(run.report())
    for outcome, count in run.outcomes.most_common():
        print(f"  {outcome:<18}{count:>10,}  {count / run.tried:6.1%}")
    if options.keep and unbroken:
        write_corpus(options.corpus, run.kept)
        print(f"{len(run.kept)} inputs in {options.corpus}")
    return 0 if unbroken else 1


if __name__ == "__main__":
    sys.exit(main())
