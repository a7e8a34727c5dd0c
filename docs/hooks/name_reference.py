"""Puts the public names of a package into its page of the API reference when the site is built.

A page says which package it is about; the names are those of its ``__all__``, so none can be forgotten.
"""

# ruff: noqa: INP001 - MkDocs loads this file by its path

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

__all__ = ["names_of", "on_page_markdown"]

_MARK = re.compile(r"^<!-- names of ([\w.]+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What MkDocs calls with the text of every page."""
    return _MARK.sub(lambda mark: "\n".join(f"::: {mark[1]}.{name}\n" for name in names_of(mark[1])), markdown)


def names_of(package: str) -> list[str]:
    """The public names of a package, without the modules among them, which have pages of their own."""
    found = import_module(package)
    return [name for name in found.__all__ if type(getattr(found, name)).__name__ != "module"]
