"""Signatures of made-up messages. A MAC is the one thing here that is computed message by message."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framewire.synth.catalogue import DOMAINS
from framewire.synth.cluster import MadeUpCluster
from framewire.synth.pool import Ints, Pool
from framewire.synth.transfers import NEVER, Transfers

__all__ = ["Signer"]


class Signer:
    """Signs with the keys of a cluster."""

    def __init__(self, cluster: MadeUpCluster) -> None:
        self._cluster = cluster
        self._macs = {
            number: _mac(cluster.keys[domain.name], domain.algorithm)
            for number, domain in enumerate(DOMAINS)
            if domain.algorithm
        }

    def add(self, pool: Pool, transfers: Transfers, bodies: Ints) -> Ints:
        """Put the signatures into the pool; the number of each message's, which is empty where there is none."""
        cluster, at = self._cluster, np.full(len(transfers), Pool.EMPTY, np.int32)
        signs = np.where(transfers.remote & (transfers.version != 1), cluster.signs[transfers.kind], NEVER)
        prefixes = cluster.signed_prefix_at[transfers.kind, transfers.own_partition]
        callers = np.where(transfers.answer != NEVER, cluster.hub_at[transfers.origin], Pool.EMPTY)
        for domain, mac in self._macs.items():
            ours = np.flatnonzero(signs == domain)
            if len(ours):
                signed = pool.take(np.concatenate([prefixes[ours], bodies[ours], callers[ours]]))
                parts = [signed.slice(place * len(ours), len(ours)) for place in range(3)]
                contents = pc.binary_join_element_wise(*parts, b"").to_pylist()
                at[ours] = pool.add(pa.array(list(map(mac, contents)), pa.binary())) + np.arange(len(ours))
        return at


def _mac(key: bytes, algorithm: str) -> Callable[[bytes], bytes]:
    """A function that makes MACs with one key: it starts from states that have the key in them already.

    Copying two states takes half the time of ``hmac.digest``, which pads and hashes the key for every message.
    """
    size = hashlib.new(algorithm).block_size
    padded = key.ljust(size, b"\0")
    inner = hashlib.new(algorithm, bytes(byte ^ 0x36 for byte in padded)).copy
    outer = hashlib.new(algorithm, bytes(byte ^ 0x5C for byte in padded)).copy

    def mac(content: bytes) -> bytes:
        first = inner()
        first.update(content)
        second = outer()
        second.update(first.digest())
        return second.digest()

    return mac
