"""Pieces of Python source for the values of a format's table, shared by its reader and its writer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from framewire.wire.layout import Field, Kind, Layout, Section

__all__ = ["code", "indented", "misplaced", "packed", "place", "reads", "value", "values"]


def place(layout: Layout, section: Section) -> tuple[str, str, str]:
    offset, count, step = (value(layout, name) for name in (section.offset, section.count, section.step))
    return offset, count, step


def misplaced(layout: Layout, section: Section, end: str) -> str:
    """The condition under which a section with entries is not where one can be."""
    offset, count, step = place(layout, section)
    holder = layout.holder(section.count)
    conditions = [f"{offset} <= {layout.size}", f"{end} > len(frames) + 1"]
    if holder and not holder.lanes:
        conditions.insert(0, f"{count} < 0")
    if section.step not in layout.absent:
        conditions.insert(0, f"{step} < {len(section.entry)}")
    return " or ".join(conditions)


def reads(layout: Layout, names: Iterable[str]) -> list[str]:
    """Lines that read every number among the named values into a variable of that name."""
    wanted = set(names)
    lines = []
    for field in layout.fields:
        if field.kind.width and not wanted.isdisjoint(field.values):
            frame = f"frames[-{field.frame}]"
            raw = f"{frame} or {bytes(field.kind.width)!r}" if field.optional else frame
            lines.append(f"{', '.join(field.values)}, = unpack_{code(field)}({raw})")
    return lines


def packed(field: Field, arguments: Sequence[str]) -> str:
    packed = f"pack_{code(field)}({', '.join(arguments)})"
    return f"{packed} if {arguments[0]} else b''" if field.optional else packed


def value(layout: Layout, name: str) -> str:
    """The expression for one value: a variable that was read, a frame, or what an absent one reads as."""
    if name in layout.absent:
        return repr(layout.absent[name])
    holder = layout.holder(name)
    if holder is None:
        raise LookupError(f"the table of V{layout.version} says nothing about {name}")
    return name if holder.kind.width else f"frames[-{holder.frame}]"


def values(layout: Layout, names: Sequence[str]) -> str:
    return ", ".join(value(layout, name) for name in names)


def code(field: Field) -> str:
    """The struct code of a numeric field; lanes without a name are padding."""
    if field.kind is Kind.LANES:
        unused = 8 - 2 * len(field.lanes)
        return "H" * len(field.lanes) + (f"{unused}x" if unused else "")
    return {Kind.U16: "H", Kind.I32: "i", Kind.I64: "q"}[field.kind]


def indented(depth: int, lines: Iterable[str]) -> Iterable[str]:
    return (" " * 4 * depth + line for line in lines)
