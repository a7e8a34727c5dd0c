"""Messages of made-up flows as columns: from which node to which, when, and what became of them.

A *transfer* is one message on its way from one receiver to the next, on the same node or on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from framewire.synth.catalogue import EXCEPTION, RECEIPT
from framewire.synth.pool import Ints

__all__ = ["MOST_ROUTERS", "NEVER", "REASONS", "SERVICE", "Fate", "Transfers", "reason"]

MOST_ROUTERS = 12
"""Routing entries that a made-up message can have: eight actors, their answer, and detours."""
SERVICE = (EXCEPTION, RECEIPT)
"""Kinds that are the same for every service."""
NEVER = -1
"""Stands for a time that does not come, and for what there is none of."""


class Fate(IntEnum):
    """What becomes of a message."""

    DELIVERED = 0
    LOST = 1
    """Sent and never received."""
    VANISHED = 2
    """Received and never delivered, without a word."""
    DEAD_AT_SENDER = 3
    """A dead letter before it was sent."""
    DEAD = 4
    """A dead letter where it was to be delivered."""
    PASSED_ON = 5
    """Received by a node that does not handle it, and sent on by it."""
    MALFORMED = 6
    """Damaged on the way, so that its receiver cannot decode it."""
    TAMPERED = 7
    """Changed on the way, so that its signature does not match."""


REASONS = (
    "no_route",
    "expired",
    "overloaded",
    "unreachable",
    "bad_body",
    "bad_signature",
    "malformed",
    "handler_gone",
    "late_reply",
    "duplicate_reply",
)
"""Why made-up messages die, in the words of a node."""


def reason(name: str) -> int:
    """The number of a reason."""
    return REASONS.index(name)


@dataclass(slots=True)
class Transfers:
    """Columns of the same length. Times are true ones, in microseconds since 1970."""

    unit: Ints
    """What it belongs to: a flow, or a group of messages without one."""
    version: Ints
    """Its wire format."""
    kind: Ints
    partition: Ints
    """The partition of the flow; service messages are in none, see ``own_partition``."""
    source: Ints
    target: Ints
    origin: Ints
    """The node whose hub waits for the answer."""
    fate: Ints
    reason: Ints
    """Why it died; ``NEVER`` for what did not."""
    sent_at: Ints
    received_at: Ints
    ended_at: Ints
    """When it was delivered, or died."""
    again_at: Ints
    """When it is received for the second time."""
    to_hub: Ints
    answer: Ints
    """The kind that its sender waits for; ``NEVER`` where nobody waits."""
    ttl: Ints
    broadcast: Ints
    hops: Ints
    routers: Ints
    """A table: the nodes that it has passed, the first first."""
    router_count: Ints
    body: Ints
    """The number of its body; equal where a message is passed on."""
    failure: Ints
    """What an exception message tells; ``NEVER`` for all others."""
    about: Ints
    """The kind that an exception message is about."""

    def __len__(self) -> int:
        return len(self.unit)

    @property
    def remote(self) -> Ints:
        """Which are sent to another node."""
        away: Ints = (self.source != self.target) & (self.fate != Fate.DEAD_AT_SENDER)
        return away

    @property
    def own_partition(self) -> Ints:
        """The partition of the message itself."""
        return np.where(np.isin(self.kind, SERVICE), 0, self.partition)

    def select(self, which: Ints) -> Transfers:
        """Some of them, by mask or number."""
        return Transfers(*(getattr(self, column.name)[which] for column in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Transfers]) -> Transfers:
        """All of them, in order."""
        return cls(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(cls)))
