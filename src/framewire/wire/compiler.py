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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from framewire.wire import faults
from framewire.wire.layout import LAYOUTS, SELECTORS, Field, Kind, Layout, Section
from framewire.wire.message import Distribution, Message, MessageId, RouterAddress, Selectors

__all__ = ["Codec", "compile_layout", "source"]

Frames = Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Codec:
    """The compiled functions of one format. The numbers are ticks per unit of the ttl frame."""

    layout: Layout
    peek: Callable[[Frames], Selectors]
    decode: Callable[[Frames, int], Message]
    encode: Callable[[Message, int], list[bytes]]
    forward: Callable[[Frames, RouterAddress, int | None, int, bytes | None], list[bytes] | None]
    """Frames with a hop, a routing entry, a ttl and a signature; None where only decoding them can tell."""


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
        "LAYOUT": layout,
        "Message": Message,
        "MessageId": MessageId,
        "RouterAddress": RouterAddress,
        "Selectors": Selectors,
        "decoding_fault": faults.decoding_fault,
        "encoding_fault": faults.encoding_fault,
        "join": b"".join,
        "opaque_version": _opaque_version,
        "translated_trace": faults.translated_trace,
    }
    numeric = [field for field in layout.fields if field.kind.width]
    numeric += [field for section in layout.sections for field in section.entry if field.kind.width]
    for code in set(map(_code, numeric)):
        compiled = struct.Struct("<" + code)
        namespace[f"unpack_{code}"] = compiled.unpack
        namespace[f"pack_{code}"] = compiled.pack
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
    functions = [_peek(layout), _decode(layout), _encode(layout), _forward(layout)]
    return "\n\n\n".join("\n".join(lines) for lines in functions) + "\n"


# Every function below returns lines of source; _indented puts them into the block they belong to.


def _peek(layout: Layout) -> list[str]:
    return [
        "def peek(frames):",
        "    try:",
        *_indented(2, _reads(layout, SELECTORS)),
        f"        return Selectors(DISTRIBUTIONS[distribution], {_values(layout, SELECTORS[1:])})",
        "    except DECODING_FAULTS:",
        "        raise decoding_fault(LAYOUT, frames, 1, only_selectors=True) from None",
    ]


def _decode(layout: Layout) -> list[str]:
    made = {
        "body_frames": "body_frames",
        "ttl_ticks": "ttl",
        "distribution": "DISTRIBUTIONS[distribution]",
        "callback_points": "callback_points",
        "routing": "routing",
        "domain": f"str({_value(layout, 'domain')}, 'utf-8')",
        # The envelope lies above all that the message uses; below that, an empty frame means nothing.
        "socket_identity": "frames[0] if len(frames) >= top + 2 and not frames[1] else None",
        "wire_version": str(layout.version),
    }
    arguments = [made.get(name) or _value(layout, name) for name in Message.__struct_fields__]
    scaled = [
        "ttl *= ttl_scale",
        "if not -0x8000000000000000 <= ttl <= 0x7FFFFFFFFFFFFFFF:",
        "    raise ValueError",
    ]
    entries = [section for section in layout.sections if section.name != "body"]
    return [
        "def decode(frames, ttl_scale):",
        "    try:",
        *_indented(2, _reads(layout, [value for field in layout.fields for value in field.values])),
        *_indented(2, scaled if layout.ticks_per_ttl != 1 else []),
        f"        top = {layout.size}",
        *_indented(2, (line for section in entries for line in _read_entries(layout, section))),
        *_indented(2, _read_body(layout)),
        "        return Message(",
        *(f"            {argument}," for argument in arguments),
        "        )",
        "    except DECODING_FAULTS:",
        "        raise decoding_fault(LAYOUT, frames, ttl_scale) from None",
    ]


def _read_entries(layout: Layout, section: Section) -> list[str]:
    offset, count, step = _place(layout, section)
    return [
        f"{section.name} = ()",
        f"if {count}:",
        f"    end = {offset} + {count} * {step}",
        f"    if {_misplaced(layout, section, 'end')}:",
        "        raise ValueError",
        "    if end > top:",
        "        top = end - 1",
        "    entries = []",
        f"    for at in range({offset}, end, {step}):",
        f"        entries.append({_entry(section)})",
        f"    {section.name} = tuple(entries)",
    ]


def _entry(section: Section) -> str:
    """The expression that makes one entry, whose lowest frame is n-at."""
    parts = {"partition": repr(b"")}
    for field in section.entry:
        frame = f"frames[-at - {field.frame}]" if field.frame else "frames[-at]"
        if field.kind.width:
            parts[field.name] = f"unpack_{_code(field)}({frame})[0]"
        else:
            parts[field.name] = f"str({frame}, 'utf-8')" if field.kind is Kind.TEXT else frame
    if section.name == "routing":
        return f"RouterAddress({parts['uri']}, {parts['identity']})"
    return f"MessageId({parts['identity']}, {parts['version']}, {parts['partition']})"


def _read_body(layout: Layout) -> list[str]:
    if fixed := layout.holder("body"):
        return [f"body_frames = (frames[-{fixed.frame}],)"]
    return [
        "body_frames = ()",
        "if body_count:",
        "    end = body_offset + body_count",
        f"    if body_offset <= {layout.size} or end > len(frames) + 1:",
        "        raise ValueError",
        "    if end > top:",
        "        top = end - 1",
        "    if body_count == 1:",
        "        body_frames = (frames[-body_offset],)",
        "    else:",
        "        body_frames = tuple([frames[-at] for at in range(body_offset, end)])",
    ]


def _encode(layout: Layout) -> list[str]:
    callbacks, routing = layout.sections[:2]
    fixed_body = layout.holder("body") is not None
    first = layout.size + 1
    return [
        "def encode(message, ttl_scale):",
        "    try:",
        "        points = message.callback_points",
        "        routes = message.routing",
        "        body = message.body_frames",
        "        ttl = message.ttl_ticks",
        "        version = message.version",
        "        trace_options = message.trace_options",
        *_indented(2, _refusals(layout)),
        "        if message.distribution not in DISTRIBUTIONS:",
        "            raise ValueError",
        "        if message.wire_version not in ALIKE:",
        "            trace_options = translated_trace(message, LAYOUT)",
        "        callback_count = len(points)",
        "        routing_count = len(routes)",
        f"        callback_offset = {first} if callback_count else 0",
        f"        routing_offset = {first} + {len(callbacks.entry)} * callback_count",
        f"        body_offset = routing_offset + {len(routing.entry)} * routing_count if body else 0",
        "        if not routing_count:",
        "            routing_offset = 0",
        "        lower = []",
        "        for route in reversed(routes):",
        "            lower += (route.uri.encode(), route.identity)",
        "        for point in reversed(points):",
        f"            lower += ({_point_frames(layout, callbacks)})",
        "        lower += (",
        *(f"            {_written(layout, field)}," for field in reversed(layout.fields)),
        "        )",
        "        upper = []" if fixed_body else "        upper = [*body[::-1]]",
        "        if message.socket_identity is not None:",
        '            upper[:0] = (message.socket_identity, b"")',
        "        join(lower)  # raises where anything is not bytes",
        "        for frame in upper:",
        "            if not isinstance(frame, bytes):",
        "                raise TypeError",
        "        return upper + lower",
        "    except ENCODING_FAULTS as problem:",
        "        raise encoding_fault(LAYOUT, message, ttl_scale, problem) from None",
    ]


def _refusals(layout: Layout) -> list[str]:
    """Lines that stop what an older format cannot hold, and bring the rest into its terms."""
    lines = []
    held = [name for name in layout.absent if name in Message.__struct_fields__]
    if held:
        lines += [f"if {' or '.join(f'message.{name}' for name in held)}:", "    raise ValueError"]
    if "partition" in layout.absent:
        lines += ["if any([point.partition for point in points]):", "    raise ValueError"]
    if layout.holder("body"):
        lines += ["if len(body) != 1:", "    raise ValueError"]
    if layout.ticks_per_ttl != 1:
        lines += ["if ttl % ttl_scale:", "    raise ValueError", "ttl //= ttl_scale"]
    if not layout.numbered:
        lines += ["version = opaque_version(version)"]
    return lines


def _point_frames(layout: Layout, callbacks: Section) -> str:
    frames = {
        "identity": "point.identity",
        "version": "pack_H(point.version)" if layout.numbered else "opaque_version(point.version)",
        "partition": "point.partition",
    }
    return ", ".join(frames[field.name] for field in reversed(callbacks.entry))


def _written(layout: Layout, field: Field) -> str:
    """The expression for one fixed frame of an encoded message."""
    if field.kind is Kind.FORMAT:
        return repr(layout.trailer)
    if field.kind is Kind.EMPTY:
        return repr(b"")
    if field.name == "body":
        return "body[0]"
    steps = {section.step: str(len(section.entry)) for section in layout.sections}
    local = [section.offset for section in layout.sections] + ["callback_count", "routing_count"]
    local += ["ttl", "version", "trace_options"]
    known = {name: name for name in local} | steps | {"body_count": "len(body)"}
    arguments = [known.get(value, f"message.{value}") for value in field.values]
    if field.kind.width:
        return _packed(field, arguments)
    return f"{arguments[0]}.encode()" if field.kind is Kind.TEXT else arguments[0]


def _forward(layout: Layout) -> list[str]:
    callbacks, routing, *others = layout.sections
    names = {name for section in layout.sections for name in (section.offset, section.count, section.step)}
    places = {*names, "hops"} - set(layout.absent)
    changed = [field for field in layout.fields if not places.isdisjoint(field.values)]
    step = _value(layout, routing.step)
    return [
        "def forward(frames, router, ttl_ticks, ttl_scale, signature):",
        "    try:",
        *_indented(2, _reads(layout, places)),
        *_indented(2, (line for section in layout.sections for line in _check_place(layout, section))),
        "    except DECODING_FAULTS:",
        "        raise decoding_fault(LAYOUT, frames, ttl_scale) from None",
        "    if routing_count:",
        f"        step, at = {step}, routing_end",
        "    else:",
        f"        step = {len(routing.entry)}",
        f"        at = routing_offset = callback_points_end if callback_count else {layout.size + 1}",
        *_indented(1, (line for section in (callbacks, *others) for line in _make_room(section))),
        *([] if routing.step in layout.absent else [f"    {routing.step} = step"]),
        "    routing_count += 1",
        "    hops += 1",
        "    try:",
        "        out = list(frames)",
        *(f"        out[-{field.frame}] = {_packed(field, field.values)}" for field in changed),
        *_indented(2, _set_ttl_and_signature(layout)),
        "        entry = [router.uri.encode(), join((router.identity,))]  # raises where it is not bytes",
        f"        if step > {len(routing.entry)}:",
        f'            entry[:0] = [b""] * (step - {len(routing.entry)})',
        "        where = len(out) + 1 - at",
        "        out[where:where] = entry",
        "    except ENCODING_FAULTS:",
        "        return None",
        "    return out",
    ]


def _check_place(layout: Layout, section: Section) -> list[str]:
    offset, count, step = _place(layout, section)
    end = f"{section.name}_end"
    return [
        f"if {count}:",
        f"    {end} = {offset} + {count} * {step}",
        f"    if {_misplaced(layout, section, end)}:",
        "        raise ValueError",
    ]


def _make_room(section: Section) -> list[str]:
    """Lines that move a section up when it lies above the new entry, and give up when it lies across."""
    return [
        f"if {section.count}:",
        f"    if {section.offset} >= at:",
        f"        {section.offset} += step",
        f"    elif {section.name}_end > at:",
        "        return None",
    ]


def _set_ttl_and_signature(layout: Layout) -> list[str]:
    ttl, signature = layout.holder("ttl"), layout.holder("signature")
    unscaled = ["    if ttl_ticks % ttl_scale:", "        return None"]
    return [
        "if ttl_ticks is not None:",
        *(unscaled if layout.ticks_per_ttl != 1 else []),
        f"    out[-{ttl.frame if ttl else 0}] = pack_q(ttl_ticks // ttl_scale)",
        "if signature is not None:",
        f"    out[-{signature.frame}] = join((signature,))" if signature else "    return None",
    ]


def _place(layout: Layout, section: Section) -> tuple[str, str, str]:
    offset, count, step = (_value(layout, name) for name in (section.offset, section.count, section.step))
    return offset, count, step


def _misplaced(layout: Layout, section: Section, end: str) -> str:
    """The condition under which a section with entries is not where one can be."""
    offset, count, step = _place(layout, section)
    holder = layout.holder(section.count)
    conditions = [f"{offset} <= {layout.size}", f"{end} > len(frames) + 1"]
    if holder and not holder.lanes:
        conditions.insert(0, f"{count} < 0")
    if section.step not in layout.absent:
        conditions.insert(0, f"{step} < {len(section.entry)}")
    return " or ".join(conditions)


def _reads(layout: Layout, names: Iterable[str]) -> list[str]:
    """Lines that read every number among the named values into a variable of that name."""
    wanted = set(names)
    lines = []
    for field in layout.fields:
        if field.kind.width and not wanted.isdisjoint(field.values):
            frame = f"frames[-{field.frame}]"
            raw = f"{frame} or {bytes(field.kind.width)!r}" if field.optional else frame
            lines.append(f"{', '.join(field.values)}, = unpack_{_code(field)}({raw})")
    return lines


def _packed(field: Field, arguments: Sequence[str]) -> str:
    packed = f"pack_{_code(field)}({', '.join(arguments)})"
    return f"{packed} if {arguments[0]} else b''" if field.optional else packed


def _value(layout: Layout, name: str) -> str:
    """The expression for one value: a variable that was read, a frame, or what an absent one reads as."""
    if name in layout.absent:
        return repr(layout.absent[name])
    holder = layout.holder(name)
    if holder is None:
        raise LookupError(f"the table of V{layout.version} says nothing about {name}")
    return name if holder.kind.width else f"frames[-{holder.frame}]"


def _values(layout: Layout, names: Sequence[str]) -> str:
    return ", ".join(_value(layout, name) for name in names)


def _code(field: Field) -> str:
    """The struct code of a numeric field; lanes without a name are padding."""
    if field.kind is Kind.LANES:
        unused = 8 - 2 * len(field.lanes)
        return "H" * len(field.lanes) + (f"{unused}x" if unused else "")
    return {Kind.U16: "H", Kind.I32: "i", Kind.I64: "q"}[field.kind]


def _indented(depth: int, lines: Iterable[str]) -> Iterable[str]:
    return (" " * 4 * depth + line for line in lines)
