"""Flows: how they are named, and their next message, which inherits what the one before it had."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Iterator

from framewire.node.core import Core
from framewire.node.parcel import Parcel, Stencil
from framewire.node.payloads import MessageType, type_of
from framewire.routing import Route
from framewire.wire import MessageId, TraceOptions

__all__ = ["flow_ids", "following"]

_LAST_DIGITS = [b"%02x" % number for number in range(256)]


def following(core: Core, actor: str, parcel: Parcel, payload: object, chosen: MessageType | None = None) -> Parcel:
    """A payload as the next message: straight to the caller if it is the answer, else to whoever handles it.

    It is in the partition and version that were ``chosen``, or those of ``_next_type``.
    """
    like, stencil = parcel.like or parcel.stencil, None
    if chosen is not None:
        message_id = chosen.message_id
    elif like is None:
        message_id = _next_type(parcel, type(payload)).message_id
    else:
        # Whatever is of one kind has one message id and one set of callback points, so this is decided once.
        known = like.following
        stencil = known.get(type(payload)) or known.setdefault(
            type(payload), Stencil(_next_type(parcel, type(payload)))
        )
        message_id = stencil.message_type.message_id
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
        stencil=stencil,
    )
    if callback is not None and message_id in callback.points:
        made.receiver = callback.receiver
        made.receiver_node = callback.node
        if parcel.like is not None and made.stencil is not None and callback.node != core.identity:
            made.stencil.answers = made.stencil.answers or Route(callback.receiver, callback.node)
        if parcel.trace_options and parcel.trace_options & TraceOptions.ROUTING:
            core.trace.step("replied", message_id, parcel.correlation_id, f"by {actor}")
    core.counters.sent += 1
    return made


def _next_type(parcel: Parcel, cls: type) -> MessageType:
    """Return a class of what a handler made of a message, in the partition that it goes to.

    That is the one that the asker waits for it in: the class's own if that is among them, else the only one, else
    that of the message handled. What nobody waits for stays in the partition of the message handled if it is
    another of the same identity and version, and is in that of its class otherwise.
    """
    declared, callback, handled = type_of(cls), parcel.callback, parcel.message_id
    own = declared.message_id
    if callback is not None:
        if own in callback.points:
            return declared
        partitions = [each.partition for each in callback.points if _differ_in_partition(each, own)]
        if len(partitions) == 1:
            return declared.on(partitions[0])
        if handled.partition in partitions:
            return declared.on(handled.partition)
    return declared.on(handled.partition) if _differ_in_partition(handled, own) else declared


def _differ_in_partition(one: MessageId, other: MessageId) -> bool:
    return one.identity == other.identity and one.version == other.version and one.partition != other.partition


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
