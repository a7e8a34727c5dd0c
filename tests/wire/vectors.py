"""The recorded frames of the original encoder: frames as bytes, everything else as it is."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "data" / "vectors"


def load(name):
    """All cases of one file, in order."""
    with (FOLDER / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [as_bytes(json.loads(line)) for line in lines]


def as_bytes(case):
    return case | {"frames": [bytes.fromhex(frame) for frame in case["frames"]]}
