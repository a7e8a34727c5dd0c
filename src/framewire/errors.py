"""Every error that framewire raises on purpose.

    FramewireError                    catch this for all of them
    ├── WireError                     the peer's bytes are not a message
    ├── MessageError                  a message, or the answer to it, did not get through
    │   ├── RemoteError               a handler failed; type, text and traceback of its exception
    │   ├── BadBody                   a body does not hold what its type says, or cannot be written for its receiver
    │   ├── BadSignature              the message is not from who it claims to be from
    │   ├── NoRoute                   nobody handles it
    │   ├── Expired (TimeoutError)    its time was over before the answer came
    │   ├── Unreachable               the node that should handle it is gone
    │   ├── Overloaded                its receiver has no room or no time for it; when to try again
    │   ├── Deadlock                  an ask that could only be answered after itself
    │   └── NodeStopped               this node, or the handling one, is shutting down
    └── UsageError (ValueError)       the caller asked for something that cannot be
        └── ConfigError               a configuration is wrong; lists every problem at once

The split is by whose fault it is: ``UsageError`` is mended in your code or configuration, the others happen
to correct programs and are handled.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "BadBody",
    "BadSignature",
    "ConfigError",
    "Deadlock",
    "Expired",
    "FramewireError",
    "MessageError",
    "NoRoute",
    "NodeStopped",
    "Overloaded",
    "RemoteError",
    "Unreachable",
    "UsageError",
    "WireError",
]


class FramewireError(Exception):
    """The root of all errors raised by framewire."""


class WireError(FramewireError):
    """Frames that are not a message: why (one word), and which field and frame is at fault.

    ``frame`` counts from the end, as the wire formats do: 7 is the frame n-7. It is None where no single
    frame is to blame.
    """

    def __init__(self, reason: str, field: str, frame: int | None = None, detail: str = "") -> None:
        super().__init__(reason, field, frame, detail)
        self.reason = reason
        self.field = field
        self.frame = frame
        self.detail = detail

    def __str__(self) -> str:
        where = self.field if self.frame is None else f"{self.field} (frame n-{self.frame})"
        return f"{self.reason}: {where}: {self.detail}" if self.detail else f"{self.reason}: {where}"


class MessageError(FramewireError):
    """A message that did not get through, with all that is known about where it went.

    ``elapsed`` is in seconds since the promise was made; ``last_hop`` names the last node that is known to
    have had the message.
    """

    def __init__(
        self,
        detail: str = "",
        *,
        message_id: object = None,
        correlation_id: bytes = b"",
        target: str = "",
        node: bytes = b"",
        elapsed: float | None = None,
        last_hop: str = "",
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.message_id = message_id
        self.correlation_id = correlation_id
        self.target = target
        self.node = node
        self.elapsed = elapsed
        self.last_hop = last_hop

    def __str__(self) -> str:
        about = f"{self.message_id}: " if self.message_id is not None else ""
        facts = [
            f"to {self.target}" if self.target else "",
            f"after {self.elapsed:.3f} s" if self.elapsed is not None else "",
            f"last seen at {self.last_hop}" if self.last_hop else "",
            f"flow {_short(self.correlation_id)}" if self.correlation_id else "",
            f"node {_short(self.node)}" if self.node else "",
        ]
        known = ", ".join(filter(None, facts))
        return f"{about}{self.detail} ({known})" if known else f"{about}{self.detail}"


class RemoteError(MessageError):
    """A handler failed. ``type_name``, ``detail`` and ``traceback`` are those of its exception."""

    type_name: str = ""
    traceback: str = ""
    actor: str = ""

    def __str__(self) -> str:
        where = f" in {self.actor}" if self.actor else ""
        return f"{self.type_name}{where}: {super().__str__()}"


class BadBody(MessageError):  # noqa: N818 - these names read better where they are caught
    """A body that is not what its message type says, or a message that cannot be written for its receiver."""


class BadSignature(MessageError):  # noqa: N818
    """A message whose signature is wrong, missing or made for another domain. Never holds a key."""

    domain: str = ""

    def __str__(self) -> str:
        return f"{super().__str__()} [domain {self.domain!r}]"


class NoRoute(MessageError):  # noqa: N818
    """Nobody handles the message."""


class Expired(MessageError, TimeoutError):  # noqa: N818
    """The time of a message was over before it was handled or answered."""


class Unreachable(MessageError):  # noqa: N818
    """The node that was to handle the message is gone."""


class Overloaded(MessageError):  # noqa: N818
    """The receiver has no room for the message, or cannot handle it in the time that it has left.

    ``retry_after`` is how many seconds a caller should stay away: an estimate, or 0.1 where there is none.
    """

    retry_after: float = 0.1

    def __str__(self) -> str:
        return f"{super().__str__()}; try again after {self.retry_after:.2f} s"


class Deadlock(MessageError):  # noqa: N818
    """An ask waits for an actor that waits for the ask. The text names the actors in between."""


class NodeStopped(MessageError):  # noqa: N818
    """The node is shutting down."""


class UsageError(FramewireError, ValueError):
    """The caller asked for something that cannot be."""


class ConfigError(UsageError):
    """A configuration that cannot be used: all of its problems, each with the key and what is accepted."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        super().__init__(source, tuple(problems))
        self.source = source
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join([f"{self.source}:", *(f"  - {problem}" for problem in self.problems)])


def _short(raw: bytes) -> str:
    """The first characters of an identity, enough to tell it from others in a log."""
    text = raw.decode("ascii", errors="replace")
    text = text if text.isprintable() and text.isascii() else raw.hex()
    return text if len(text) <= 12 else f"{text[:8]}…"
