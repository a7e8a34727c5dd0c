"""The shop as processes: a rendezvous server and four nodes, started by framewire's own commands.

No port is fixed: each program says in its log where it listens, so any number of demos can run at a time.
"""

from __future__ import annotations

import secrets
import signal
from pathlib import Path

from tour.processes import Processes, Program
from tour.stage import BrokenPromiseError

__all__ = ["NODES", "SHOP", "Premises"]

SHOP = Path(__file__).parents[1] / "shop"
NODES = ("orders", "stock", "payment", "depot")
_TRUSTED = ("orders", "payment")
"""Who has the key of the domain payment."""
_ADDRESS = r"(tcp://[\w.]+:\d+)"
_PATIENCE = 20.0


class Premises:
    """Where the shop is, and what is recorded of it."""

    def __init__(self, processes: Processes, folder: Path, seed: int) -> None:
        self._processes = processes
        self._seed = seed
        self._programs: dict[str, Program] = {}
        self.captures = folder / "captures"
        self.keys = _new_key_file(folder / "keys.toml")
        self.rendezvous = ""
        self.addresses: dict[str, str] = {}
        """Where each node listens."""

    async def open(self) -> None:
        """Start everything, and wait until every node is ready."""
        server = self._processes.framewire("rendezvous", "rendezvous", "tcp://127.0.0.1:*", cwd=SHOP)
        self.rendezvous = (await server.said(f"listening at {_ADDRESS}"))[1]
        for name in NODES:
            self._start(name)
        for name in NODES:
            await self._ready(name)

    def _start(self, name: str) -> None:
        told = ["--app", f"shop.nodes:{name}", "--identity", name, "--rendezvous", self.rendezvous]
        told += ["--capture", str(self.captures), "--set", f"node.route_grace={_PATIENCE}"]
        if name in _TRUSTED:
            told += ["--keys", str(self.keys)]
        seed = {"SHOP_SEED": str(self._seed)}
        self._programs[name] = self._processes.framewire(name, "node", *told, cwd=SHOP, also=seed)

    async def _ready(self, name: str) -> None:
        self.addresses[name] = (await self._programs[name].said(f"is ready at {_ADDRESS}"))[1]

    def freeze(self, name: str) -> None:
        """Let a node stand still, as on a machine that hangs."""
        self._programs[name].signal(signal.SIGSTOP)

    async def kill(self, name: str) -> None:
        """End a node without a word: kill -9."""
        self._programs[name].signal(signal.SIGKILL)
        await self._programs[name].ended()

    async def bring_back(self, name: str) -> None:
        """Start a node that was killed once more, with the same name and at another port."""
        self._start(name)
        await self._ready(name)

    async def close(self) -> None:
        """Let every node finish what it does; that it left nothing undone is its status."""
        for program in self._programs.values():
            program.signal(signal.SIGTERM)
        for name, program in self._programs.items():
            if await program.ended() != 0:
                raise BrokenPromiseError(f"node {name} left something undone: {program.last_words()}")


def _new_key_file(path: Path) -> Path:
    path.touch(mode=0o600)
    path.write_text(f'[payment]\nkey = "hex:{secrets.token_hex(32)}"\nidentities = ["payment.*"]\n')
    return path
