"""framewire: actor messaging over ZeroMQ, with a Spark pipeline that can read every frame it ever sent.

>>> import framewire as fw

Declare messages with ``@fw.message``, handle them in ``fw.Actor`` classes hosted by a ``fw.Node``, and ask with
``node.hub`` or, without asyncio, with ``fw.Client``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from framewire._version import __version__

if TYPE_CHECKING:
    from framewire.capture import Capture
    from framewire.cluster import Client, Node
    from framewire.errors import (
        BadBody,
        BadSignature,
        ConfigError,
        Deadlock,
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
        Buffers,
        Codec,
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
        on,
        run,
    )
    from framewire.routing import Route
    from framewire.security import Curve, DomainKey, KeyRing
    from framewire.wire import Message, MessageId, TraceOptions

__all__ = [
    "Actor",
    "BadBody",
    "BadSignature",
    "Buffers",
    "Capture",
    "Client",
    "Codec",
    "ConfigError",
    "Context",
    "Curve",
    "DeadLetter",
    "Deadlock",
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
    "on",
    "run",
]

# Names are looked up when they are first used, so that the command line, and those who only want the wire, do not
# wait for sockets and actors to be imported.
_HOMES = {
    name: module
    for module, names in {
        "framewire.capture": ("Capture",),
        "framewire.cluster": ("Client", "Node"),
        "framewire.errors": (
            "BadBody",
            "BadSignature",
            "ConfigError",
            "Deadlock",
            "Expired",
            "FramewireError",
            "MessageError",
            "NodeStopped",
            "NoRoute",
            "Overloaded",
            "RemoteError",
            "Unreachable",
            "UsageError",
            "WireError",
        ),
        "framewire.node": (
            "Actor",
            "Buffers",
            "Codec",
            "Context",
            "DeadLetter",
            "ExceptionMessage",
            "Gathered",
            "MessageHub",
            "NodeInfo",
            "NodeStats",
            "Promise",
            "Reason",
            "Restart",
            "Stall",
            "TraceStep",
            "handles",
            "message",
            "on",
            "run",
        ),
        "framewire.routing": ("Route",),
        "framewire.security": ("Curve", "DomainKey", "KeyRing"),
        "framewire.wire": ("Message", "MessageId", "TraceOptions"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    module = _HOMES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return __all__
