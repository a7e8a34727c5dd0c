"""A short look at the wire itself: three generations of it, and a message that was changed on its way."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from pathlib import Path

from rich.text import Text

import framewire as fw
from framewire.wire import encode
from tour.processes import Processes
from tour.stage import Stage

__all__ = ["the_wire"]

_EXAMPLES = Path(__file__).parents[1]
_WIDE = 400
"""Columns for a line a message; what does not fit is cut off."""


async def the_wire(stage: Stage, processes: Processes, folder: Path) -> None:
    """Inspect recorded frames, and see a signature fail."""
    stage.chapter("The wire, meanwhile")

    async def inspect(*arguments: str) -> tuple[int, str]:
        return await processes.command(
            "inspect", "--brief", *arguments, width=_WIDE, colour=stage.coloured, cwd=_EXAMPLES
        )

    keys, changed = _changed_on_its_way(folder)
    recorded, verified = await asyncio.gather(
        inspect("--ttl-unit", "ticks", "recorded.jsonl"), inspect("--verify", str(keys), str(changed))
    )
    stage.command("framewire inspect --brief --ttl-unit ticks examples/recorded.jsonl", recorded[1], cut=True)
    stage.check("four recordings are read, and one is told to be damaged", holds=recorded[0] == 1)
    stage.command("framewire inspect --brief --verify keys.toml changed.jsonl", verified[1], cut=True)
    judged = re.search(
        "^as it was sent.*verified.*\n^with another sum.*BAD SIGNATURE",
        Text.from_ansi(verified[1]).plain,
        re.MULTILINE,
    )
    stage.check(
        "a message is verified as it was sent, and refused with another sum",
        holds=judged is not None and verified[0] == 1,
    )


def _changed_on_its_way(folder: Path) -> tuple[Path, Path]:
    keys = folder / "other-keys.toml"
    keys.touch(mode=0o600)
    keys.write_text(f'[payment]\nkey = "hex:{secrets.token_hex(32)}"\nidentities = ["payment.*"]\n')
    sent = fw.Message(b"payment.charge", body_frames=(b'{"cents": 420}',), correlation_id=b"order-0001")
    signed = fw.KeyRing.from_file(keys).sign(sent)
    changed = signed.replace(body=b'{"cents": 1}')
    lines = [
        json.dumps({"name": name, "frames": [frame.hex() for frame in encode(message)]})
        for name, message in (("as it was sent", signed), ("with another sum", changed))
    ]
    path = folder / "changed.jsonl"
    path.write_text("\n".join(lines))
    return keys, path
