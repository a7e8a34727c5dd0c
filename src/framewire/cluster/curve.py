"""CURVE between nodes: which socket options it takes, and who answers ZeroMQ when somebody connects.

ZeroMQ asks, over a socket of its own in each context (ZAP), whether a key may connect. The answer is given on a
thread, for a handler that blocks the event loop must not keep others from connecting.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import zmq
from zmq.utils import z85

from framewire.security.curve import Allowed, Curve, CurveKeys, KeyPair

__all__ = ["PLAIN", "Doorkeeper", "Mechanism", "mechanism", "new_pair"]

log = logging.getLogger("framewire.security")

_ZAP = "inproc://zeromq.zap.01"
_DOMAIN = b"framewire"
_LOG_EVERY = 1.0

Options = Mapping[str, int | bytes]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What sockets are told before they listen, and before they connect; nothing where there is no CURVE."""

    listening: Options = field(default_factory=dict, repr=False)
    connecting: Options = field(default_factory=dict, repr=False)

    @property
    def is_curve(self) -> bool:
        return bool(self.listening)


PLAIN = Mechanism()


def mechanism(keys: CurveKeys) -> Mechanism:
    """The options of CURVE with these keys."""
    return Mechanism(
        listening={"CURVE_SERVER": 1, "CURVE_SECRETKEY": keys.cluster.secret, "ZAP_DOMAIN": _DOMAIN},
        connecting={
            "CURVE_SERVERKEY": keys.cluster.public,
            "CURVE_PUBLICKEY": keys.own.public,
            "CURVE_SECRETKEY": keys.own.secret,
        },
    )


def new_pair() -> KeyPair:
    """A new pair of keys."""
    return KeyPair(*zmq.curve_keypair())


class Doorkeeper:
    """Says who may connect to the sockets of a context, for as long as it is open. ``mechanism`` is theirs."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], curve: Curve) -> None:
        keys = curve.read()
        self.mechanism = mechanism(keys)
        self._allowed = Allowed(keys.allowed)
        self._directory = keys.allowed
        self._door = context.socket(zmq.REP)
        self._door.linger = 0
        self._door.bind(_ZAP)
        address = f"inproc://framewire-doorkeeper-{id(self)}"
        self._bell = context.socket(zmq.PAIR)
        self._bell.bind(address)
        self._ringer = context.socket(zmq.PAIR)
        self._ringer.connect(address)
        self._logged, self._unlogged = -_LOG_EVERY, 0
        self._thread = threading.Thread(target=self._run, name="framewire doorkeeper", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let nobody in any more."""
        self._ringer.send(b"")
        self._thread.join()
        self._ringer.close(0)

    def _run(self) -> None:
        poller = zmq.Poller()
        for source in (self._door, self._bell):
            poller.register(source, zmq.POLLIN)
        try:
            while self._bell not in dict(poller.poll()):
                self._door.send_multipart(self._answer(self._door.recv_multipart()))
        except zmq.ContextTerminated:
            log.debug("the context is gone before its doorkeeper")
        finally:
            self._door.close(0)
            self._bell.close(0)

    def _answer(self, asked: list[bytes]) -> list[bytes]:
        version, request, _, address, _, how, *credentials = asked
        name = None
        if how == b"CURVE" and len(credentials) == 1 and len(credentials[0]) == 32:
            key = z85.encode(credentials[0])
            try:
                name = self._allowed.name_of(key)
            except Exception:
                log.exception("who may connect cannot be told, so nobody may")
            if name is None:
                self._tell(address.decode(errors="replace"), key.decode())
        if name is None:
            return [version, request, b"400", b"not allowed", b"", b""]
        return [version, request, b"200", b"OK", name.encode(), b""]

    def _tell(self, address: str, key: str) -> None:
        now = time.monotonic()
        if now - self._logged < _LOG_EVERY:
            self._unlogged += 1
            return
        more = f" (and {self._unlogged} before)" if self._unlogged else ""
        self._logged, self._unlogged = now, 0
        log.warning(
            "a connection from %s is refused: the public key %s is not in %s%s", address, key, self._directory, more
        )
