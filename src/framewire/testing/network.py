"""A network in memory: who is connected, who can reach whom, and what happens to messages on the way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from framewire.errors import ConfigError, Unreachable, UsageError
from framewire.node.clock import Clock, LoopClock
from framewire.node.mailbox import Room
from framewire.node.transport import Port, Registration
from framewire.testing.faults import Faults
from framewire.testing.journal import Fate, Journal
from framewire.testing.link import Interceptor, Link, Medium
from framewire.wire import MessageId
from framewire.wire.message import readable

__all__ = ["MemoryNetwork"]


class MemoryNetwork:
    """Connects nodes of one event loop. Every node reaches every other, until told otherwise.

    ``limit`` is how many messages each link holds before its sender must wait, ``lost_after`` how many seconds it
    takes until nodes notice that another is dead or cut off, ``keep`` how many records the journal keeps.
    """

    def __init__(
        self,
        *,
        faults: Faults | None = None,
        clock: Clock | None = None,
        limit: int = 1000,
        lost_after: float = 0.0,
        keep: int = 10_000,
    ) -> None:
        problems = [
            f"{name}: {value!r}; must be {accepted}"
            for name, accepted, value, good in (
                ("limit", "at least 1", limit, limit >= 1),
                ("lost_after", "0 or more seconds", lost_after, lost_after >= 0),
                ("keep", "0 or more", keep, keep >= 0),
            )
            if not good
        ]
        if problems:
            raise ConfigError("network", problems)
        self.journal = Journal(keep)
        self.lost_after = lost_after
        self._medium = Medium(clock or LoopClock(), self.journal, limit)
        self._links: dict[tuple[bytes, bytes], Link] = {}
        self._faults: list[tuple[bytes | None, bytes | None, Faults]] = [(None, None, faults or Faults())]
        self._partitioned: set[Link] = set()

    @property
    def members(self) -> tuple[bytes, ...]:
        """The nodes that are connected."""
        return tuple(self._medium.ports)

    @property
    def failures(self) -> Sequence[Exception]:
        """What nodes raised when something was handed to them."""
        return tuple(self._medium.failures)

    # --- what tests do to it

    def disturb(self, faults: Faults, sender: bytes | None = None, receiver: bytes | None = None) -> None:
        """Let these faults work from now on: everywhere, or on the links of a certain sender or receiver."""
        if sender is None and receiver is None:
            self._faults.clear()
        self._faults.append((sender, receiver, faults))
        for link in self._links.values():
            if sender in (None, link.sender) and receiver in (None, link.receiver):
                link.disturb(faults)

    def intercept(self, interceptor: Interceptor) -> None:
        """Let a function see every message and change it, or take it away by returning None."""
        self._medium.interceptors.append(interceptor)

    def partition(self, one: Iterable[bytes], other: Iterable[bytes], *, lost_after: float | None = None) -> None:
        """Cut the nodes of one group off from those of the other; ``math.inf`` for nobody ever noticing."""
        one, other = tuple(one), tuple(other)
        both = set(one) & set(other)
        if both:
            names = ", ".join(sorted(map(readable, both)))
            raise UsageError(f"{names}: in both groups, and a node cannot be cut off from itself")
        seconds = self._noticed_after(lost_after)
        for here in one:
            for there in other:
                for link in (self.link(here, there), self.link(there, here)):
                    link.sever(Fate.CUT_OFF, seconds)
                    self._partitioned.add(link)

    def heal(self) -> None:
        """Let everybody reach everybody again; they learn what has changed meanwhile."""
        healed, self._partitioned = self._partitioned, set()
        for link in healed:
            link.restore(self._registrations(link.sender))

    def kill(self, node: bytes, *, lost_after: float | None = None) -> None:
        """Take a node away without a goodbye; the others notice after a while, or never for ``math.inf``."""
        if self._medium.ports.pop(node, None) is None:
            raise UsageError(f"{readable(node)}: no such node is connected")
        seconds = self._noticed_after(lost_after)
        for link in self._links_from(node):
            link.sever(Fate.LOST, seconds)
        for link in self._links_to(node):
            link.forget()

    # --- what transports ask of it

    def join(self, port: Port) -> None:
        """Connect a node: the others learn what it handles, and it learns what they do."""
        node = port.identity
        if node in self._medium.ports:
            raise UsageError(f"identity: {readable(node)} is already connected")
        others = self.members
        self._medium.ports[node] = port
        for other in others:
            if self.link(node, other).told:  # a node that was killed is back before anybody noticed
                self.link(node, other).notice()
            self.link(node, other).restore(self._registrations(node))
            self.link(other, node).restore(self._registrations(other))

    def leave(self, node: bytes) -> None:
        """Disconnect a node in good order: the others hear its last messages, and then its goodbye."""
        if self._medium.ports.pop(node, None) is None:
            return
        for link in self._links_from(node):
            link.say_goodbye()
        for link in self._links_to(node):
            link.forget()

    def send(self, sender: bytes, receiver: bytes, frames: list[bytes]) -> Room | None:
        """Take a message; what is returned is done when there is room for it."""
        if sender not in self._medium.ports:
            raise Unreachable("this node is not connected", node=sender)
        if (sender, receiver) not in self._links:
            raise Unreachable(f"node {readable(receiver)} is not known", node=sender)
        if receiver not in self._medium.ports and not self.link(receiver, sender).told:
            raise Unreachable(f"node {readable(receiver)} is gone", node=sender)
        return self.link(sender, receiver).send(frames)

    def announce(self, node: bytes, registrations: Iterable[Registration]) -> None:
        """Tell all others what a node handles."""
        news = tuple(registrations)
        for link in self._links_to_others(node):
            link.announce(news)

    def withdraw(self, node: bytes, registrations: Iterable[Registration], grace: float | None = None) -> None:
        """Tell all others what a node no longer handles."""
        news = tuple(registrations)
        for link in self._links_to_others(node):
            link.withdraw(news, grace)

    def discover(self, node: bytes, message: MessageId, receiver: bytes) -> None:
        """Let all others tell a node whether they handle a message, or have a receiver."""

        def answer(asked: Port) -> None:
            known = [
                (r, handled) for r, handled in asked.registrations if r.receiver == receiver or message in handled
            ]
            if known:
                self.link(asked.identity, node).announce(known)

        for link in self._links_to_others(node):
            link.tell(answer)

    # --- what is under way

    def link(self, sender: bytes, receiver: bytes) -> Link:
        """The link from one node to another."""
        known = self._links.get((sender, receiver))
        if known is None:
            fitting = [f for s, r, f in self._faults if s in (None, sender) and r in (None, receiver)]
            known = self._links[sender, receiver] = Link(self._medium, sender, receiver, fitting[-1])
        return known

    def unsettled(self) -> Iterator[str]:
        """What is still under way, and who does not know yet what others handle."""
        now = self._medium.clock.time()
        for link in self._links.values():
            name = f"{readable(link.sender)} → {readable(link.receiver)}"
            registrations = self._registrations(link.sender)
            if link.missed:
                yield f"{name}: is gone or cut off, which is not noticed yet"
            if link.under_way:
                wait = (link.due or now) - now
                yield f"{name}: {link.under_way} under way" + (f", the next in {wait:.3f} s" if wait > 0 else "")
            elif link.receiver in self._medium.ports and registrations is not None and not link.cut:
                current = {route: frozenset(messages) for route, messages in registrations}
                if link.told != current:
                    yield f"{name}: has not told all that it handles"

    def _registrations(self, node: bytes) -> Sequence[Registration] | None:
        port = self._medium.ports.get(node)
        return None if port is None else port.registrations

    def _noticed_after(self, lost_after: float | None) -> float:
        seconds = self.lost_after if lost_after is None else lost_after
        if math.isnan(seconds) or seconds < 0:
            raise UsageError(f"lost_after: {seconds!r} is not a number of seconds")
        return seconds

    def _links_from(self, node: bytes) -> list[Link]:
        return [link for link in self._links.values() if link.sender == node]

    def _links_to(self, node: bytes) -> list[Link]:
        return [link for link in self._links.values() if link.receiver == node]

    def _links_to_others(self, node: bytes) -> list[Link]:
        return [link for link in self._links_from(node) if link.receiver in self._medium.ports]
