"""The client that users make: its node can be told how to find others."""

from __future__ import annotations

from typing import ClassVar

from framewire.cluster.node import Node
from framewire.node import client, node

__all__ = ["Client"]


class Client(client.Client):
    """A blocking message hub, for code without asyncio: ``Client(rendezvous=["tcp://host:7400"])``.

    Options are those of ``Node``. Its methods may be called from any thread.
    """

    _node_type: ClassVar[type[node.Node]] = Node
