"""Made-up traffic with known truth: captures as a cluster would record them, and tables that say what is in them.

>>> import tempfile
>>> from pathlib import Path
>>> from framewire.synth import Options, synthesise
>>> with tempfile.TemporaryDirectory() as directory:
...     synthesise(Options(messages=1000, nodes=3), Path(directory)).rows
1000
"""

from framewire.synth.generating import Summary, synthesise
from framewire.synth.options import Options

__all__ = ["Options", "Summary", "synthesise"]
