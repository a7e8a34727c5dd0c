"""framewire: actor messaging over ZeroMQ, with a Spark pipeline that can read every frame it ever sent.

>>> import framewire as fw

Declare messages with ``@fw.message``, handle them in ``fw.Actor`` classes hosted by a ``fw.Node``, and ask with
``node.hub`` or, without asyncio, with ``fw.Client``.
"""

from framewire._version import __version__
from framewire.cluster import Client, Node
from framewire.errors import (
    BadBody,
    BadSignature,
    ConfigError,
    Expired,
    FramewireError,
    MessageError,
    NodeStopped,
    NoRoute,
    Overloaded,
    RemoteError,
    Unreachable,
    UsageError,
    WireError,
)
from framewire.node import (
    Actor,
    Context,
    DeadLetter,
    ExceptionMessage,
    Gathered,
    MessageHub,
    NodeInfo,
    NodeStats,
    Promise,
    Reason,
    Restart,
    Stall,
    TraceStep,
    handles,
    message,
)
from framewire.routing import Route
from framewire.security import DomainKey, KeyRing
from framewire.wire import Message, MessageId, TraceOptions

__all__ = [
    "Actor",
    "BadBody",
    "BadSignature",
    "Client",
    "ConfigError",
    "Context",
    "DeadLetter",
    "DomainKey",
    "ExceptionMessage",
    "Expired",
    "FramewireError",
    "Gathered",
    "KeyRing",
    "Message",
    "MessageError",
    "MessageHub",
    "MessageId",
    "NoRoute",
    "Node",
    "NodeInfo",
    "NodeStats",
    "NodeStopped",
    "Overloaded",
    "Promise",
    "Reason",
    "RemoteError",
    "Restart",
    "Route",
    "Stall",
    "TraceOptions",
    "TraceStep",
    "Unreachable",
    "UsageError",
    "WireError",
    "__version__",
    "handles",
    "message",
]
