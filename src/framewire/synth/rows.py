"""What the nodes record of made-up messages: one row for each time that a node saw one.

This mirrors ``framewire.node.tap``: what is sent or received is recorded as its frames are on the wire; what never
leaves a node, and what dies, is written anew by the node, and so carries neither envelope nor signature.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from framewire.capture.schema import Direction
from framewire.synth.cluster import MadeUpCluster
from framewire.synth.pool import Ints, Pool
from framewire.synth.transfers import NEVER, Fate, Transfers, reason

__all__ = ["DIRECTIONS", "Form", "Rows", "recorded"]

DIRECTIONS = tuple(Direction)
_SENT, _RECEIVED, _DELIVERED, _DEAD = range(4)


class Form(IntEnum):
    """How the frames of a row are made."""

    AS_SENT = 0
    AS_RECEIVED = 1
    WRITTEN = 2
    """By the recording node, because there are no frames, or to tell what died."""


@dataclass(slots=True)
class Rows:
    """The rows of a capture as columns; ``peer`` is a number in the pool."""

    transfer: Ints
    node: Ints
    true_at: Ints
    at: Ints
    """By the recording node's clock."""
    direction: Ints
    peer: Ints
    reason: Ints
    form: Ints

    def __len__(self) -> int:
        return len(self.transfer)

    def select(self, which: Ints) -> Rows:
        return Rows(*(getattr(self, column.name)[which] for column in fields(self)))


def recorded(cluster: MadeUpCluster, transfers: Transfers) -> Rows:
    """Every row that the nodes record, sorted by recording node and time."""
    t, remote = transfers, transfers.remote
    fate, malformed = t.fate, t.fate == Fate.MALFORMED
    arrived = remote & (fate != Fate.LOST)
    delivered = fate == Fate.DELIVERED
    dead = np.isin(fate, (Fate.DEAD_AT_SENDER, Fate.DEAD, Fate.MALFORMED, Fate.TAMPERED))
    again = t.again_at != NEVER
    receiver = np.where(t.to_hub, cluster.hub_at[t.origin], cluster.actor_at[t.kind, t.target])
    sender = np.where(malformed, cluster.socket_at[t.source, t.target], cluster.node_at[t.source])
    addressed = np.where(t.to_hub & (t.version != 1) & ~malformed, cluster.node_at[t.origin], Pool.EMPTY)
    where_it_died = np.where(fate == Fate.DEAD_AT_SENDER, t.source, t.target)
    as_it_came = np.where(remote, Form.AS_RECEIVED, Form.WRITTEN)
    as_it_died = np.where(malformed, Form.AS_RECEIVED, Form.WRITTEN)
    once_more = t.again_at + (t.ended_at - t.received_at)
    alive = np.full(len(t), NEVER)
    copied, written = np.full(len(t), reason("duplicate_reply")), np.full(len(t), Form.WRITTEN)
    parts = [
        _rows(remote, t.source, t.sent_at, _SENT, cluster.node_at[t.target], alive, np.full(len(t), Form.AS_SENT)),
        _rows(arrived, t.target, t.received_at, _RECEIVED, sender, alive, as_it_came),
        _rows(again, t.target, t.again_at, _RECEIVED, sender, alive, as_it_came),
        _rows(delivered, t.target, t.ended_at, _DELIVERED, receiver, alive, as_it_came),
        _rows(again & ~t.to_hub, t.target, once_more, _DELIVERED, receiver, alive, as_it_came),
        _rows(dead, where_it_died, t.ended_at, _DEAD, addressed, t.reason, as_it_died),
        _rows(again & t.to_hub, t.target, once_more, _DEAD, addressed, copied, written),
    ]
    joined = Rows(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Rows)))
    joined.at = joined.true_at + cluster.offsets[joined.node]
    return joined.select(np.lexsort((joined.transfer, joined.at, joined.node)))


def _rows(which: Ints, node: Ints, at: Ints, direction: int, peer: Ints, why: Ints, form: Ints) -> Rows:
    numbers = np.flatnonzero(which)
    return Rows(
        transfer=numbers,
        node=node[numbers],
        true_at=at[numbers],
        at=at[numbers],
        direction=np.full(len(numbers), direction, np.int8),
        peer=peer[numbers],
        reason=why[numbers].astype(np.int8),
        form=form[numbers].astype(np.int8),
    )
