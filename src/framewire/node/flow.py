"""Flows: how they are named, and their next message, which inherits what the one before it had."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Iterator

from framewire.node.core import Core
from framewire.node.parcel import Parcel, Stencil
from framewire.node.payloads import type_of
from framewire.routing import Route
from framewire.wire import TraceOptions

__all__ = ["flow_ids", "following"]

_LAST_DIGITS = [b"%02x" % number for number in range(256)]


def following(core: Core, actor: str, parcel: Parcel, payload: object) -> Parcel:
    """A payload as the next message: straight to the caller if it is the answer, else to whoever handles it."""
    declared = type_of(type(payload))
    message_id, callback = declared.message_id, parcel.callback
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
        known = like.following
        made.stencil = known.get(type(payload)) or known.setdefault(type(payload), Stencil(declared))
    if callback is not None and message_id in callback.points:
        made.receiver = callback.receiver
        made.receiver_node = callback.node
        if parcel.like is not None and made.stencil is not None and callback.node != core.identity:
            made.stencil.answers = made.stencil.answers or Route(callback.receiver, callback.node)
        if parcel.trace_options and parcel.trace_options & TraceOptions.ROUTING:
            core.trace.step("replied", message_id, parcel.correlation_id, f"by {actor}")
    core.counters.sent += 1
    return made


def flow_ids() -> Iterator[bytes]:
    """The ids of a hub's flows.

    They look like GUIDs, as peers expect, but are counted: making a GUID takes longer than sending a message. The
    count comes first, so that their beginnings tell flows apart in a log.
    """
    suffix = str(uuid.uuid4())[13:].encode()
    for count in itertools.count(int.from_bytes(os.urandom(3), "big")):
        before, after = b"%06x" % (count & 0xFFFFFF), b"-%04x%s" % (count >> 24 & 0xFFFF, suffix)
        for last in _LAST_DIGITS:
            yield before + last + after
