"""Domains and their keys between real processes."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import pytest
import zmq
from tests.cluster.clustering import rendezvous, uri_of
from tests.cluster.domain_process import Charge, Charged, Look, Seen
from tests.cluster.processes import end, line_of, start, within
from tests.node.running import eventually

import framewire as fw
from framewire.wire import decode, encode

SCRIPT = str(Path(__file__).with_name("domain_process.py"))
QUICK = {"heartbeat": 0.5, "misses": 4}
PAY = fw.MessageId(b"pay.charge")


class Domain:
    """A key file for each member, and its process."""

    def __init__(self, folder, server):
        self.folder = folder
        self.server = server
        self.processes = {}
        self.identities = {}

    def write(self, name, *secrets):
        """Let a member sign with the first of these and accept them all."""
        first, *others = [f'"hex:{secret.hex()}"' for secret in secrets]
        path = self.folder / f"{name}.toml"
        path.touch(0o600)
        path.write_text(f'[payments]\nkey = {first}\naccept = [{", ".join(others)}]\nidentities = ["pay.*"]\n')
        return path

    def launch(self, name, keyfile, **options):
        told = json.dumps({"rendezvous": [self.server.uri], **QUICK, **options})
        process = self.processes[name] = start(sys.executable, SCRIPT, name, str(keyfile or ""), told)
        said = line_of(process.stdout)
        assert said, process.stderr.read().decode()
        self.identities[name] = said.split()[0].encode()

    def rekey(self, name):
        self.processes[name].send_signal(signal.SIGHUP)
        assert line_of(self.processes[name].stdout) == "rekeyed\n"

    def close(self):
        for process in self.processes.values():
            end(process)


@pytest.fixture
def domain(tmp_path):
    with rendezvous() as server, contextlib.closing(Domain(tmp_path, server)) as made:
        yield made


@contextlib.asynccontextmanager
async def member(domain, ring, handlers=None, **options):
    """A node of this process, once it knows so many cashiers."""
    told = {"rendezvous": [domain.server.uri], "signals": False, "stop_timeout": 0, **QUICK, **options}
    async with fw.Node(keyring=ring, **told) as node:
        if handlers is not None:
            await eventually(lambda: len(list(node._router.table.all(PAY))) == handlers, 20)
        yield node


def test_a_key_is_rotated_under_load_without_a_failed_message(domain):
    old, new = os.urandom(32), os.urandom(32)
    names = ("a", "b")
    for name in names:
        domain.launch(name, domain.write(name, old))

    async def main():
        asked, running = 0, True

        async def asking(node):
            nonlocal asked
            while running:
                asked += 1
                assert (await node.hub.ask(Charge(asked), Charged, timeout=20)).cents > 0

        mine = domain.write("mine", old)
        async with member(domain, fw.KeyRing.from_file(mine), 2) as node:
            askers = [asyncio.create_task(asking(node)) for _ in range(20)]

            async def everyone(*secrets):
                """Give all these keys, one after the other, while all of them are at work."""
                for name in names:
                    domain.write(name, *secrets)
                    await asyncio.to_thread(domain.rekey, name)
                    await eventually(lambda enough=asked + 200: asked > enough)
                node.use_keys(fw.KeyRing.from_file(domain.write("mine", *secrets)))
                await eventually(lambda enough=asked + 200: asked > enough)  # none is under way that is older

            await everyone(old, new)
            await everyone(new, old)
            await everyone(new)
            running = False
            await asyncio.gather(*askers)
            assert not node.dead_letters.counts
            for name in names:
                seen = await node.hub.ask(Look(), Seen, to_node=domain.identities[name])
                assert seen.refused == {}
            node.use_keys(fw.KeyRing.from_file(domain.write("mine", old)))
            with pytest.raises(fw.BadSignature):
                await node.hub.ask(Charge(1), Charged)

    within(100, main())


def test_a_node_without_the_key_sees_no_routes_and_can_neither_ask_nor_be_asked(domain):
    secret = os.urandom(32)
    domain.launch("a", domain.write("a", secret))
    domain.launch("keyless", None)

    async def main():
        ring = fw.KeyRing.from_file(domain.write("mine", secret))
        async with member(domain, ring, 1) as node:
            await eventually(lambda: node._router.table.knows_node(domain.identities["keyless"]))
            seen = await node.hub.ask(Look(), Seen, to_node=domain.identities["keyless"])
            assert seen.handlers == 0
            assert {(await node.hub.ask(Charge(1), Charged)).by for _ in range(10)} == {"a"}
            with pytest.raises(fw.BadSignature):
                await node.hub.ask(Charge(1), Charged, to_node=domain.identities["keyless"])
        async with member(domain, None, timeout=5) as node:
            await eventually(lambda: node._router.table.knows_node(domain.identities["a"]))
            # What others call payments is to these two no domain at all: they only understand each other.
            await eventually(lambda: len(list(node._router.table.all(PAY))) == 1)
            assert {(await node.hub.ask(Charge(1), Charged)).by for _ in range(10)} == {"keyless"}
            with pytest.raises(fw.BadSignature):
                await node.hub.ask(Charge(1), Charged, to_node=domain.identities["a"])

    within(60, main())


def test_a_recorded_message_that_is_sent_again_is_counted_and_not_handled(domain):
    secret = os.urandom(32)
    ring = fw.KeyRing.from_file(domain.write("mine", secret))

    class Recorder:
        frames = None

        def open(self, _):
            pass

        def record(self, direction, _, frames, __=None, ___=0):
            if direction == "received" and decode(frames).identity == b"pay.charge":
                self.frames = list(frames)

        def close(self):
            pass

    async def main():
        recorder, handled = Recorder(), []
        context = zmq.Context()
        async with (
            member(domain, ring, capture=recorder, timeout=5) as node,
            member(domain, ring) as other,
            contextlib.AsyncExitStack() as closing,
        ):
            closing.callback(context.destroy, 0)
            attacker = context.socket(zmq.DEALER)

            @node.handler(Charge)
            async def charge(charge: Charge) -> Charged:
                handled.append(charge.cents)
                return Charged(charge.cents, "me")

            await eventually(lambda: len(list(other._router.table.all(PAY))) == 1, 20)
            assert (await other.hub.ask(Charge(3), Charged)).by == "me"
            attacker.connect(uri_of(node))
            attacker.send_multipart(recorder.frames[1:])
            await eventually(lambda: node.dead_letters.counts[fw.Reason.REPLAYED] == 1)
            for changed in ({"body": b"\x81\xa5cents\x09"}, {"signature": bytes(32)}):
                attacker.send_multipart(encode(decode(recorder.frames).replace(**changed))[1:])
            await eventually(lambda: node.dead_letters.counts[fw.Reason.BAD_SIGNATURE] == 2)
            assert handled == [3]
            (by_peer,) = node._core.conduct.counts.values()
            assert by_peer == {fw.Reason.REPLAYED: 1, fw.Reason.BAD_SIGNATURE: 2}

    within(60, main())
