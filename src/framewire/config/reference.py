"""The reference of all options, as Markdown: docs/configuration.md holds it, and a test keeps it true."""

from __future__ import annotations

from typing import Any

from framewire.config.options import OPTIONS, TABLES, Option

__all__ = ["as_told", "reference"]


def reference() -> str:
    """A section for each table of the file."""
    return "\n".join(
        "\n".join([f"### [{table.name}]", table.meaning, "", *_HEAD, *map(_row, _options(table.name)), ""])
        for table in TABLES
    )


_HEAD = ("| option | default | accepted | |", "|---|---|---|---|")


def _options(table: str) -> list[Option]:
    return [option for option in OPTIONS if option.table == table]


def _row(option: Option) -> str:
    default = as_told(option.default)
    shown = f"`{default}`" if default else ""
    accepted = option.kind.accepted.replace("|", "\\|").replace("*", "\\*")
    return f"| `{option.name}` | {shown} | {accepted} | {option.meaning} |"


def as_told(value: Any) -> str:
    """A value as it would be written in a variable; nothing for what is not there."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, dict):
        listed = {name: "|".join(told) if isinstance(told, list) else told for name, told in value.items()}
        return ",".join(f"{as_told(name)}={as_told(told)}" for name, told in listed.items())
    if isinstance(value, list | tuple):
        return ",".join("|".join(one) if isinstance(one, list | tuple) else as_told(one) for one in value)
    return str(value)
