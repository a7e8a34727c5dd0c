"""What a running node writes to the standard error: lines for people, or an object a line for machines."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from dataclasses import asdict
from typing import Any

from framewire.node.tracing import TraceStep
from framewire.wire.message import readable

__all__ = ["set_up"]


def set_up(level: str, form: str, *, worker: int | None = None) -> None:
    """Let all loggers of this process write to the standard error, unless somebody else sees to them already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json(worker) if form == "json" else _Human(worker))
    logging.basicConfig(handlers=[handler], level=level.upper())


class _Human(logging.Formatter):
    """Time, level, worker and what is said."""

    def __init__(self, worker: int | None) -> None:
        who = "" if worker is None else f" [{worker}]"
        super().__init__(f"%(asctime)s.%(msecs)03d %(levelname)s{who} %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")


class _Json(logging.Formatter):
    """An object a line. A step of a traced message is there in parts, too."""

    def __init__(self, worker: int | None) -> None:
        super().__init__()
        self._who: dict[str, Any] = {"pid": os.getpid()} | ({} if worker is None else {"worker": worker})

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "at": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage(),
            **self._who,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        step = getattr(record, "framewire", None)
        if isinstance(step, TraceStep):
            parts = asdict(step) | {"message_id": str(step.message_id)}
            line["trace"] = {
                name: readable(value) if isinstance(value, bytes) else value for name, value in parts.items()
            }
        return json.dumps(line)
