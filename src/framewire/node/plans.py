"""What is the same about many messages of a hub, and so is found out once."""

from __future__ import annotations

from framewire.node.exceptions import EXCEPTION
from framewire.node.parcel import RECEIPT, Stencil
from framewire.node.payloads import MessageType, declare, type_of

__all__ = ["Plan", "Receipt"]


class Receipt(bytes):
    """The confirmation that a node has received a message."""


declare(Receipt, RECEIPT, "raw", bytes, Receipt)


class Plan:
    """What is known of all questions of one message that want the same answers, and of what is told of one."""

    __slots__ = ("message_id", "points", "receipt", "stencil", "types", "under_way")

    def __init__(self, declared: MessageType, wanted: tuple[type, ...]) -> None:
        self.message_id = declared.message_id
        self.types = {type_of(cls).message_id: type_of(cls) for cls in wanted}
        self.points = tuple({**self.types, EXCEPTION: None})
        self.receipt = RECEIPT in self.types
        self.stencil = Stencil(declared)
        self.under_way = Stencil(declared)
        """For what is sent in handlers: it has passed a router more."""
