"""What a node shows to whoever records it: each message as its frames, when it leaves, comes, arrives or dies.

A node knows nothing of files. A recorder fills this seam (``framewire.capture`` does), and a node without one
spends nothing on it but a look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from framewire.errors import BadBody
from framewire.node.deadletters import DeadLetter
from framewire.node.parcel import Parcel
from framewire.wire import encode

__all__ = ["Recorder", "Tap"]


class Recorder(Protocol):
    """Where recorded messages go. The node opens it when it starts and closes it when it has stopped."""

    def open(self, node: bytes) -> None:
        """Begin to record for a node."""

    def record(
        self, direction: str, peer: bytes, frames: Sequence[bytes], reason: str | None = None, at: int = 0
    ) -> None:
        """Take one message in, on the node's event loop; it must be quick, and never fails.

        ``at`` is when it happened, in nanoseconds since 1970; 0 for now.
        """

    def close(self) -> None:
        """Write what is still open. It may take its time: a thread waits for it."""


class Tap:
    """A node's end of a recorder."""

    __slots__ = ("_now", "_record", "recorder")

    def __init__(self, recorder: Recorder, now: Callable[[], float]) -> None:
        self.recorder = recorder
        self._record = recorder.record
        self._now = now

    def sent(self, peer: bytes, frames: list[bytes], at: int) -> None:
        """A message went to another node; ``at`` is from before it was handed over, for it may be there by now."""
        self._record("sent", peer, frames, None, at)

    def received(self, frames: list[bytes], sender: bytes) -> None:
        """A message came from another node; empty where it does not say from which."""
        self._record("received", sender or frames[0], frames)

    def delivered(self, receiver: bytes, parcel: Parcel) -> None:
        """A handler or hub of this node gets a message."""
        self._record("delivered", receiver, parcel.frames or self._written(parcel))

    def handed(self, receiver: bytes, frames: list[bytes]) -> None:
        """The same, of a message that came as these frames."""
        self._record("delivered", receiver, frames)

    def dead(self, letter: DeadLetter) -> None:
        """A message goes nowhere."""
        message = letter.message
        if message is None:
            self._record("dead", b"", letter.frames, letter.reason)
        else:
            self._record("dead", message.receiver_node_identity, encode(message), letter.reason)

    def _written(self, parcel: Parcel) -> list[bytes]:
        """The frames of a message that never leaves this node, and so has none."""
        try:
            if parcel.stencil is not None:
                return parcel.stencil.recorded(parcel, self._now())
            message = parcel.to_message(self._now())
        except BadBody:  # nobody but the recorder minds: it is handed over as the object that it is
            whole, parcel.body_frames = parcel.body_frames, ()
            message = parcel.to_message(self._now())
            parcel.body_frames = whole
        return encode(message)
