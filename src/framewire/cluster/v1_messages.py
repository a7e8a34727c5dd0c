"""Messages in V1 and back: what a V1 node handles, what can be written for it, and which ask an answer belongs to.

V1 has no nodes, partitions, domains, signatures and callback keys, and its versions are text. What it cannot carry
is refused. The callback key is kept here: a V1 answer is matched by its correlation id, as V1's own hub does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

import msgspec

from framewire.errors import BadBody, BadSignature, UsageError
from framewire.node.parcel import RECEIPT
from framewire.node.payloads import type_of
from framewire.wire import Distribution, Message, MessageId, RouterAddress, encode, upgrade
from framewire.wire.message import readable

__all__ = ["V1Asks", "V1Message", "lowered", "v1_handled", "v1_name"]

V1Message = str | type | MessageId
"""A message that a V1 node handles: ``"orders.place"``, ``"orders.place 2.0"``, a message class or a message id."""

TICKS_PER_MILLISECOND = 10_000
MAX_ASKS = 10_000
"""Asks that are remembered for their answers; the oldest makes room."""
LATE_S = 60.0
"""Seconds after its deadline in which the answer to an ask may still come, and be taken for that of another."""


def v1_name(uri: str) -> bytes:
    """Return what a V1 node is called here, as it has no identity on the wire."""
    return b"V1 " + uri.encode()


def v1_handled(messages: Iterable[V1Message], versions: Mapping[bytes, int]) -> dict[MessageId, bytes]:
    """Return the ids of what a V1 node handles, with their versions as text, or raise ``UsageError``."""
    if isinstance(messages, str | bytes | type | MessageId) or not isinstance(messages, Iterable):
        raise UsageError(f"{messages!r} is not a list of messages")
    handled: dict[MessageId, bytes] = {}
    for told in messages:
        identity, version = _told(told, versions)
        number = upgrade(Message(identity, version, wire_version=1), versions).version
        known = handled.setdefault(MessageId(identity, number), version)
        if known != version:
            raise UsageError(
                f"{readable(identity)}: {readable(known)} and {readable(version)} are both v{number!s}"
            )
    if not handled:
        raise UsageError("it handles no message; name at least one")
    return handled


def _told(told: object, versions: Mapping[bytes, int]) -> tuple[bytes, bytes]:
    if isinstance(told, str):
        name, _, version = told.strip().partition(" ")
        if not name or " " in version.strip():
            raise UsageError(f"{told!r} is not like 'orders.place' or 'orders.place 2.0'")
        return name.encode(), version.strip().encode() or b"1.0"
    message = type_of(told).message_id if isinstance(told, type) else told
    if not isinstance(message, MessageId):
        raise UsageError(
            f"{told!r} is neither text such as 'orders.place 2.0', nor a message class, nor a MessageId"
        )
    if message.partition:
        raise UsageError(f"{message}: V1 has no partitions")
    return message.identity, _text(message.version, versions)


def _text(version: int | bytes, versions: Mapping[bytes, int]) -> bytes:
    """Return a version as V1 has it: by its name in ``versions``, the first where there are several, else N.0."""
    if isinstance(version, bytes):
        return version
    return next((text for text, number in versions.items() if number == version), b"%d.0" % version)


def lowered(
    message: Message,
    node: str,
    handled: Mapping[MessageId, bytes],
    versions: Mapping[bytes, int],
    domain_of: Callable[[bytes], str],
) -> list[bytes]:
    """Write a V5 message for a V1 node; ``BadSignature`` or ``BadBody`` with all that V1 cannot carry of it."""
    domains = [
        message.domain or domain_of(message.identity),
        *(domain_of(p.identity) for p in message.callback_points),
    ]
    domain = next(filter(None, domains), "")
    if domain or message.signature:
        what = "it" if domains[0] or not domain else "an answer that it waits for"
        raise BadSignature(
            f"V1 node {node}: V1 has no domains and no signatures, and {what} belongs to domain {domain!r}; take "
            "the message from v1_nodes, or out of the domain"
        )
    if problems := list(_problems(message)):
        raise BadBody(f"V1 node {node}: V1 cannot carry {'; nor '.join(problems)}")
    try:
        return encode(
            message.replace(
                version=handled.get(message.message_id) or _text(message.version, versions),
                body_frames=message.body_frames or (b"",),
                callback_points=tuple(
                    MessageId(point.identity, _text(point.version, versions)) for point in message.callback_points
                ),
                callback_receiver_node_identity=b"",
                callback_key=0,
                # What is left of the time, rounded up: 0 would be no limit at all.
                ttl_ticks=-(-message.ttl_ticks // TICKS_PER_MILLISECOND) * TICKS_PER_MILLISECOND,
                socket_identity=b"",
            ),
            1,
        )
    except UsageError as problem:
        raise BadBody(f"V1 node {node}: this cannot be written as V1: {problem}") from None


def _problems(message: Message) -> Iterable[str]:
    if message.partition:
        yield f"its partition {readable(message.partition)!r}; send it without"
    if message.receiver_node_identity:
        node = readable(message.receiver_node_identity)
        yield f"its receiver node {node!r} (to_node=), and might pass it on; send it to any handler"
    if RECEIPT in message.callback_points:
        yield "the request for a receipt (hub.send), which nobody would confirm; use ask or tell"
    for point in message.callback_points:
        if point.partition:
            yield f"the partition of {point}, which is to be the answer"
    if len(message.body_frames) > 1:
        yield f"a body of {len(message.body_frames)} frames; send one"


class _Ask(msgspec.Struct):
    receiver: bytes
    node: bytes
    key: int
    points: tuple[MessageId, ...]
    peers: set[bytes]
    """The V1 nodes that it was sent to and that are still there."""
    until: float
    """When no answer can come any more."""
    many: bool
    """Whether it was broadcast, so that several answers may come."""
    answered: bool = False


class V1Asks:
    """Asks that went to V1 nodes, by correlation id: who waits for the answer, under which callback key."""

    def __init__(self, node: bytes, versions: Mapping[bytes, int], now: Callable[[], float]) -> None:
        self._node = node
        self._versions = versions
        self._now = now
        self._asks: OrderedDict[tuple[bytes, bytes], _Ask] = OrderedDict()

    def __len__(self) -> int:
        return len(self._asks)

    def add(self, message: Message, peer: bytes) -> None:
        """Remember an ask that goes to a V1 node; ``BadBody`` where its answer could not be told from another's."""
        if not message.callback_points:
            return
        name = (message.correlation_id, message.callback_receiver_identity)
        known = self._asks.get(name)
        same = known is not None and (known.node, known.key) == (
            message.callback_receiver_node_identity,
            message.callback_key,
        )
        if known is not None and same:
            known.peers.add(peer)
            return
        if known is not None and not known.answered and known.peers and self._now() < known.until:
            flow = readable(message.correlation_id)
            raise BadBody(
                f"V1 has no callback key: its answers are matched by correlation id, and flow {flow} has an ask to "
                "a V1 node that may still be answered; ask when it was, or in a flow of its own (correlation_id=)"
            )
        ttl = message.ttl_ticks / TICKS_PER_MILLISECOND / 1000
        self._asks[name] = _Ask(
            message.callback_receiver_identity,
            message.callback_receiver_node_identity,
            message.callback_key,
            message.callback_points,
            {peer},
            self._now() + ttl + LATE_S if ttl else float("inf"),
            message.distribution == Distribution.BROADCAST,
        )
        self._asks.move_to_end(name)
        while len(self._asks) > MAX_ASKS:
            self._asks.popitem(last=False)

    def remove(self, message: Message, peer: bytes) -> None:
        """Forget an ask that did not leave for a V1 node."""
        ask = self._asks.get((message.correlation_id, message.callback_receiver_identity))
        if ask is not None and ask.key == message.callback_key:
            ask.peers.discard(peer)

    def lose(self, peer: bytes) -> None:
        """Wait no longer for what a V1 node that is gone was asked."""
        for ask in self._asks.values():
            ask.peers.discard(peer)

    def answer(self, message: Message, uris: Mapping[bytes, str]) -> Message | None:
        """Return a V1 message of an ask's flow as V5, with the callback of the ask; None where there is none.

        It is the answer, or a message that a V1 node sends on the way to one. ``uris`` has the addresses of the V1
        nodes. ``UsageError`` where a version has no number.
        """
        receiver = message.receiver_identity or message.callback_receiver_identity
        ask = self._asks.get((message.correlation_id, receiver))
        if ask is None:
            return None
        raised = upgrade(message, self._versions)
        ask.answered = not ask.many
        is_answer = bool(message.receiver_identity) or raised.message_id in ask.points
        routing = raised.routing
        if len(ask.peers) == 1 and (not routing or routing[-1].identity == self._node):
            # V1 nodes name themselves only where the routing is traced.
            [peer] = ask.peers
            routing = (*routing, RouterAddress(uris.get(peer, ""), peer))
        return raised.replace(
            receiver_identity=ask.receiver if is_answer else b"",
            receiver_node_identity=ask.node if is_answer else b"",
            callback_receiver_identity=ask.receiver,
            callback_receiver_node_identity=ask.node,
            callback_key=ask.key,
            callback_points=ask.points,
            routing=routing,
        )
