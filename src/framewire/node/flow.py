"""The next message of a flow: what a handler sends inherits what the message it handled had."""

from __future__ import annotations

from framewire.node.core import Core
from framewire.node.parcel import Parcel, Stencil
from framewire.node.payloads import type_of
from framewire.wire import TraceOptions

__all__ = ["following"]


def following(core: Core, actor: str, parcel: Parcel, payload: object) -> Parcel:
    """A payload as the next message: straight to the caller if it is the answer, else to whoever handles it."""
    message_id = type_of(type(payload)).message_id
    callback = parcel.callback
    made = Parcel(
        message_id,
        payload,
        None,
        parcel.correlation_id,
        callback,
        parcel.deadline,
        routing=parcel.routing,
        trace_options=parcel.trace_options,
    )
    like = parcel.like or parcel.stencil
    if like is not None:
        made.stencil = like.following.get(type(payload)) or like.following.setdefault(type(payload), Stencil())
    if callback is not None and message_id in callback.points:
        made.receiver = callback.receiver
        made.receiver_node = callback.node
        if parcel.trace_options & TraceOptions.ROUTING:
            core.trace.step("replied", message_id, parcel.correlation_id, f"by {actor}")
    core.counters.sent += 1
    return made
