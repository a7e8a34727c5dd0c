"""The version of framewire, in the one place that packaging and the command line both read."""

__version__ = "0.1.0"
