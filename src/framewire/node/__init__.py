"""One node: actors that handle messages, hubs that ask them, a router in between."""

from framewire.node.actor import Actor, Restart, handles
from framewire.node.buffers import Buffers
from framewire.node.client import Client
from framewire.node.context import Context
from framewire.node.core import Settings
from framewire.node.deadletters import DeadLetter, DeadLetters, Reason
from framewire.node.exceptions import ExceptionMessage
from framewire.node.hub import MessageHub
from framewire.node.introspection import NodeInfo, NodeStats
from framewire.node.loops import run
from framewire.node.node import Node
from framewire.node.payloads import Codec, message, on
from framewire.node.promises import Gathered, Promise
from framewire.node.stalls import Stall
from framewire.node.tracing import TraceStep
from framewire.node.transport import Port, Registration, Transport

__all__ = [
    "Actor",
    "Buffers",
    "Client",
    "Codec",
    "Context",
    "DeadLetter",
    "DeadLetters",
    "ExceptionMessage",
    "Gathered",
    "MessageHub",
    "Node",
    "NodeInfo",
    "NodeStats",
    "Port",
    "Promise",
    "Reason",
    "Registration",
    "Restart",
    "Settings",
    "Stall",
    "TraceStep",
    "Transport",
    "handles",
    "message",
    "on",
    "run",
]
