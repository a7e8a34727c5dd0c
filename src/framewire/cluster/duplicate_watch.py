"""Notices, on a rendezvous server, that two nodes of one identity speak.

A node that was killed and started anew speaks from another address, too, and what it had sent may still be under
way. So when an identity speaks from a second address, over a second connection, the server asks for the routes of
that identity, as any node may. Only where the first connection speaks again after that are there two.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass

from framewire.cluster import service
from framewire.errors import WireError
from framewire.wire import MessageId, decode, encode
from framewire.wire.message import readable

__all__ = ["ASK_AFTER_S", "DuplicateWatch"]

log = logging.getLogger("framewire.rendezvous")

ASK_AFTER_S = 0.1
"""Between the second address and the question: what was sent before is read by then."""
ASK_EVERY_S = 1.0
"""Between two questions for one identity."""
MAX_IDENTITIES = 10_000
TELL_EVERY_S = 10.0
"""Between two reports of one identity; and a tenth of that between any two."""
_MAX_FIELDS = 8
"""Of a body that are looked at: address and identity are the first two."""
_FIELDS = {service.REGISTER_EXTERNAL_ROUTE: (1, 2), service.REQUEST_CLUSTER_ROUTES: (1, 2)}
"""The numbers of the fields with a node's address and its identity."""


@dataclass(slots=True)
class _Speaker:
    connection: bytes
    uri: bytes
    before: tuple[bytes, bytes] | None = None
    """The connection and the address from which the identity spoke before."""
    asked_at: float | None = None
    told_at: float = float("-inf")


class DuplicateWatch:
    """Remembers from where each identity has spoken last; nothing depends on it but what is logged and counted."""

    def __init__(self) -> None:
        self._speakers: OrderedDict[bytes, _Speaker] = OrderedDict()
        self._told_at = float("-inf")
        self.found = 0
        """How often two nodes of one identity were noticed."""

    def heard(self, connection: bytes, kind: MessageId, frames: list[bytes], now: float) -> list[bytes] | None:
        """Take note of what a node said; return the question to ask ``ASK_AFTER_S`` later, if there is one."""
        numbers = _FIELDS.get(kind)
        if numbers is None:
            return None
        uri, identity = _read(frames, *numbers)
        if not uri or not identity or len(identity) > 255:
            return None
        speaker = self._speakers.get(identity)
        if speaker is None:
            self._speakers[identity] = _Speaker(connection, uri)
            if len(self._speakers) > MAX_IDENTITIES:
                self._speakers.popitem(last=False)
            return None
        self._speakers.move_to_end(identity)
        if uri == speaker.uri:
            speaker.connection = connection  # it may have connected anew
            return None
        if speaker.before == (connection, uri):
            if speaker.asked_at is not None and now >= speaker.asked_at:
                self._tell(identity, speaker, now)
            return None
        speaker.before = (speaker.connection, speaker.uri)
        speaker.connection, speaker.uri = connection, uri
        if speaker.asked_at is not None and now < speaker.asked_at + ASK_EVERY_S:
            return None
        speaker.asked_at = now + ASK_AFTER_S
        return encode(
            service.service_message(service.REQUEST_NODE_ROUTES, target_uri="", target_node_identity=identity)
        )

    def _tell(self, identity: bytes, speaker: _Speaker, now: float) -> None:
        if now - speaker.told_at < TELL_EVERY_S:
            return
        speaker.told_at = now
        self.found += 1
        if now - self._told_at < TELL_EVERY_S / 10:
            return
        self._told_at = now
        _, first = speaker.before or (b"", b"")
        log.error(
            "there are two nodes of the identity %r, at %s and at %s: messages for one reach the other. Stop one "
            "of them, or give it an identity of its own",
            readable(identity),
            readable(first),
            readable(speaker.uri),
        )


def _read(frames: list[bytes], first: int, second: int) -> tuple[bytes, bytes]:
    """Read two fields of bytes from the beginning of a body, which may be long; empty where they are not there."""
    try:
        body = decode(frames).body
    except WireError:
        return b"", b""
    found: dict[int, bytes] = {}
    at = 0
    for _ in range(_MAX_FIELDS):
        tag, at = _number(body, at)
        length, at = _number(body, at)
        if tag & 7 != 2 or at + length > len(body):
            break
        found[tag >> 3] = bytes(body[at : at + length])
        if first in found and second in found:
            break
        at += length
    return found.get(first, b""), found.get(second, b"")


def _number(body: bytes, at: int) -> tuple[int, int]:
    """Read a varint of up to five bytes; what follows it. Past the end, zero."""
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(body):
            return 0, at
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            break
    return value, at
