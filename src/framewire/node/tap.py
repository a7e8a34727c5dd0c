"""What a node shows to whoever records it: each message as its frames, when it leaves, comes, arrives or dies.

A node knows nothing of files. A recorder fills this seam (``framewire.capture`` does), and a node without one
spends nothing on it but a look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import msgspec

from framewire.node.deadletters import DeadLetter
from framewire.node.parcel import Parcel
from framewire.node.tracing import TraceStep
from framewire.wire import Message, TraceOptions, encode

__all__ = ["Recorder", "Tap"]


class Recorder(Protocol):
    """Where recorded messages go. The node opens it when it starts and closes it when it has stopped."""

    def open(self, node: bytes) -> None:
        """Begin to record for a node."""

    def record(
        self, direction: str, peer: bytes, frames: Sequence[bytes], reason: str | None = None, at: int = 0
    ) -> None:
        """Take one message in, on the node's event loop; it must be quick, and never fails.

        ``direction`` is sent, received, delivered or dead; for "trace" it is a step of a traced message, which has
        that message's id and flow, and the step and its detail as body frames.

        ``at`` is when it happened, in nanoseconds since 1970; 0 for now.
        """

    def close(self) -> None:
        """Write what is still open. It may take its time: a thread waits for it."""


class Tap:
    """A node's end of a recorder."""

    __slots__ = ("handed", "received", "recorder", "sent")

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        # No functions of this class: there are several calls of these for every message (bench/capture.py).
        self.sent: Callable[[bytes, list[bytes], None, int], None] = partial(recorder.record, "sent")
        """A message went to another node, for no reason, at a time from before it was handed over: it may be there
        by now."""
        self.received: Callable[[bytes, list[bytes]], None] = partial(recorder.record, "received")
        """A message came from another node."""
        self.handed: Callable[[bytes, list[bytes]], None] = partial(recorder.record, "delivered")
        """A handler or hub of this node gets a message that came as these frames."""

    def delivered(self, receiver: bytes, parcel: Parcel, now: float) -> None:
        """A handler or hub of this node gets a message."""
        frames = parcel.frames
        if frames is None:
            try:
                stencil = parcel.stencil
                frames = encode(parcel.to_message(now)) if stencil is None else stencil.recorded(parcel, now)
            except Exception:  # noqa: BLE001 - nobody but the recorder minds what cannot be written
                frames = encode(_without_body(parcel).to_message(now))
        self.handed(receiver, frames)

    def step(self, taken: TraceStep) -> None:
        """A traced message has taken a step."""
        told = Message(
            taken.message_id.identity,
            taken.message_id.version,
            taken.message_id.partition,
            (taken.step.encode(), taken.detail.encode()),
            taken.correlation_id,
            trace_options=TraceOptions.ROUTING,
        )
        self.recorder.record("trace", b"", encode(told))

    def dead(self, letter: DeadLetter) -> None:
        """A message goes nowhere."""
        message = letter.message
        if message is None:
            self.recorder.record("dead", b"", letter.frames, letter.reason)
        else:
            self.recorder.record("dead", message.receiver_node_identity, encode(message), letter.reason)


def _without_body(parcel: Parcel) -> Parcel:
    return msgspec.structs.replace(parcel, body_frames=())
