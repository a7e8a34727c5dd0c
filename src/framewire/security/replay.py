"""Signed messages that have been here before: recorded on the wire by somebody, and sent once more.

A signature covers content and no nonce, so two honest messages with the same content have the same one. What tells
them apart is not signed: the flow, the callback key, the node that sent it, and the connection that it came on. A
node that says the same thing twice says it on one connection, where nothing is ever transmitted twice; so the same
message on another connection is a replay. Where content never repeats (``KeyRing(once=...)``) the signature alone
decides, and no change to what is not signed helps.
"""

from __future__ import annotations

from framewire.wire import Message

__all__ = ["Replays", "token"]

_ONCE = b"\0"
"""Stands for the connection of what may come only once, and is none."""


def token(message: Message, *, unique: bool) -> int:
    """What a message is known again by."""
    if unique:
        return hash(message.signature)
    sender = message.routing[-1].identity if message.routing else b""
    return hash((message.signature, message.correlation_id, message.callback_key, sender))


class Replays:
    """The signed messages that a node has had, for ``window`` seconds at least unless there were too many.

    Only what was found good is remembered, so nobody without a key makes it forget. It has two halves of ``most``
    / 2 messages each; when one is full, or old, the other is forgotten.
    """

    __slots__ = ("_half", "_now", "_old", "_until", "_window")

    def __init__(self, window: float, most: int) -> None:
        self._window = window
        self._half = max(1, most // 2)
        self._now: dict[int, bytes] = {}
        self._old: dict[int, bytes] = {}
        self._until = 0.0

    def __len__(self) -> int:
        return len(self._now) + len(self._old)

    def is_new(self, token: int, connection: bytes, now: float) -> bool:
        """Whether a message is no replay; it is remembered. Without a connection it may come only once."""
        if now >= self._until:
            self._turn(now)
        known = self._now.get(token) or self._old.get(token)
        if known is None:
            if len(self._now) >= self._half:
                self._turn(now)
            self._now[token] = connection or _ONCE
            return True
        return known == connection

    def _turn(self, now: float) -> None:
        # After a long silence both halves are too old.
        self._old = self._now if now < self._until + self._window else {}
        self._now = {}
        self._until = now + self._window
