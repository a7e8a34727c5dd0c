"""Sends recorded messages to a live cluster: in their order, at a rate, and tells what became of each.

One sender is one node of the cluster, on a thread of its own; whoever sends blocks. Messages are under way side by
side, but leave in the order in which they are given, so that order is kept as far as a cluster keeps it.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from framewire.capture.bodies import cut_of
from framewire.errors import ConfigError, FramewireError, Unreachable
from framewire.security import KeyRing
from framewire.wire import MessageId

if TYPE_CHECKING:
    from framewire.cluster import Client
    from framewire.node import DeadLetter

__all__ = ["Outgoing", "Sender", "Tally", "Target", "refusal"]

_GRACE = 3.0
"""Seconds that a message without a route is held: a node that has just come does not know everyone yet."""
_EXAMPLES = 5
_SERVICE = (b"KINO.", b"FRAMEWIRE.")
_NOT_GENUINE = ("invalid", "unknown_domain")
_LOOK_AGAIN = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A cluster, and how to send to it."""

    rendezvous: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    bind: str | None = None
    """Where the sending node listens; needed where the cluster is on other machines."""
    keys: str | None = None
    """A key file to sign with, where the sending process can read it."""
    receipts: bool = True
    timeout: float = 30.0
    """Seconds for a receipt; also what a message has to live."""
    rate: float | None = None
    """Messages a second, at most."""
    in_flight: int = 1000
    """Messages whose receipts are awaited at a time."""

    def __post_init__(self) -> None:
        problems = [] if self.rendezvous or self.peers else ["rendezvous or peers: one of them must be given"]
        problems += [f"{name}: {value!r}; must be more than 0" for name, value in self._numbers() if not value > 0]
        if problems:
            raise ConfigError("sending", problems)

    def _numbers(self) -> list[tuple[str, float]]:
        told = {"timeout": self.timeout, "rate": self.rate, "in_flight": self.in_flight}
        return [(name, value) for name, value in told.items() if value is not None]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message to send."""

    message_id: MessageId
    body: bytes
    correlation_id: bytes | None
    """None for a new one."""
    broadcast: bool = False
    body_frames: tuple[bytes, ...] | None = None
    """The frames of the body where it has none or several; None for one, which is ``body``."""

    @property
    def digest(self) -> bytes:
        """What tells it from other messages, in 16 bytes."""
        told = hashlib.blake2b(digest_size=16)
        version = str(self.message_id.version).encode()
        flow = b"" if self.correlation_id is None else self.correlation_id
        for part in (self.message_id.identity, version, self.message_id.partition, flow, self.body):
            told.update(len(part).to_bytes(8, "big") + part)
        if self.body_frames is not None:
            told.update(b"frames" + b"".join(len(frame).to_bytes(8, "big") for frame in self.body_frames))
        return told.digest()


def refusal(
    identity: bytes, body: bytes, signature_state: str | None, body_frames: Iterable[bytes] | None = None
) -> str | None:
    """Why a recorded message must not be sent again; None if it may be. ``body_frames`` as in ``Outgoing``."""
    if identity.startswith(_SERVICE):
        return "it is a service message, by which nodes run the cluster"
    if signature_state in _NOT_GENUINE:
        return f"its signature was {signature_state}, and sending it would sign it anew"
    if any(cut_of(frame) is not None for frame in ((body,) if body_frames is None else body_frames)):
        return "its body was cut when it was recorded"
    return None


@dataclass(slots=True)
class Tally:
    """What became of messages."""

    confirmed: int = 0
    """The node that handles it has it."""
    told: int = 0
    """Sent without asking for a receipt: broadcasts, and all if receipts are not wanted."""
    skipped: int = 0
    """Had been sent before, as a ledger says."""
    failed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    """The first few failures, in words."""

    def fail(self, kind: str, detail: str, count: int = 1) -> None:
        """Count messages that did not get through."""
        self.failed += count
        self.reasons[kind] += count
        if len(self.examples) < _EXAMPLES:
            self.examples.append(detail)

    def add(self, other: Tally) -> None:
        """Count what another one counted."""
        self.confirmed += other.confirmed
        self.told += other.told
        self.skipped += other.skipped
        self.failed += other.failed
        self.reasons.update(other.reasons)
        self.examples = (self.examples + other.examples)[:_EXAMPLES]

    def __str__(self) -> str:
        parts = [f"{self.confirmed:,} confirmed"]
        parts += [f"{count:,} {what}" for what, count in (("told", self.told), ("skipped", self.skipped)) if count]
        why = ", ".join(f"{kind} {count:,}" for kind, count in self.reasons.most_common())
        return ", ".join([*parts, f"{self.failed:,} failed" + (f" ({why})" if why else "")])


class Sender:
    """A node that sends what it is given. Use it with ``with``: at the end it waits for what is under way."""

    def __init__(self, target: Target, *, now: Callable[[], float] = time.monotonic) -> None:
        self._target = target
        self._now = now
        self._awaited: deque[tuple[Future[Any], Outgoing, Callable[[], object] | None]] = deque()
        self._slot = 0.0
        self._died: Counter[str] = Counter()
        self.tally = Tally()

    def __enter__(self) -> Self:
        self._client = _client(self._target)
        self._client.node.on_dead_letter(self._note_death)
        try:
            self._meet_someone()
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._settle()
            else:
                self._take_what_is_there()
        finally:
            self._client.close()
        # Whatever was still held has died by now, too.
        for reason, count in self._died.items():
            self.tally.told = max(0, self.tally.told - count)
            self.tally.fail(reason, f"{count} sent without a receipt became dead letters here: {reason}", count)

    def send(self, message: Outgoing, then: Callable[[], object] | None = None) -> None:
        """Send a message when its turn comes; ``then`` is called, here, once it is known to be through."""
        self._pace()
        frames = message.body_frames
        payload_type = _payload_type(message.message_id, several=frames is not None)
        try:
            payload = payload_type(message.body if frames is None else frames)
            if message.broadcast:
                self._client.broadcast(payload, ttl=self._target.timeout, correlation_id=message.correlation_id)
            elif not self._target.receipts:
                self._client.tell(payload, ttl=self._target.timeout, correlation_id=message.correlation_id)
            else:
                self._await_one(message, payload, then)
                return
        except FramewireError as problem:
            self._failed(message, problem)
            return
        self.tally.told += 1
        if then is not None:
            then()

    def _await_one(self, message: Outgoing, payload: object, then: Callable[[], object] | None) -> None:
        from framewire.node.plans import Receipt  # noqa: PLC0415 - see _client

        while len(self._awaited) >= self._target.in_flight:
            self._take(*self._awaited.popleft())
        timeout = self._target.timeout
        promise = self._client.start(payload, Receipt, timeout=timeout, correlation_id=message.correlation_id)
        self._awaited.append((promise, message, then))
        while self._awaited and self._awaited[0][0].done():
            self._take(*self._awaited.popleft())

    def _take_what_is_there(self) -> None:
        """Count the receipts that have come, when something else has ended it all."""
        for promise, message, then in self._awaited:
            if promise.done():
                self._take(promise, message, then)

    def _take(self, promise: Future[Any], message: Outgoing, then: Callable[[], object] | None) -> None:
        try:
            promise.result()
        except FramewireError as problem:
            self._failed(message, problem)
            return
        self.tally.confirmed += 1
        if then is not None:
            then()

    def _failed(self, message: Outgoing, problem: FramewireError) -> None:
        told = str(problem)
        about = str(message.message_id)
        self.tally.fail(type(problem).__name__, told if about in told else f"{about}: {told}")

    def _settle(self) -> None:
        while self._awaited:
            self._take(*self._awaited.popleft())
        if self.tally.told:
            # What has no route is held for so long, and nothing tells when it leaves.
            time.sleep(_GRACE)

    def _note_death(self, letter: DeadLetter) -> None:
        """Those that wait for a receipt are told by their promise."""
        if letter.message is not None and not letter.message.callback_points:
            self._died[str(letter.reason)] += 1

    def _pace(self) -> None:
        if self._target.rate is None:
            return
        self._slot = max(self._slot + 1 / self._target.rate, self._now())
        while (left := self._slot - self._now()) > 0:
            time.sleep(left)

    def _meet_someone(self) -> None:
        """A broadcast of a node that knows nobody reaches nobody, so wait until it knows somebody."""
        deadline = self._now() + self._target.timeout
        while not self._client.stats().peers:
            if self._now() > deadline:
                places = ", ".join((*self._target.rendezvous, *self._target.peers))
                raise Unreachable(
                    f"no node was found through {places} in {self._target.timeout:g} s, so nothing was sent; "
                    f"see that it is the right address and that the cluster can reach this machine (bind)"
                )
            time.sleep(_LOOK_AGAIN)


def _client(target: Target) -> Client:
    from framewire.cluster import Client  # noqa: PLC0415 - the driver plans sending without ever loading ZeroMQ

    options: dict[str, Any] = {} if target.bind is None else {"bind": target.bind}
    keyring = None if target.keys is None else KeyRing.from_file(target.keys)
    return Client(
        rendezvous=target.rendezvous,
        peers=target.peers,
        keyring=keyring,
        route_grace=_GRACE,
        hold=target.in_flight + 1,
        timeout=target.timeout,
        **options,
    )


@lru_cache(maxsize=4096)
def _payload_type(message_id: MessageId, *, several: bool) -> Callable[[Any], object]:
    """A class for the bodies of one message: hubs know a message by the class of what it carries."""
    from framewire.node.buffers import Buffers  # noqa: PLC0415 - see _client
    from framewire.node.payloads import declare  # noqa: PLC0415 - see _client

    if several:
        made: type = type("RecordedFrames", (Buffers,), {})
        declare(made, message_id, "raw", tuple, made, several=True)
    else:
        made = type("Recorded", (bytes,), {})
        declare(made, message_id, "raw", bytes, made)
    return made
