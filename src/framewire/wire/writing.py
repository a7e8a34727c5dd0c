"""The source of the functions that write a format: lines of Python, made from its table."""

from __future__ import annotations

from framewire.wire.expressions import indented, misplaced, packed, place, reads, value
from framewire.wire.layout import Field, Kind, Layout, Section
from framewire.wire.message import Message

__all__ = ["encode", "forward", "refusals", "written"]


def encode(layout: Layout) -> list[str]:
    callbacks, routing = layout.sections[:2]
    fixed_body = layout.holder("body") is not None
    first = layout.size + 1
    return [
        "def encode_anew(message, ttl_scale):",
        "    try:",
        "        points = message.callback_points",
        "        routes = message.routing",
        "        body = message.body_frames",
        "        ttl = message.ttl_ticks",
        "        version = message.version",
        "        trace_options = message.trace_options",
        *indented(2, refusals(layout)),
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
        *(f"            {written(layout, field)}," for field in reversed(layout.fields)),
        "        )",
        "        upper = []" if fixed_body else "        upper = [*body[::-1]]",
        "        join(lower)  # raises where anything is not bytes",
        "        for frame in body:",
        "            if not isinstance(frame, bytes) and not is_flat(frame):",
        "                raise TypeError",
        "        if message.socket_identity is not None:",
        "            if not isinstance(message.socket_identity, bytes):",
        "                raise TypeError",
        '            upper[:0] = (message.socket_identity, b"")',
        "        return upper + lower",
        "    except ENCODING_FAULTS as problem:",
        "        raise encoding_fault(LAYOUT, message, ttl_scale, problem) from None",
    ]


def refusals(layout: Layout) -> list[str]:
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


def written(layout: Layout, field: Field) -> str:
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
        return packed(field, arguments)
    return f"{arguments[0]}.encode()" if field.kind is Kind.TEXT else arguments[0]


def forward(layout: Layout) -> list[str]:
    callbacks, routing, *others = layout.sections
    names = {name for section in layout.sections for name in (section.offset, section.count, section.step)}
    places = {*names, "hops"} - set(layout.absent)
    changed = [field for field in layout.fields if not places.isdisjoint(field.values)]
    step = value(layout, routing.step)
    return [
        "def forward(frames, router, ttl_ticks, ttl_scale, signature):",
        "    try:",
        *indented(2, reads(layout, places)),
        *indented(2, (line for section in layout.sections for line in _check_place(layout, section))),
        "    except DECODING_FAULTS:",
        "        raise decoding_fault(LAYOUT, frames, ttl_scale) from None",
        "    if routing_count:",
        f"        step, at = {step}, routing_end",
        "    else:",
        f"        step = {len(routing.entry)}",
        f"        at = routing_offset = callback_points_end if callback_count else {layout.size + 1}",
        *indented(1, (line for section in (callbacks, *others) for line in _make_room(section))),
        *([] if routing.step in layout.absent else [f"    {routing.step} = step"]),
        "    routing_count += 1",
        "    hops += 1",
        "    try:",
        "        out = list(frames)",
        *(f"        out[-{field.frame}] = {packed(field, field.values)}" for field in changed),
        *indented(2, _set_ttl_and_signature(layout)),
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
    offset, count, step = place(layout, section)
    end = f"{section.name}_end"
    return [
        f"if {count}:",
        f"    {end} = {offset} + {count} * {step}",
        f"    if {misplaced(layout, section, end)}:",
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
