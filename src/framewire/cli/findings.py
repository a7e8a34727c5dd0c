"""What was found out about one recorded message: its explanation and, with keys at hand, its signature."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Protocol

from framewire._counts import counted
from framewire.cli.recordings import Recording
from framewire.errors import BadSignature
from framewire.wire import Message
from framewire.wire.codec import TtlUnit
from framewire.wire.explaining import Explanation, explain, printable
from framewire.wire.message import readable

__all__ = ["Finding", "SignatureState", "Tally", "Verdict", "Verifier", "find"]


class Verifier(Protocol):
    """The part of a ``KeyRing`` that is needed here; the ring itself is only imported when there are keys."""

    def is_signed(self, domain: str, identity: bytes) -> bool: ...

    def verify(self, message: Message) -> Message: ...


class SignatureState(StrEnum):
    """What the keys say about a message."""

    VERIFIED = "verified"
    UNSIGNED = "unsigned domain"
    BAD = "BAD SIGNATURE"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A signature's state, and what is wrong with a bad one."""

    state: SignatureState
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.state}: {self.detail}" if self.detail else str(self.state)


@dataclass(frozen=True, slots=True)
class Finding:
    """A recorded message and all that can be told about it."""

    recording: Recording
    explanation: Explanation
    signature: Verdict | None
    """None where no keys were given, or the message is malformed and has no signature to look at."""

    @property
    def title(self) -> str:
        """What to call the message: its name in the recording, or the place where it was found."""
        return printable(self.recording.name or self.recording.place)

    @property
    def forged(self) -> bool:
        """Whether the keys say that the message is not from who it claims to be from."""
        return self.signature is not None and self.signature.state is SignatureState.BAD

    def matches(self, pattern: str) -> bool:
        """Whether the recording's name or the message's identity matches a shell pattern."""
        message = self.explanation.message
        names = [self.recording.name, readable(message.identity) if message else None]
        return any(name is not None and fnmatchcase(name, pattern) for name in names)


@dataclass(slots=True)
class Tally:
    """How many messages were seen, and what was wrong with how many."""

    messages: int = 0
    malformed: int = 0
    badly_signed: int = 0
    unreadable: int = 0

    def count(self, finding: Finding) -> None:
        self.messages += 1
        if finding.explanation.error is not None:
            self.malformed += 1
        elif finding.forged:
            self.badly_signed += 1

    @property
    def all_well(self) -> bool:
        return not (self.malformed or self.badly_signed or self.unreadable)

    def __str__(self) -> str:
        troubles = [
            f"{count:,} {trouble}"
            for count, trouble in (
                (self.malformed, "malformed"),
                (self.badly_signed, "badly signed"),
                (self.unreadable, "unreadable"),
            )
            if count
        ]
        return counted(self.messages, "message") + (f": {', '.join(troubles)}" if troubles else "")


def find(recording: Recording, *, ttl_unit: TtlUnit, longest: int | None, verifier: Verifier | None) -> Finding:
    """Look at one recorded message."""
    explanation = explain(recording.frames, ttl_unit=ttl_unit, longest=longest)
    message = explanation.message
    verdict = None if verifier is None or message is None else _verdict(message, verifier)
    return Finding(recording, explanation, verdict)


def _verdict(message: Message, verifier: Verifier) -> Verdict:
    try:
        verifier.verify(message)
    except BadSignature as problem:
        return Verdict(SignatureState.BAD, printable(problem.detail))
    signed = verifier.is_signed(message.domain, message.identity)
    return Verdict(SignatureState.VERIFIED if signed else SignatureState.UNSIGNED)
