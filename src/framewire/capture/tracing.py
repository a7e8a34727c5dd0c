"""Traced flows: what is recorded whole, whatever the settings leave out.

A message whose trace bit is set begins one, and all later messages with its correlation id belong to it, those
without the bit included.
"""

from __future__ import annotations

from collections.abc import Sequence

from framewire.errors import WireError
from framewire.wire import layout_of
from framewire.wire.layout import LAYOUTS, Layout

__all__ = ["TracedFlows"]

_MAX_FLOWS = 10_000
"""Flows that are remembered; the one that was not heard of for longest makes room."""
_NO_FLOWS = (b"", b"00000000-0000-0000-0000-000000000000")
"""Correlation ids of messages that belong to no flow: only the message itself is traced then."""


class TracedFlows:
    """The flows that a node has seen a traced message of."""

    def __init__(self) -> None:
        self._flows: dict[bytes, None] = {}

    def __len__(self) -> int:
        return len(self._flows)

    def includes(self, frames: Sequence[bytes]) -> bool:
        """Whether a message is traced, or belongs to a flow that is; its flow is remembered. On the event loop."""
        try:
            traced, flow = _facts(frames)
        except WireError:
            return False
        if flow in self._flows:
            del self._flows[flow]
        elif not traced:
            return False
        elif flow in _NO_FLOWS:
            return True
        elif len(self._flows) >= _MAX_FLOWS:
            del self._flows[next(iter(self._flows))]
        self._flows[flow] = None
        return True

    def holds(self, frames: Sequence[bytes]) -> bool:
        """The same without remembering anything, for any thread."""
        try:
            traced, flow = _facts(frames)
        except WireError:
            return False
        return traced or flow in self._flows


def _facts(frames: Sequence[bytes]) -> tuple[bool, bytes]:
    """Whether the trace bit of a message is set, and its correlation id."""
    trace_at, bit, flow_at = _POSITIONS[layout_of(frames).version]
    options = frames[trace_at]
    return bool(options and options[0] & bit), bytes(frames[flow_at])


def _positions(layout: Layout) -> tuple[int, int, int]:
    options, flow = layout.holder("trace_options"), layout.holder("correlation_id")
    if options is None or flow is None:
        raise LookupError(f"wire format {layout.version} has no trace options, or no correlation id")
    # The lowest byte of the frame has the bit in every format: it is the whole number, or the first lane.
    return -options.frame, layout.trace_routing, -flow.frame


_POSITIONS = {version: _positions(layout) for version, layout in LAYOUTS.items()}
