"""A node or a rendezvous server that is attacked, as a process: ``attacked_process.py KIND OPTIONS``.

It says where it is, as JSON, and ends with its input. Options are JSON: ``key`` is that of a signed domain, in hex,
``curve`` the key files of CURVE, and ``files`` how many files the process may open.
"""

import asyncio
import json
import logging
import os
import resource
import sys
import threading

from tests.cluster.clustering import Named

import framewire as fw
from framewire.cluster import Rendezvous
from framewire.security.curve import Curve


def say(**facts):
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def ring(key):
    """The keys of a domain that has the messages of these tests."""
    return fw.KeyRing([fw.DomainKey("sales", bytes.fromhex(key))], {"sales": ["test.*"]})


async def node(options):
    async with fw.Node(signals=False, **({"bind": "tcp://127.0.0.1:*"} | options)) as made:
        await made.host(Named("attacked"))
        say(uri=made.uri, health=made._transport._liveness.uri, pid=os.getpid())
        await asyncio.to_thread(sys.stdin.read)


def main(kind, written):
    options = json.loads(written)
    if files := options.pop("files", None):
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    key, curve = options.pop("key", None), options.pop("curve", None)
    if curve:
        options["curve"] = Curve(**curve)
    if kind == "node":
        asyncio.run(node(options | ({"keyring": ring(key)} if key else {})))
        return
    server = Rendezvous("tcp://127.0.0.1:*", **options)
    thread = threading.Thread(target=server.run)
    thread.start()
    say(uri=server.uri, broadcast=server.broadcast, relay=server.relay, pid=os.getpid())
    sys.stdin.read()
    server.stop()
    thread.join()


if __name__ == "__main__":
    logging.disable()
    main(*sys.argv[1:])
