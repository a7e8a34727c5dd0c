"""Why a message found no route, in words that help to find the mistake."""

from __future__ import annotations

from framewire.node.parcel import Parcel
from framewire.routing import RoutingTable
from framewire.wire.message import readable

__all__ = ["why_not"]


_MAX_KNOWN = 5
"""Messages like the one that has no route that are named."""


def why_not(table: RoutingTable, here: bytes, parcel: Parcel, asked: str) -> str:
    """What is missing, what was ``asked`` of others, and what is known that is like it."""
    node = parcel.receiver_node
    if node and node != here and not table.knows_node(node):
        what = f"node {readable(node)} is not known"
    elif parcel.receiver:
        what = f"receiver {parcel.receiver.hex()} is not known or does not handle it"
    else:
        what = "nobody handles it"
    alike = ", ".join(map(str, table.alike(parcel.message_id, _MAX_KNOWN)))
    return f"{what}{asked}. Known: {alike}" if alike else f"{what}{asked}"
