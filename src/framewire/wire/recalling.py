"""The source of the functions that read and write what is like a message seen before.

The messages of a service are alike: the same descriptors, callback points and routers come again and again, and
only body, correlation id, ttl and callback key are new. So what was once taken apart and found good is kept under
the very frames it was read from, and what was once written under the values it was written from. All else goes
the whole way through ``framewire.wire.reading`` and ``writing``, which alone decide what is right, and is kept
then. The memories are bounded, and hold nothing but small things: a peer cannot fill them up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable
from typing import Any, TypeVar

from framewire.wire.expressions import indented, reads, value
from framewire.wire.layout import Field, Layout
from framewire.wire.message import Message
from framewire.wire.reading import scaled
from framewire.wire.writing import refusals, written

__all__ = ["decode", "encode", "keep"]

T = TypeVar("T")
_MOST = 4096
_FRAMES, _BYTES = 64, 1024
_SHAPE = frozenset({"trace_options", "distribution", "hops"})


def keep(memory: dict[Any, T], key: Hashable, kept: T) -> None:
    """Remember one more thing; a memory that is full begins anew."""
    if len(memory) >= _MOST:
        memory.clear()
    with contextlib.suppress(TypeError):  # a caller's own kind of list is understood, but not remembered
        memory[key] = kept


def decode(layout: Layout) -> list[str]:
    shape = ", ".join(["len(frames)", *(f"frames[-{field.frame}]" for field in _shape(layout))])
    callbacks, routing = layout.sections[:2]
    made = {
        "body_frames": "(frames[single],) if single else tuple(frames[several])",
        "ttl_ticks": "ttl",
        "callback_points": "POINTS_READ[tuple(frames[points_at])]",
        "routing": "ROUTERS_READ[tuple(frames[routers_at])]",
        "domain": f"{_text(layout, 'domain')}",
        "socket_identity": "frames[0] if enveloped and not frames[1] else None",
        "wire_version": str(layout.version),
    }
    arguments = [made.get(name) or value(layout, name) for name in Message.__struct_fields__]
    others = [name for field in layout.fields if not _shapes(layout, field) for name in field.values]
    places = [name for field in _shape(layout) for name in field.values]
    return [
        "def decode(frames, ttl_scale):",
        "    try:",
        "        (distribution, trace_options, hops, points_at, routers_at, single, several, enveloped) = SHAPES[",
        f"            {shape}",
        "        ]",
        *indented(2, reads(layout, others)),
        *indented(2, scaled(layout)),
        "        return Message(",
        *(f"            {argument}," for argument in arguments),
        "        )",
        "    except RECALLING_FAULTS:",
        "        message = decode_anew(frames, ttl_scale)",
        "        remember_read(frames, message)",
        "        return message",
        "",
        "",
        "def remember_read(frames, message):",
        *indented(1, reads(layout, places)),
        "    count = len(frames)",
        f"    top = {layout.size}",
        "    points_at = routers_at = several = slice(0, 0)",
        "    single = 0",
        *indented(1, _read_place(layout, callbacks.offset, callbacks.count, callbacks.step, "points_at")),
        *indented(1, _read_place(layout, routing.offset, routing.count, routing.step, "routers_at")),
        *indented(1, _read_body_place(layout)),
        *indented(1, _unusual_steps(layout)),
        "    points, routers = tuple(frames[points_at]), tuple(frames[routers_at])",
        f"    if len(points) + len(routers) <= {_FRAMES} and len(join(points + routers)) <= {_BYTES}:",
        "        keep(POINTS_READ, points, message.callback_points)",
        "        keep(ROUTERS_READ, routers, message.routing)",
        "        known = (message.distribution, message.trace_options, message.hops, points_at, routers_at)",
        f"        keep(SHAPES, ({shape}), (*known, single, several, count >= top + 2))",
    ]


def encode(layout: Layout) -> list[str]:
    callbacks, routing = layout.sections[:2]
    fixed_body = layout.holder("body") is not None
    known = "len(points), len(routes), len(body), message.hops, trace_options, message.distribution"
    shape = {field.frame: f"shape_{field.frame}" for field in _shape(layout)}
    lower = [shape.get(field.frame) or written(layout, field) for field in reversed(layout.fields)]
    return [
        "def encode(message, ttl_scale):",
        "    try:",
        "        points = message.callback_points",
        "        routes = message.routing",
        "        body = message.body_frames",
        "        ttl = message.ttl_ticks",
        "        version = message.version",
        "        trace_options = message.trace_options",
        "        if message.wire_version not in ALIKE:",
        "            raise KeyError",
        "        if not isinstance(message.hops, int) or not isinstance(trace_options, int):",
        "            raise TypeError  # 1.0 would pass for 1",
        *indented(2, refusals(layout)),
        f"        {', '.join(shape.values())} = PLACES[{known}]",
        "        lower = (",
        *(f"            {frame}," for frame in lower),
        "        )",
        "        join(lower)  # raises where anything is not bytes",
        "        above = (*ROUTERS_WRITTEN[routes], *POINTS_WRITTEN[points])",
        *(
            []
            if fixed_body
            else [
                "        for frame in body:",
                "            if not isinstance(frame, bytes) and not is_flat(frame):",
            ]
        ),
        *([] if fixed_body else ["                raise TypeError"]),
        "        envelope = message.socket_identity",
        "        if envelope is None:",
        f"            return [{'' if fixed_body else '*body[::-1], '}*above, *lower]",
        "        if not isinstance(envelope, bytes):",
        "            raise TypeError",
        f'        return [envelope, b"", {"" if fixed_body else "*body[::-1], "}*above, *lower]',
        "    except RECALLING_FAULTS:",
        "        frames = encode_anew(message, ttl_scale)",
        "        remember_written(frames, message)",
        "        return frames",
        "",
        "",
        "def remember_written(frames, message):",
        "    if message.wire_version not in ALIKE:",
        "        return",
        "    points, routes, body = message.callback_points, message.routing, message.body_frames",
        "    trace_options = message.trace_options",
        f"    end = len(frames) - {layout.size}",
        f"    middle = end - {len(callbacks.entry)} * len(points)",
        f"    start = middle - {len(routing.entry)} * len(routes)",
        f"    if end - start <= {_FRAMES} and len(join(frames[start:end])) <= {_BYTES}:",
        "        keep(ROUTERS_WRITTEN, routes, tuple(frames[start:middle]))",
        "        keep(POINTS_WRITTEN, points, tuple(frames[middle:end]))",
        f"        keep(PLACES, ({known}), ({''.join(f'frames[-{frame}], ' for frame in shape)}))",
    ]


def _shape(layout: Layout) -> list[Field]:
    """The fields that say how a message is laid out, which many messages have in common."""
    return [field for field in layout.fields if _shapes(layout, field)]


def _shapes(layout: Layout, field: Field) -> bool:
    placed = {name for section in layout.sections for name in (section.offset, section.count, section.step)}
    return bool(field.kind.width) and not (placed | _SHAPE).isdisjoint(field.values)


def _text(layout: Layout, name: str) -> str:
    raw = value(layout, name)
    return f"str({raw}, 'utf-8') if {raw} else ''"


def _read_place(layout: Layout, offset: str, count: str, step: str, where: str) -> list[str]:
    at, entries, frames = (value(layout, name) for name in (offset, count, step))
    return [
        f"if {entries}:",
        f"    end = {at} + {entries} * {frames}",
        "    top = max(top, end - 1)",
        f"    {where} = slice(count + 1 - end, count + 1 - {at})",
    ]


def _unusual_steps(layout: Layout) -> list[str]:
    """Lines that forget about a newer writer's larger entries: the same frames would mean something else."""
    steps = [section for section in layout.sections[:2] if section.step not in layout.absent]
    if not steps:
        return []
    unusual = " or ".join(f"{section.count} and {section.step} != {len(section.entry)}" for section in steps)
    return [f"if {unusual}:", "    return"]


def _read_body_place(layout: Layout) -> list[str]:
    if fixed := layout.holder("body"):
        return [f"single = -{fixed.frame}"]
    return [
        "if body_count == 1:",
        "    single = -body_offset",
        "elif body_count:",
        "    first = count - body_offset",
        "    several = slice(first, first - body_count if first >= body_count else None, -1)",
        "if body_count:",
        "    top = max(top, body_offset + body_count - 1)",
    ]
