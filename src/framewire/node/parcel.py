"""A message on its way through a node.

On the wire a message is frames; inside a node it is a parcel, which carries the payload as the Python object it
is and turns it into bytes only if it has to leave. So a message between two actors of one node is never encoded.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import msgspec

from framewire.errors import BadBody
from framewire.node.payloads import MessageType, type_of
from framewire.routing import Route
from framewire.security import KeyRing
from framewire.wire import Distribution, Message, MessageId, RouterAddress, encode
from framewire.wire.message import BodyFrame
from framewire.wire.moulds import Mould

if TYPE_CHECKING:
    from framewire.node.likeness import Likeness

__all__ = [
    "MAX_ROUTERS",
    "RECEIPT",
    "TICKS",
    "Callback",
    "Parcel",
    "Stencil",
    "kept_routers",
    "sole_sender",
    "ttl_ticks",
    "unread",
]

RECEIPT = MessageId(b"KINO.RCPTCONFIRM")
"""A callback point, and the message that answers it: the handling node has the message."""
MAX_ROUTERS = 255
"""Routing entries that are kept when a message is sent on: a flow that goes on for ever must not grow for ever."""
TICKS = 10_000_000
"""Ticks of 100 ns in a second."""


class _Unread:
    def __repr__(self) -> str:
        return "<unread>"


unread: Any = _Unread()
"""Stands for a payload that is still bytes."""


class Callback(msgspec.Struct, frozen=True, gc=False):
    """Who waits for an answer, and which messages count as one."""

    receiver: bytes
    node: bytes
    key: int
    points: tuple[MessageId, ...]
    receipt: bool = False
    """Whether the points ask for a confirmation that the message arrived."""


class Stencil:
    """What messages that are sent for the same reason have in common, once the first of them was written."""

    __slots__ = ("_here", "_mould", "_ring", "_router", "_signed", "answers", "following", "message_type")

    def __init__(self, message_type: MessageType) -> None:
        self.message_type = message_type
        self.following: dict[object, Stencil] = {}
        """What handlers send on such a message, by the payload's class, or by the plan of what they ask."""
        self.answers: Route | None = None
        """Where all of them go, if they are answers to questions of another node."""
        self._here: Mould | None = None
        self._mould: Mould | None = None
        self._router: RouterAddress | None = None
        self._ring: KeyRing | None = None
        self._signed: Callable[[bytes], bytes] | None = None

    def learn(self, message: Message, frames: list[bytes], router: RouterAddress, ring: KeyRing | None) -> None:
        """Keep what the first message looked like, as it left over a router and with its keys."""
        self._mould, self._router, self._ring = Mould.of(message, frames), router, ring
        self._signed = None if ring is None else ring.signer(message)

    def written(
        self, body: bytes, about: Parcel, now: float, router: RouterAddress, ring: KeyRing | None
    ) -> list[bytes] | None:
        """The frames of a body with the flow, deadline and callback key of a parcel, or None: write it anew.

        The parcel is the message itself, or the one that it answers.
        """
        mould = self._mould
        if self._router is not router or self._ring is not ring or mould is None:
            return None
        signed, callback, deadline = self._signed, about.callback, about.deadline
        ticks = 0
        if deadline != math.inf:
            ticks = int((deadline - now) * TICKS)
            if not 0 < ticks <= _LONGEST:
                ticks = ttl_ticks(deadline, now)
        return mould.filled(
            body,
            ticks,
            about.correlation_id,
            0 if callback is None else callback.key,
            b"" if signed is None else signed(body),
        )

    def recorded(self, parcel: Parcel, now: float) -> list[bytes]:
        """The frames of a parcel that does not leave this node, as they are recorded."""
        here, body = self._here, parcel.body_frames
        if here is None or self.message_type.several or (body is not None and len(body) != 1):
            message = parcel.to_message(now)
            frames = encode(message)
            self._here = Mould.of(message, frames)
            return frames
        callback = parcel.callback
        return here.filled(
            self.message_type.encode(parcel.payload) if body is None else cast("bytes", body[0]),
            ttl_ticks(parcel.deadline, now),
            parcel.correlation_id,
            0 if callback is None else callback.key,
            b"",
        )


class Parcel(msgspec.Struct):
    """One message inside a node."""

    message_id: MessageId
    payload: Any = unread
    body_frames: tuple[BodyFrame, ...] | None = None
    correlation_id: bytes = b""
    callback: Callback | None = None
    deadline: float = math.inf
    """When its time is over, on the node's clock."""
    distribution: Distribution = Distribution.UNICAST
    receiver: bytes = b""
    receiver_node: bytes = b""
    trace_options: int = 0
    hops: int = 0
    routing: tuple[RouterAddress, ...] = ()
    source: bytes = b""
    """The connection that it came over (``Core.sender_of`` tells the node); empty for what this node sends."""
    sent_to: Route | None = None
    """The route that it took last, for telling where it got lost."""
    frames: list[bytes] | None = None
    """What came in, for passing it on untouched."""
    stencil: Stencil | None = None
    """What it has in common with others that are sent here; forgotten where something is changed about it."""
    like: Likeness | None = None
    """What it has in common with others that came in; forgotten where something is changed about it."""
    caller: bytes | None = None
    """Who begins a flow with it: a hub of this node, or the connection that it came over; None where the flow is
    under way."""
    may_wait: bool = True
    """Whether it may wait for room; a flow that is begun within a handler has room at once, or is refused."""

    @property
    def size(self) -> int:
        """Bytes of the body."""
        if self.body_frames is None:
            try:
                return sum(map(len, type_of(type(self.payload)).frames(self.payload)))
            except Exception:  # noqa: BLE001 - what cannot be written may be handled on this node all the same
                return sys.getsizeof(self.payload)
        return sum(map(len, self.body_frames))

    @property
    def body(self) -> tuple[BodyFrame, ...]:
        """The body, encoded now if it has not been, or ``BadBody``."""
        if self.body_frames is None:
            stencil = self.stencil
            declared = type_of(type(self.payload)) if stencil is None else stencil.message_type
            try:
                self.body_frames = declared.frames(self.payload)
            except Exception as problem:
                what = f"{declared.python_type.__qualname__} as {declared.codec}"
                raise BadBody(f"cannot write this {what}: {problem}", message_id=self.message_id) from problem
        return self.body_frames

    def read(self, message_type: MessageType) -> Any:
        """The payload as the class its reader declared, or ``BadBody``.

        A sender on this node may have declared another class under the same message id; then the bytes decide.
        """
        if type(self.payload) is message_type.python_type:
            return self.payload
        self.payload = message_type.read(self.body_frames or self.body)
        return self.payload

    def keep_frames(self, came: Parcel) -> None:
        """Take over the frames that a message came with, where its codec would write them as one."""
        frames = came.body_frames
        if frames is not None and len(frames) > 1 and len(self.body) == 1 and b"".join(frames) == self.body[0]:
            self.body_frames = frames

    def to_message(self, now: float, router: RouterAddress | None = None) -> Message:
        """The same message as it goes onto the wire, with what is left of its time; sent by a router if given."""
        callback = self.callback or _NOBODY
        return Message(
            self.message_id.identity,
            self.message_id.version,
            self.message_id.partition,
            self.body,
            self.correlation_id,
            ttl_ticks(self.deadline, now),
            self.distribution,
            self.trace_options,
            self.receiver,
            self.receiver_node,
            callback.receiver,
            callback.node,
            callback.key,
            callback.points,
            self.routing if router is None else (*kept_routers(self.routing), router),
            self.hops if router is None else self._hops_away(),
        )

    def _hops_away(self) -> int:
        """How many times it was sent away when it leaves this node.

        What a handler sends in a flow that began on its own node counts once more, so that the receiving node sees
        that the flow was admitted, and does not let it wait as one that begins.
        """
        is_answer = self.callback is not None and self.receiver == self.callback.receiver
        within = self.caller is None and not (self.routing or self.source or is_answer)
        return self.hops + (2 if within else 1)

    @classmethod
    def from_message(
        cls, message: Message, now: float, source: bytes = b"", frames: list[bytes] | None = None
    ) -> Parcel:
        """What came in from another node."""
        callback = None
        if points := message.callback_points:
            callback = Callback(
                message.callback_receiver_identity,
                message.callback_receiver_node_identity,
                message.callback_key,
                points,
                RECEIPT in points,
            )
        ttl, routing, hops = message.ttl_ticks, message.routing, message.hops
        # By position, for there is one of these for every message that comes in (bench/cluster.py).
        return cls(
            MessageId(message.identity, message.version, message.partition),
            unread,
            message.body_frames,
            message.correlation_id,
            callback,
            now + ttl / TICKS if ttl else math.inf,
            message.distribution,
            message.receiver_identity,
            message.receiver_node_identity,
            message.trace_options,
            hops,
            routing,
            source,
            None,
            frames,
            caller=None if hops > 1 or len(routing) > 1 else source,
        )


def kept_routers(routing: tuple[RouterAddress, ...]) -> tuple[RouterAddress, ...]:
    """Return the routing entries that travel on: of too many, those from the second on are dropped.

    So both ends are kept: the first router is the first entry, or the last one where kino nodes sent the message.
    """
    if len(routing) <= MAX_ROUTERS:
        return routing
    return (routing[0], *routing[1 - MAX_ROUTERS :])


def sole_sender(routing: tuple[RouterAddress, ...], own: bytes) -> RouterAddress | None:
    """Return the entry of the node that sent a message here, where the entries alone tell; else None.

    A framewire node is the last entry, a kino node the first, and the receiving node is neither.
    """
    if not routing:
        return None
    first, last = routing[0], routing[-1]
    if first.identity in (last.identity, own):
        return last
    return first if last.identity == own else None


def ttl_ticks(deadline: float, now: float) -> int:
    """What is left until a deadline, as it goes onto the wire, where 0 means no limit at all."""
    if deadline == math.inf:
        return 0
    # A limit that has just passed must not become none; one of thousands of years must still fit its frame.
    ticks = int((deadline - now) * TICKS)
    return ticks if 0 < ticks <= _LONGEST else max(1, min(ticks, _LONGEST))


_LONGEST = 2**63 - 1
_NOBODY = Callback(b"", b"", 0, ())
