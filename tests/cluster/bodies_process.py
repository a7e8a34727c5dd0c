"""A node in a process of its own that gives back bodies of several frames: its address comes first, then frames."""

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.node.bodies import Mirror

import framewire as fw


async def main(options):
    keyring = fw.KeyRing([fw.DomainKey("bodies", bytes(range(32)))], {"bodies": ["bodies.*"]})
    told = {"keyring": keyring} if options.pop("signed", False) else {}
    async with fw.Node(bind="tcp://127.0.0.1:*", identity="mirror", signals=False, **told, **options) as node:
        await node.host(Mirror())
        sys.stdout.write(f"{node.uri}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main(json.loads(sys.argv[1])))
