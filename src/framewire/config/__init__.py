"""What a node or a rendezvous server is told by ``framewire.toml``, by environment variables and by flags."""

from __future__ import annotations

from framewire.config.configuration import DEFAULT, FILE, Configuration, load
from framewire.config.options import OPTIONS, Option
from framewire.config.reference import as_told, reference
from framewire.config.sources import Flag

__all__ = ["DEFAULT", "FILE", "OPTIONS", "Configuration", "Flag", "Option", "as_told", "load", "reference"]
