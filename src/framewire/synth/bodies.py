"""Bodies of made-up messages: MessagePack maps of an id that no other has and some text; exceptions are BSON."""

from __future__ import annotations

from functools import lru_cache

import bson
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framewire.synth.catalogue import EXCEPTION, FAILURES, KINDS, RECEIPT
from framewire.synth.cluster import MadeUpCluster, generator
from framewire.synth.pool import Ints, Pool, fixed_width
from framewire.synth.transfers import Transfers

__all__ = ["BodyMaker"]

_TEXTS = 4096
_SHORTEST, _LONGEST = 12, 240
_PROSE = (
    "order customer price amount stock paid shipped returned invoice basket discount warehouse carrier address "
    "quantity colour size weight status pending confirmed cancelled reference account balance transfer currency "
)
_BEFORE_ID = b"\x82\xa2id\xcf"
_BEFORE_TEXT = b"\xa4text\xd9"


class BodyMaker:
    """Makes the bodies of a run."""

    def __init__(self, cluster: MadeUpCluster) -> None:
        self._cluster = cluster
        rng = generator(cluster.seed, "texts")
        self._texts = pa.array([_text(rng) for _ in range(_TEXTS)], pa.binary())

    def add(self, pool: Pool, transfers: Transfers, first_id: int, rng: np.random.Generator) -> tuple[Ints, int]:
        """Put the bodies of a block into its pool; the number of each, and how many ids were used up."""
        count = int(transfers.body.max(initial=-1)) + 1
        ids = np.arange(first_id, first_id + count).astype(">u8").view(np.uint8).reshape(count, 8)
        before = np.broadcast_to(np.frombuffer(_BEFORE_ID, np.uint8), (count, len(_BEFORE_ID)))
        heads = fixed_width(np.concatenate([before, ids], axis=1))
        texts = self._texts.take(pa.array(rng.integers(0, _TEXTS, count)))
        at = pool.add(pc.binary_join_element_wise(heads, texts, b"")) + transfers.body
        at[transfers.kind == RECEIPT] = Pool.EMPTY
        failed = transfers.kind == EXCEPTION
        at[failed] = self._exceptions(pool, transfers.select(failed))
        return at.astype(np.int32), count

    def _exceptions(self, pool: Pool, failed: Transfers) -> Ints:
        told = np.stack([failed.failure, failed.source, failed.about], axis=1).astype(np.int64)
        different, which = np.unique(told, axis=0, return_inverse=True)
        documents = [
            _exception(int(failure), self._cluster.identities[node].decode(), int(about))
            for failure, node, about in different
        ]
        return pool.add_all(documents)[which.reshape(-1)] if documents else np.empty(0, np.int32)


def _text(rng: np.random.Generator) -> bytes:
    length = int(np.clip(rng.lognormal(3.9, 0.7), _SHORTEST, _LONGEST))
    start = int(rng.integers(0, len(_PROSE)))
    text = (_PROSE * 3)[start : start + length].encode()
    return _BEFORE_TEXT + bytes([len(text)]) + text


@lru_cache(maxsize=4096)
def _exception(failure: int, node: str, about: int) -> bytes:
    told, kind = FAILURES[failure], KINDS[about]
    return bson.encode(
        {
            "Message": told.message,
            "ExceptionType": told.exception_type,
            "StackTrace": "",
            "Actor": f"{kind.identity.partition('.')[0].title()}.handle" if told.by_handler else "",
            "Node": node,
            "Target": "",
            "About": f"{kind.identity} v{kind.version}",
        }
    )
