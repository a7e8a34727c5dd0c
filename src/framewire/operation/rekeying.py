"""Keys that change while a node runs: on SIGHUP its key file is read anew."""

from __future__ import annotations

import asyncio
import logging
import signal

from framewire.cluster import Node
from framewire.config import Configuration
from framewire.errors import ConfigError

__all__ = ["Rekeying"]

log = logging.getLogger("framewire.operation")


class Rekeying:
    """Has a node use the keys of its configuration as they are now, whenever it is told to."""

    def __init__(self, config: Configuration, node: Node) -> None:
        self._config = config
        self._node = node

    def start(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)

    def stop(self) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)

    def reload(self) -> None:
        """Read the keys anew; where anything is wrong with them, those that there are stay."""
        try:
            ring = self._config.keyring()
        except ConfigError as problem:
            log.error("the keys stay as they are: %s", problem)  # noqa: TRY400 - that says it all
            return
        self._node.use_keys(ring)
        domains = "none" if ring is None else ", ".join(sorted(ring.domains)) or "none"
        log.info("the keys were read anew; domains: %s", domains)
