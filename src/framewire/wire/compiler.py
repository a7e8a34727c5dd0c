"""Turns a format's table into the Python functions that read and write it.

A message has 20 to 40 frames, and every node decodes and encodes each one it sees. Walking the table at run
time costs two to three times what the work itself does, so it is walked once, into source code that a person
could have written: ``print(source(V5))`` shows it, and so do tracebacks.

The generated functions only notice *that* something is wrong. *What* is wrong, in the order that the format
prescribes, is found by ``framewire.wire.faults``, which walks the same table and need not be fast.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from framewire.wire import faults, reading, recalling, writing
from framewire.wire.expressions import code
from framewire.wire.layout import LAYOUTS, Layout
from framewire.wire.message import Distribution, Message, MessageId, RouterAddress, Selectors, is_flat

__all__ = ["Codec", "compile_layout", "source"]

Frames = Sequence[bytes]
_MEMORIES = ("SHAPES", "POINTS_READ", "ROUTERS_READ", "PLACES", "POINTS_WRITTEN", "ROUTERS_WRITTEN")
"""What the functions of ``framewire.wire.recalling`` have seen before."""


@dataclass(frozen=True, slots=True)
class Codec:
    """The compiled functions of one format. The numbers are ticks per unit of the ttl frame."""

    layout: Layout
    peek: Callable[[Frames], Selectors]
    decode: Callable[[Frames, int], Message]
    encode: Callable[[Message, int], list[bytes]]
    forward: Callable[[Frames, RouterAddress, int | None, int, bytes | None], list[bytes] | None]
    """Frames with a hop, a routing entry, a ttl and a signature; None where only decoding them can tell."""
    size: int = field(init=False)
    """The layout's, where it is quick to look up."""
    ticks: int = field(init=False)
    """Those in the unit that the format counts its ttl in."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.layout.size)
        object.__setattr__(self, "ticks", self.layout.ticks_per_ttl)


def compile_layout(layout: Layout) -> Codec:
    """The functions for one format."""
    text = source(layout)
    name = f"<framewire wire format {layout.version}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {
        "ALIKE": {v for v, other in LAYOUTS.items() if other.trace_routing == layout.trace_routing}
        | {layout.version},
        "DISTRIBUTIONS": {int(member): member for member in Distribution},
        "DECODING_FAULTS": (struct.error, ValueError, KeyError),
        "ENCODING_FAULTS": (struct.error, ValueError, TypeError, AttributeError),
        "RECALLING_FAULTS": (struct.error, ValueError, LookupError, TypeError, AttributeError),
        "LAYOUT": layout,
        "Message": Message,
        "MessageId": MessageId,
        "RouterAddress": RouterAddress,
        "Selectors": Selectors,
        "decoding_fault": faults.decoding_fault,
        "encoding_fault": faults.encoding_fault,
        "is_flat": is_flat,
        "join": b"".join,
        "keep": recalling.keep,
        "opaque_version": _opaque_version,
        "translated_trace": faults.translated_trace,
    }
    namespace |= {memory: {} for memory in _MEMORIES}
    numeric = [held for held in layout.fields if held.kind.width]
    numeric += [held for section in layout.sections for held in section.entry if held.kind.width]
    for letters in set(map(code, numeric)):
        compiled = struct.Struct("<" + letters)
        namespace[f"unpack_{letters}"] = compiled.unpack
        namespace[f"pack_{letters}"] = compiled.pack
    exec(compile(text, name, "exec"), namespace)  # noqa: S102 - our own tables, nothing from outside
    return Codec(layout, *(namespace[function] for function in ("peek", "decode", "encode", "forward")))


def _opaque_version(version: int | bytes) -> bytes:
    """A version as V1 has it: a number N is written as N.0."""
    if not isinstance(version, int):
        return version
    if not 0 <= version <= 0xFFFF:
        raise ValueError
    return b"%d.0" % version


def source(layout: Layout) -> str:
    """The Python source of a format's functions."""
    readers = [reading.peek(layout), reading.decode(layout), recalling.decode(layout)]
    writers = [writing.encode(layout), recalling.encode(layout), writing.forward(layout)]
    return "\n\n\n".join("\n".join(lines) for lines in (*readers, *writers)) + "\n"
