"""Every error that framewire raises on purpose.

    FramewireError                 catch this for all of them
    ├── WireError                  the peer's bytes are not a message
    ├── BadSignature               the message is not from who it claims to be from
    └── UsageError (ValueError)    the caller asked for something that cannot be
        └── ConfigError            a configuration is wrong; lists every problem at once

The split is by whose fault it is: ``UsageError`` is mended in your code or configuration, the others happen
to correct programs and are handled.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["BadSignature", "ConfigError", "FramewireError", "UsageError", "WireError"]


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


class BadSignature(FramewireError):  # noqa: N818 - the public name; it reads better where it is caught
    """A message whose signature is wrong, missing or made for another domain. Never holds a key."""

    def __init__(self, domain: str, message_id: object, detail: str) -> None:
        super().__init__(domain, message_id, detail)
        self.domain = domain
        self.message_id = message_id
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.message_id} in domain {self.domain!r}: {self.detail}"


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
