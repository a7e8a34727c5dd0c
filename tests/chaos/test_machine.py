"""What a machine does to its processes: a wall clock that is set, and no descriptor left."""

import contextlib
import resource
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from tests.chaos.journal import REPLIED
from tests.chaos.ledger import account
from tests.chaos.members import Members, Server
from tests.chaos.messages import Answered, Numbered
from tests.cluster.clustering import Named, acquainted, handled_by, in_a_row, make_node, peers
from tests.node.running import eventually, run, until

import framewire as fw

DAY = 86_400
PATIENT = 20.0


@contextlib.contextmanager
def served(folder, **options):
    """A server, and nodes that know it."""
    server = Server(in_a_row(3))
    with contextlib.closing(server):
        server.start()
        members = Members(folder, rendezvous=[server.uri], heartbeat=0.4, misses=4, **options)
        with contextlib.closing(members):
            yield server, members


@pytest.fixture(scope="module")
def stepping(tmp_path_factory):
    """The library that lets a wall clock jump, and the file that says by how much."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler on this machine")
    folder = tmp_path_factory.mktemp("clock")
    source, library, by = Path(__file__).with_name("stepping_clock.c"), folder / "clock.so", folder / "step"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, timeout=60)
    by.write_text("0")
    return library, by


@pytest.mark.timeout(180)
def test_asks_and_signs_of_life_do_not_depend_on_the_wall_clock(stepping, tmp_path):
    library, by = stepping
    environment = {"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(by)}
    with served(tmp_path, environment=environment) as (_, members):
        for name in "abc":
            members.begin(name, rate=30, plain=True, timeouts=(10.0, 10.0))
        members.ready(*"abc")
        everyone = set(members.identities.values())
        assert members.settled(everyone, PATIENT) is not None
        for step in (DAY, -DAY, 0):
            by.write_text(str(step))
            for name in "abc":
                there = members.processes[name].tell("clock")["time"]
                assert abs(there - time.time() - step) < 60, "the clock has jumped"
            deadline = time.monotonic() + 2.0  # longer than the misses
            while time.monotonic() < deadline:
                assert set(map(frozenset, members.tables().values())) == {frozenset(everyone)}, "nobody is missed"
                time.sleep(0.1)
        members.quiet()
        found = account(members.journals())
    assert not found.problems
    assert set(found.outcomes) == {REPLIED}
    assert found.asks > 200


def files(process):
    """How many files a process has open."""
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


@contextlib.contextmanager
def crowd_at(uri):
    """More connections to an address than whoever listens there can take; close what is yielded to end them."""
    host, port = uri.removeprefix("tcp://").split(":")
    with contextlib.ExitStack() as crowd:
        for _ in range(60):
            crowd.enter_context(socket.create_connection((host, int(port)), timeout=10))
        yield crowd


@pytest.mark.timeout(180)
def test_a_node_without_free_descriptors_answers_those_it_knows_and_takes_others_when_it_can(tmp_path):
    with served(tmp_path, signed=False) as (server, members):
        members.begin("node", asks=False, rate=1)
        members.ready("node")
        node = members.processes["node"]

        async def answered(asker, seconds=PATIENT):
            return (await asker.hub.ask(Numbered("one"), Answered, timeout=seconds)).number == "one"

        async def main():
            async with fw.Node(rendezvous=[server.uri], signals=False) as known:
                assert await answered(known)
                uri, limit = (
                    known._transport.uri_of(members.identities["node"].encode()),
                    node.tell("files 4")["limit"],
                )
                with crowd_at(uri) as crowd:
                    await eventually(lambda: files(node) == limit)
                    for _ in range(20):
                        assert await answered(known), "those who are connected do not notice"
                    async with fw.Node(rendezvous=[server.uri], signals=False) as late:
                        await eventually(lambda: late._router.table.nodes, PATIENT)
                        with pytest.raises(fw.MessageError):
                            await answered(late, 2.0)
                        assert await answered(known)
                        crowd.close()
                        await came_through(late)
                    assert await answered(known)

        async def came_through(asker):
            deadline = time.monotonic() + PATIENT
            while time.monotonic() < deadline:
                with contextlib.suppress(fw.MessageError):
                    return await answered(asker, 2.0)
            raise AssertionError("nobody is let in any more")

        run(main(), timeout=120)
        until(lambda: node.process.poll() is None)


@pytest.mark.timeout(180)
def test_a_server_without_free_descriptors_serves_those_it_knows_and_takes_others_when_it_can():
    here, there = (Server(in_a_row(3), heartbeat=0.4) for _ in range(2))
    here.know(there)
    there.know(here)

    async def crowded():
        async with make_node([here]) as one, make_node([here]) as two:
            await acquainted(one, two)
            limit = files(here.process) + 4
            resource.prlimit(here.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
            with crowd_at(here.uri) as crowd:
                await eventually(lambda: files(here.process) == limit)
                await eventually(lambda: "no new connection to the partner" in here.process.errors())
                async with make_node([here]) as late:
                    await two.host(Named("two"))
                    await handled_by(1, one)  # those who are connected do not notice
                    assert not peers(late)
                    crowd.close()
                    await acquainted(one, two, late)
                    await handled_by(1, late)

    async def joined():
        async with make_node([here]) as one, make_node([there]) as other:
            await acquainted(one, other)

    with contextlib.closing(here), contextlib.closing(there):
        here.start()
        run(crowded(), timeout=120)
        there.start()
        run(joined(), timeout=60)
        assert here.process.process.poll() is None
