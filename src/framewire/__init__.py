"""framewire: actor messaging over ZeroMQ, with a Spark pipeline that can read every frame it ever sent."""

from framewire._version import __version__

__all__ = ["__version__"]
