"""The made-up cluster: its nodes and their clocks, who handles what, and the keys of its domains.

Everything comes from the seed. The keys do so too, and are therefore no secret: they sign made-up messages.
"""

from __future__ import annotations

import hashlib
import uuid
from functools import cached_property

import numpy as np

from framewire.synth.catalogue import DOMAINS, GATHERS, HOT, KINDS, PARTITIONS
from framewire.synth.options import Options
from framewire.synth.pool import Ints, Pool

__all__ = ["MadeUpCluster", "generator"]

_HANDLING_NODES = 3
"""How many nodes take turns in handling a message type."""
_ASKED_NODES = 8
"""How many nodes a broadcast reaches at most."""
_SHORTEST_WAY, _LONGEST_WAY = 1200, 2500
"""Microseconds that a message takes at least between two nodes, the same in both directions. Estimates of the
clocks may be half a millisecond off, so more than a whole one keeps the order of events beyond doubt."""


class MadeUpCluster:
    """What is the same for all flows of a run. Numbers of nodes and kinds index its arrays."""

    def __init__(self, options: Options) -> None:
        rng = generator(options.seed, "cluster")
        count = options.nodes
        self.count = count
        self.seed = options.seed
        self.identities = [_guid(rng) for _ in range(count)]
        self.uris = [f"tcp://10.0.{number // 250}.{number % 250 + 1}:7000" for number in range(count)]
        self.hubs = [b"\x00" + rng.bytes(16) for _ in range(count)]
        self.flow_suffixes = [_guid(rng)[13:] for _ in range(count)]
        self.first_flows = rng.integers(0, 2**32, count, dtype=np.int64)
        self.offsets = rng.integers(-options.skew_us, options.skew_us + 1, count, dtype=np.int64)
        """Microseconds that each node's clock is ahead of the true time."""
        self.ways = _symmetric(rng.integers(_SHORTEST_WAY, _LONGEST_WAY, (count, count), dtype=np.int64))
        """Microseconds that a message takes at least from one node to another."""
        self.hosts = rng.integers(0, count, (len(KINDS), len(PARTITIONS), _HANDLING_NODES), dtype=np.int64)
        """The nodes that handle each kind in each partition; a hot partition is one node's."""
        self.hosts[:, HOT] = 1
        self.asked = np.stack([rng.permutation(count)[:_ASKED_NODES] for _ in GATHERS])
        """The nodes that handle each kind of broadcast."""
        self.keys = {
            domain.name: hashlib.sha256(f"framewire synth {options.seed} {domain.name}".encode()).digest()
            for domain in DOMAINS
            if domain.algorithm
        }
        self._actors = [b"\x01" + rng.bytes(16) for _ in range(len(KINDS) * count)]
        self._sockets = [b"\x00" + rng.bytes(4) for _ in range(count * count)]
        self._index()

    def _index(self) -> None:
        pool = Pool()
        versions = [kind.version.to_bytes(2, "little") for kind in KINDS]
        count = self.count
        self.node_at: Ints = pool.add_all(self.identities)
        self.uri_at: Ints = pool.add_all(uri.encode() for uri in self.uris)
        self.hub_at: Ints = pool.add_all(self.hubs)
        self.actor_at: Ints = pool.add_all(self._actors).reshape(len(KINDS), count)
        self.socket_at: Ints = pool.add_all(self._sockets).reshape(count, count)
        self.identity_at: Ints = pool.add_all(kind.identity.encode() for kind in KINDS)
        self.version_at: Ints = pool.add_all(versions)
        self.version_text_at: Ints = pool.add_all(kind.version_text for kind in KINDS)
        self.domain_at: Ints = np.where(
            [bool(kind.domain) for kind in KINDS], pool.add_all(kind.domain.encode() for kind in KINDS), Pool.EMPTY
        )
        self.partition_at: Ints = pool.add_all(PARTITIONS)
        self.partition_at[0] = Pool.EMPTY
        self.signed_prefix_at: Ints = pool.add_all(
            kind.identity.encode() + version + partition
            for kind, version in zip(KINDS, versions, strict=True)
            for partition in PARTITIONS
        ).reshape(len(KINDS), len(PARTITIONS))
        self.nobody_at = pool.add_all([b"00000000-0000-0000-0000-000000000000"])[0]
        self._parts = pool.parts

    def pool(self) -> Pool:
        """A new pool with all that the cluster's own arrays point to."""
        return Pool(self._parts)

    @cached_property
    def signs(self) -> Ints:
        """The number of the domain that signs each kind; -1 where none does."""
        numbers = {domain.name: n for n, domain in enumerate(DOMAINS) if domain.algorithm}
        return np.array([numbers.get(kind.domain, -1) for kind in KINDS])

    def key_file(self) -> str:
        """The keys as ``framewire.security`` reads them."""
        lines = [
            "# Keys of made-up domains, derived from the seed of a run of `framewire synth`: they protect nothing."
        ]
        for domain in DOMAINS:
            names = ", ".join(f'"{kind.identity}"' for kind in KINDS if kind.domain == domain.name)
            lines += ["", f"[{domain.name}]"]
            if domain.algorithm:
                lines += [f'key = "hex:{self.keys[domain.name].hex()}"', f'algorithm = "{domain.algorithm}"']
            else:
                lines.append("unsigned = true")
            lines.append(f"identities = [{names}]")
        return "\n".join(lines) + "\n"


def generator(seed: int, *what: int | str) -> np.random.Generator:
    """Random numbers for one purpose of one run, whatever else is made in whatever order."""
    words = hashlib.sha256(repr((seed, *what)).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(words, "little")))


def _guid(rng: np.random.Generator) -> bytes:
    return str(uuid.UUID(bytes=rng.bytes(16), version=4)).encode()


def _symmetric(ways: Ints) -> Ints:
    return np.triu(ways, 1) + np.triu(ways, 1).T
