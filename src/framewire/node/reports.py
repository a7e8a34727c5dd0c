"""What a node says about itself: the messages, and what is in them.

They are a schema that others build upon (docs/operating.md): fields are added, and never change their meaning.
Times are in seconds; how long ago something was is told as its age, so that no two clocks have to agree.
"""

from __future__ import annotations

import msgspec

from framewire.node.payloads import message
from framewire.wire import MessageId

__all__ = [
    "ActorStats",
    "FlowInfo",
    "FlowSteps",
    "HandlerStats",
    "LetterStats",
    "NodeInfo",
    "NodeStats",
    "PendingStats",
    "Ping",
    "Pong",
    "StepStats",
    "TrafficStats",
    "WayStats",
]


class HandlerStats(msgspec.Struct, kw_only=True):
    """What one handler has done. Times are in seconds."""

    name: str
    message: str
    handled: int
    failed: int
    seconds: float
    longest: float
    domain: str = ""
    """The domain that the message belongs to; empty for none."""
    partitions: int = 1
    """How many partitions it handles the message in; where they are several, ``message`` says so instead of one."""

    def handles(self, message: MessageId) -> bool:
        """Whether this is about a message; where there are several partitions, the node knows which."""
        if self.partitions == 1:
            return self.message == str(message)
        return self.message.startswith(f"{MessageId(message.identity, message.version)} [")


class ActorStats(msgspec.Struct, kw_only=True):
    """One actor and its mailbox."""

    name: str
    identity: str
    queued: int
    waiting: int
    busy: int
    limit: int
    overflow: str
    restarts: int
    handlers: list[HandlerStats]
    concurrency: int = 1
    local: bool = False
    """Whether other nodes are not told of it."""


class PendingStats(msgspec.Struct, kw_only=True):
    """A promise that is still open, and for how many seconds it has been."""

    message: str
    target: str
    age: float
    flow: str
    sent_to: str = ""
    """The node that has it, as far as is known; empty for this one."""
    domain: str = ""


class LetterStats(msgspec.Struct, kw_only=True):
    """A dead letter, and how many seconds ago it died. ``message`` is empty where its frames were not even one."""

    reason: str
    detail: str
    age: float
    message: str = ""
    flow: str = ""
    domain: str = ""


class TrafficStats(msgspec.Struct, kw_only=True):
    """Messages for one other node: how many have left for it, were dropped, and wait."""

    sent: int
    dropped: int = 0
    waiting: int = 0


class WayStats(msgspec.Struct, kw_only=True):
    """One message to one other node: how many have left, about, and in how many seconds answers came lately."""

    node: str
    message: str
    sent: int
    p50: float | None = None
    p95: float | None = None
    domain: str = ""


@message("FRAMEWIRE.NODESTATS")
class NodeStats(msgspec.Struct, kw_only=True):
    """The state of a node at one moment. ``rates`` are per second, over the last ten."""

    node: str
    uptime: float
    totals: dict[str, int]
    rates: dict[str, float]
    actors: list[ActorStats]
    pending: list[PendingStats]
    dead_letters: dict[str, int]
    peers: list[str]
    stalls: int
    captured: int = 0
    """Messages that are recorded, on disk."""
    capture_dropped: int = 0
    """Messages that should have been recorded, and were not."""
    letters: list[LetterStats] = []
    """The last dead letters, the newest first; as many as were asked for."""
    stalled: dict[str, int] = {}
    """How often which handler blocked the event loop; the name is empty for what was no handler."""
    refused: dict[str, dict[str, int]] = {}
    """Bad messages by connection and reason; the name is empty where nobody knows whose they were."""
    traffic: dict[str, TrafficStats] = {}
    """What went to which other node, those included that have gone; nothing from a node that does not count it."""
    ways: list[WayStats] = []
    """The same by message; a busy node only looks at samples, so these are estimates."""
    uri: str = ""
    host: str = ""
    pid: int = 0
    version: str = ""
    """That of framewire."""
    state: str = ""
    """How far it is: starting, joining, ready or draining; empty from a node that does not tell."""


@message("FRAMEWIRE.NODEINFO")
class NodeInfo(msgspec.Struct):
    """Ask a node for its ``NodeStats``, with at most so many open promises and dead letters."""

    pending: int = 100
    letters: int = 0


class StepStats(msgspec.Struct, kw_only=True):
    """A step of a traced message, and how many seconds ago it was."""

    step: str
    age: float
    message: str
    detail: str
    domain: str = ""


@message("FRAMEWIRE.FLOWSTEPS")
class FlowSteps(msgspec.Struct, kw_only=True):
    """What a node remembers of a traced flow, the oldest first."""

    node: str
    steps: list[StepStats]


@message("FRAMEWIRE.FLOWINFO")
class FlowInfo(msgspec.Struct):
    """Ask a node for the ``FlowSteps`` of a flow, by its correlation id."""

    flow: bytes


@message("FRAMEWIRE.PONG")
class Pong(msgspec.Struct):
    """The answer to a ``Ping``."""

    node: str


@message("FRAMEWIRE.PING")
class Ping(msgspec.Struct):
    """Ask a node whether its event loop comes round: heartbeats tell only that its process lives."""
