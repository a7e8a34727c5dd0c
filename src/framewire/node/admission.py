"""What comes in from other nodes, before it is routed: read, verified, and refused where it is not good."""

from __future__ import annotations

from framewire.errors import BadSignature, Unreachable, WireError
from framewire.node.core import Core
from framewire.node.deadletters import Reason
from framewire.node.likeness import Familiar
from framewire.node.parcel import Parcel
from framewire.security import KeyRing
from framewire.security.replay import token
from framewire.wire import Message, TraceOptions, decode
from framewire.wire.message import readable

__all__ = ["Admission"]

_NO_KEYS = KeyRing()
"""What a node without keys verifies with: it takes part in the nameless domain only."""


class Admission:
    """The door of one node."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.familiar = Familiar(core.identity, core.replays)
        """The kinds of messages that were let in before; what is of one of them need not be taken apart."""

    def taken_apart(self, peer: bytes, frames: list[bytes]) -> Parcel | None:
        """What came in, read and checked from the ground up; None where it is not good."""
        core = self._core
        try:
            message = decode(frames)
        except WireError as problem:
            if core.tap is not None:
                core.tap.received(frames[0], frames)
            self.refuse(peer, Reason.MALFORMED, str(problem), frames)
            return None
        if core.tap is not None:
            core.tap.received(core.sender_of(peer, message.routing), frames)
        parcel = Parcel.from_message(message, core.now(), peer, frames)
        if not self._is_genuine(message, parcel):
            return None
        if parcel.trace_options & TraceOptions.ROUTING:
            sender = readable(core.sender_of(peer, message.routing))
            core.trace.step("received", parcel.message_id, parcel.correlation_id, f"from node {sender}")
        if parcel.hops > core.settings.max_hops:
            core.undeliverable(parcel, Reason.UNREACHABLE, Unreachable(f"went in circles for {parcel.hops} hops"))
            return None
        self.familiar.remember(frames, message, parcel, core.keyring)
        return parcel

    def refuse(self, peer: bytes, reason: Reason, detail: str, frames: list[bytes], count: int = 1) -> None:
        """Drop frames for which there is nobody to tell; ``count`` of them, where only some are at hand."""
        core = self._core
        if core.conduct.note(peer, reason, count):
            core.dead_letters.add_frames(reason, detail, frames)
            count -= 1
        core.dead_letters.counts[reason] += count

    def _is_genuine(self, message: Message, parcel: Parcel) -> bool:
        core, ring = self._core, self._core.keyring
        if ring is None and not message.domain:
            return True
        try:
            (ring or _NO_KEYS).verify(message)
        except BadSignature as problem:
            if core.conduct.note(parcel.source, Reason.BAD_SIGNATURE):
                core.undeliverable(parcel, Reason.BAD_SIGNATURE, problem)
            else:
                core.dead_letters.counts[Reason.BAD_SIGNATURE] += 1
            return False
        if ring is None or core.replays is None or not ring.is_signed(message.domain, message.identity):
            return True
        unique = ring.is_unique(message.domain, message.identity)
        if core.replays.is_new(token(message, unique=unique), b"" if unique else parcel.source, core.now()):
            return True
        # Nobody is told: whoever waits for an answer waits for that to the first of them.
        if core.conduct.note(parcel.source, Reason.REPLAYED):
            core.dead_letters.add(Reason.REPLAYED, "the same message has been here before", parcel)
        else:
            core.dead_letters.counts[Reason.REPLAYED] += 1
        return False
