"""Many nodes: sockets between them, discovery without a broker, signs of life."""

from framewire.cluster.client import Client
from framewire.cluster.node import Node
from framewire.cluster.rendezvous import Rendezvous
from framewire.cluster.settings import ClusterSettings
from framewire.cluster.transport import SocketTransport

__all__ = ["Client", "ClusterSettings", "Node", "Rendezvous", "SocketTransport"]
