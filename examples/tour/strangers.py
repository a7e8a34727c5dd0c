"""Those who are no part of the shop: an old till that speaks V1, recordings, and people who want money."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import zmq
from shop.messages import Charge, Order, Shipped

import framewire as fw
from framewire.wire import decode, encode
from tour.processes import eventually

__all__ = [
    "Recording",
    "Recordings",
    "Wire",
    "forged_charges",
    "put_into_archive",
    "recordings",
    "wire_to",
]

_RECORDED = Path(__file__).with_name("recordings.jsonl")


@dataclass(frozen=True, slots=True)
class Recording:
    """A message as it was on the wire, years ago."""

    name: str
    frames: list[bytes]


@dataclass(frozen=True, slots=True)
class Recordings:
    """What is left of other times: two of each, the first in V1 and the second in V4 where they are whole."""

    orders: list[Recording]
    archived: list[Recording]
    damaged: list[Recording]


def recordings() -> Recordings:
    """The recordings that lie beside this module."""
    lines = [json.loads(line) for line in _RECORDED.read_text().splitlines()]
    found = [Recording(line["name"], [bytes.fromhex(frame) for frame in line["frames"]]) for line in lines]
    return Recordings(found[:-4], found[-4:-2], found[-2:])


def put_into_archive(captures: Path) -> None:
    """Put recordings among the captures, as if they had been captured there."""
    archive = fw.Capture(captures)
    archive.open(b"archive")
    try:
        for each in recordings().archived:
            archive.record("delivered", b"archive", each.frames)
    finally:
        archive.close()


class Wire:
    """A bare connection to a node: whoever has one can send any frames."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket

    def send(self, frames: list[bytes]) -> None:
        self._socket.send_multipart(frames)

    async def answer(self, seconds: float = 15) -> tuple[int, Shipped]:
        """The format and the content of the next answer."""
        await eventually(lambda: self._socket.poll(0), seconds, "the old till got no answer")
        message = decode(self._socket.recv_multipart())
        return message.wire_version, msgspec.msgpack.decode(message.body, type=Shipped)


@contextmanager
def wire_to(address: str) -> Iterator[Wire]:
    """Connect to a node as anybody can who reaches its port."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        socket.connect(address)
        yield Wire(socket)


def forged_charges(count: int) -> Iterator[list[bytes]]:
    """Charges that are signed in the domain payment, by somebody who has to guess its key."""
    guess = fw.KeyRing([fw.DomainKey("payment", secrets.token_bytes(32))], {"payment": ["payment.*"]})
    for number in range(1, count + 1):
        body = msgspec.msgpack.encode(Charge(Order(number, "Mallory", "tea"), cents=1))
        forged = fw.Message(b"payment.charge", body_frames=(body,), correlation_id=f"forged-{number}".encode())
        yield encode(guess.sign(forged))
