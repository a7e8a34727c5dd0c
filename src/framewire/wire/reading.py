"""The source of the functions that read a format: lines of Python, made from its table."""

from __future__ import annotations

from framewire.wire.expressions import code, indented, misplaced, place, reads, value, values
from framewire.wire.layout import SELECTORS, Kind, Layout, Section
from framewire.wire.message import Message

__all__ = ["decode", "peek", "scaled"]


def peek(layout: Layout) -> list[str]:
    return [
        "def peek(frames):",
        "    try:",
        *indented(2, reads(layout, SELECTORS)),
        f"        return Selectors(DISTRIBUTIONS[distribution], {values(layout, SELECTORS[1:])})",
        "    except DECODING_FAULTS:",
        "        raise decoding_fault(LAYOUT, frames, 1, only_selectors=True) from None",
    ]


def decode(layout: Layout) -> list[str]:
    made = {
        "body_frames": "body_frames",
        "ttl_ticks": "ttl",
        "distribution": "DISTRIBUTIONS[distribution]",
        "callback_points": "callback_points",
        "routing": "routing",
        "domain": f"str({value(layout, 'domain')}, 'utf-8')",
        # The envelope lies above all that the message uses; below that, an empty frame means nothing.
        "socket_identity": "frames[0] if len(frames) >= top + 2 and not frames[1] else None",
        "wire_version": str(layout.version),
    }
    arguments = [made.get(name) or value(layout, name) for name in Message.__struct_fields__]
    entries = [section for section in layout.sections if section.name != "body"]
    return [
        "def decode_anew(frames, ttl_scale):",
        "    try:",
        *indented(2, reads(layout, [value for field in layout.fields for value in field.values])),
        *indented(2, scaled(layout)),
        f"        top = {layout.size}",
        *indented(2, (line for section in entries for line in _read_entries(layout, section))),
        *indented(2, _read_body(layout)),
        "        return Message(",
        *(f"            {argument}," for argument in arguments),
        "        )",
        "    except DECODING_FAULTS:",
        "        raise decoding_fault(LAYOUT, frames, ttl_scale) from None",
    ]


def scaled(layout: Layout) -> list[str]:
    """Lines that bring a ttl from the format's own unit to ticks."""
    if layout.ticks_per_ttl == 1:
        return []
    fits = "-0x8000000000000000 <= ttl <= 0x7FFFFFFFFFFFFFFF"
    return ["ttl *= ttl_scale", f"if not {fits}:", "    raise ValueError"]


def _read_entries(layout: Layout, section: Section) -> list[str]:
    offset, count, step = place(layout, section)
    return [
        f"{section.name} = ()",
        f"if {count}:",
        f"    end = {offset} + {count} * {step}",
        f"    if {misplaced(layout, section, 'end')}:",
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
            parts[field.name] = f"unpack_{code(field)}({frame})[0]"
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
