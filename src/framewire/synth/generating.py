"""Making made-up traffic: block after block, into captures and their truth."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from framewire.errors import UsageError
from framewire.synth.block import Block, BlockMaker
from framewire.synth.cluster import MadeUpCluster
from framewire.synth.crowds import GiantPart
from framewire.synth.options import GIANT_ROWS, MICROSECONDS, Options
from framewire.synth.segments import SegmentWriter
from framewire.synth.truth import TruthWriter

__all__ = ["Summary", "synthesise"]

_BLOCK_FLOWS = 8192
_ROWS_PER_FLOW = 10.5
"""Roughly: it turns a rate of rows into one of flows."""
_GIANT_SHARE = 16_384
"""Messages of the giant flow in a block."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What was made."""

    captures: Path
    truth: Path
    rows: int
    files: int
    bytes: int
    flows: int
    outcomes: dict[str, int]
    truths: dict[str, int]
    """Rows of each table of truth."""


def synthesise(options: Options, directory: Path, progress: Callable[[int], object] | None = None) -> Summary:
    """Write captures and truth below a directory that holds neither yet; ``progress`` is told of rows made."""
    captures, truth = directory / "captures", directory / "truth"
    for path in (captures, truth):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(
                f"{path}: is there already, and made-up traffic is not mixed with other; name another directory"
            )
    cluster = MadeUpCluster(options)
    try:
        with (
            SegmentWriter(captures, cluster, options.segment_rows) as segments,
            TruthWriter(truth, cluster, options) as truths,
        ):
            _Run(options, cluster, segments, truths, progress or (lambda _: None)).to_the_end()
            segments.finish()
            truths.finish()
    except BaseException:
        # Captures without their whole truth look like traffic with known truth, and are not.
        for path in (captures, truth):
            shutil.rmtree(path, ignore_errors=True)
        raise
    return Summary(
        captures=captures,
        truth=truth,
        rows=segments.rows,
        files=segments.files,
        bytes=segments.bytes,
        flows=sum(truths.outcomes.values()),
        outcomes=truths.outcomes,
        truths=truths.rows,
    )


class _Run:
    def __init__(
        self,
        options: Options,
        cluster: MadeUpCluster,
        segments: SegmentWriter,
        truths: TruthWriter,
        progress: Callable[[int], object],
    ) -> None:
        self._options, self._segments, self._truths, self._progress = options, segments, truths, progress
        self._maker = BlockMaker(cluster, options)
        self._budget = options.messages - options.giant_rows
        """Rows that are left for all flows but the giant."""
        self._giant = options.giant_flow
        """Messages that are left of the giant flow."""
        most = self._budget / max(1, math.ceil(self._giant / _GIANT_SHARE)) / _ROWS_PER_FLOW
        self._flows = int(np.clip(1.1 * most, 16, _BLOCK_FLOWS))
        rows = self._flows * _ROWS_PER_FLOW + GIANT_ROWS * min(self._giant, _GIANT_SHARE)
        self._window = max(1, int(rows / options.rows_per_second * MICROSECONDS))
        self._number = 0
        self._made = 0

    def to_the_end(self) -> None:
        flows = self._flows
        while flows or self._giant:
            begin, end = self._times()
            giant = self._next_of_giant(begin, end)
            block = self._maker.flows(self._number, begin, end, flows, self._budget, giant)
            of_giant = block.transfers.unit[block.rows.transfer] == block.giant
            self._budget -= len(block.rows) - int(of_giant.sum())
            if len(block.flows) < flows:  # some had to be left out, so there is no room for those of another block
                flows = self._budget = 0
            self._take(block)
        missing = self._options.messages - self._made
        if missing:
            self._take(self._maker.fillers(self._number, *self._times(), missing))

    def _next_of_giant(self, begin: int, end: int) -> GiantPart | None:
        if not self._giant:
            return None
        share = min(self._giant, _GIANT_SHARE)
        if self._giant - share < 2:  # its end is not left to a block of its own
            share = self._giant
        first = self._giant == self._options.giant_flow
        self._giant -= share
        return GiantPart(np.linspace(begin, end - 1, share).astype(np.int64), first=first, last=not self._giant)

    def _times(self) -> tuple[int, int]:
        begin = self._options.start_us + self._number * self._window
        return begin, begin + self._window

    def _take(self, block: Block) -> None:
        self._number += 1
        self._made += len(block.rows)
        self._truths.add(block)
        self._segments.add(block.table, block.rows.node, self._times()[0] - self._options.skew_us)
        self._progress(len(block.rows))
