"""What goes wrong on a network, and how often, repeatable from a seed.

Each link throws its own dice, the same number for every message. So what happens to the tenth message of a link
depends on the seed, the link and the number ten, and not on what other links or other faults do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from framewire.errors import ConfigError

__all__ = ["Dice", "Faults", "Throw", "corrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How a network mistreats messages; rates are from 0 (never) to 1 (always).

    Registrations and goodbyes are not messages: they are only ever lost to a partition.
    """

    seed: int = 0
    drop: float = 0.0
    """Messages that never arrive."""
    duplicate: float = 0.0
    """Messages that arrive twice."""
    delay: tuple[float, float] = (0.0, 0.0)
    """The least and the most seconds that a message takes. A delay alone does not change the order."""
    reorder: float = 0.0
    """Messages that overtake others which are under way on the same link."""
    corrupt: float = 0.0
    """Messages that arrive with one bit flipped."""

    def __post_init__(self) -> None:
        problems = [
            f"{name}: {rate!r}; must be a rate from 0 to 1"
            for name in ("drop", "duplicate", "reorder", "corrupt")
            if not (_is_number(rate := getattr(self, name)) and 0 <= rate <= 1)
        ]
        if not isinstance(self.seed, int):
            problems.append(f"seed: {self.seed!r}; must be a whole number")
        if not _is_span(self.delay):
            problems.append(f"delay: {self.delay!r}; must be two numbers of seconds, the least and the most")
        if problems:
            raise ConfigError("faults", problems)


@dataclass(frozen=True, slots=True)
class Throw:
    """What the dice say about one message. ``place`` and ``bit`` are points between 0 and 1."""

    drop: bool
    duplicate: bool
    delay: float
    overtake: bool
    corrupt: bool
    place: float
    """Where among the messages under way it goes when it overtakes."""
    bit: float
    """Where in the message the bit is that flips."""


class Dice:
    """The chances of one link."""

    def __init__(self, faults: Faults, sender: bytes, receiver: bytes) -> None:
        self._faults = faults
        seed = f"{faults.seed}:{sender.hex()}:{receiver.hex()}"
        self._random = Random(seed)  # noqa: S311 - faults are to be repeatable, not secret

    def throw(self) -> Throw:
        """What happens to the next message."""
        faults = self._faults
        drop, duplicate, delay, overtake, corrupt, place, bit = (self._random.random() for _ in range(7))
        least, most = faults.delay
        return Throw(
            drop < faults.drop,
            duplicate < faults.duplicate,
            least + delay * (most - least),
            overtake < faults.reorder,
            corrupt < faults.corrupt,
            place,
            bit,
        )


def corrupted(frames: list[bytes], place: float) -> tuple[list[bytes], str]:
    """The frames with one bit flipped, and which one; ``place`` is a point between 0 and 1.

    Every frame is hit as often: the short ones that say how to read the others must not be spared.
    """
    filled = [index for index, frame in enumerate(frames) if frame]
    if not filled:
        return frames, "not at all: every frame is empty"
    nth, within = divmod(place * len(filled), 1)
    index = filled[int(nth)]
    byte, bit = divmod(int(within * 8 * len(frames[index])), 8)
    flipped = bytearray(frames[index])
    flipped[byte] ^= 1 << bit
    where = f"in frame n-{len(frames) - index}, byte {byte}, bit {bit}"
    return [*frames[:index], bytes(flipped), *frames[index + 1 :]], where


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _is_span(value: object) -> bool:
    if not isinstance(value, Sequence) or len(value) != 2 or not all(map(_is_number, value)):
        return False
    return bool(0 <= value[0] <= value[1])
