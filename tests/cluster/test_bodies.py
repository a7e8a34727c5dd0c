"""Bodies of several frames between processes: compiled and pure, signed and not, passed on and recorded."""

import asyncio
import contextlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cluster.clustering import make_node
from tests.cluster.processes import end, line_of, start
from tests.node.bodies import LARGE, Copy, Mirror, Picture, Readings, Same, assert_same, readings
from tests.node.running import eventually, run

import framewire as fw
from framewire.capture import read
from framewire.cluster.channel import COMPILED
from framewire.node.payloads import type_of
from framewire.wire import decode

SCRIPT = str(Path(__file__).with_name("bodies_process.py"))
SECRET = bytes(range(32))
PICTURE = [b"head", b"p" * LARGE, b"", b"small", b"q" * LARGE]


def keys(secret=SECRET, algorithm="sha256"):
    return fw.KeyRing([fw.DomainKey("bodies", secret, algorithm)], {"bodies": ["bodies.*"]})


@contextlib.contextmanager
def mirror(*, pure=False, **options):
    """The address of a node in another process."""
    process = start(sys.executable, SCRIPT, json.dumps(options), pure=pure)
    try:
        address = line_of(process.stdout).strip()
        assert address, process.stderr.read().decode()
        yield address
    finally:
        end(process)


@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
@pytest.mark.parametrize("pure", [False, True], ids=["compiled", "pure"])
def test_buffers_arrays_and_batches_come_back_from_another_process_as_they_were(pure, signed):
    async def main(address):
        keyring = keys() if signed else None
        async with make_node(peers=[address], keyring=keyring) as node:
            for buffers in (PICTURE, [b"only"], [b"l" * LARGE], []):
                for _ in range(3):  # like messages may be read and written another way
                    copy = await node.hub.ask(Picture(buffers), Copy)
                    assert copy.frames == tuple(buffers)
            sent = readings()
            same = await node.hub.ask(sent, Same)
            assert_same(same.readings, sent)
            assert same.frames == [len(frame) for frame in type_of(Readings).frames(sent)]
            assert not same.writable

    with mirror(pure=pure, signed=signed) as address:
        run(main(address), 60)


def test_a_body_that_was_signed_frame_by_frame_is_refused_with_another_key():
    async def main(address):
        async with make_node(peers=[address], keyring=keys(bytes(32))) as node:
            with pytest.raises((fw.BadSignature, fw.Expired, fw.NoRoute)):
                await node.hub.ask(Picture(PICTURE), Copy, timeout=2)

    with mirror(signed=True) as address:
        run(main(address), 60)


def test_a_handler_sees_views_of_what_came():
    async def main():
        first = make_node()
        async with first:
            here = Mirror()
            await first.host(here)
            async with make_node(peers=[first.uri]) as second:
                await second.hub.ask(Picture(PICTURE), Copy)
                (frames,) = here.seen
                assert frames == tuple(PICTURE)
                kinds = [type(frame) for frame in frames]
                large = memoryview if COMPILED else bytes
                assert kinds == [bytes, large, bytes, bytes, large]

    run(main())


def test_a_node_in_between_passes_frames_on_as_they_are():
    class Gate(fw.Actor):
        @fw.handles(Picture)
        async def passes(self, _: Picture, ctx: fw.Context):
            await ctx.forward(to_node=b"last")

    async def main():
        last = make_node(identity="last")
        async with last:
            await last.host(Mirror())
            async with make_node(identity="middle", peers=[last.uri]) as middle:
                route = await middle.host(Gate())
                await eventually(lambda: middle._router.table.knows_node(b"last"))
                async with make_node(peers=[middle.uri]) as asker:
                    await eventually(lambda: asker._router.table.knows_node(b"middle"))
                    copy = await asker.hub.ask(Picture(PICTURE), Copy, to_actor=route)
                    assert copy.frames == tuple(PICTURE)

    run(main())


def test_max_message_bytes_holds_for_all_frames_together():
    async def main():
        first = make_node(max_message_bytes=3 * LARGE)
        async with first:
            await first.host(Mirror())
            async with make_node(peers=[first.uri], max_message_bytes=3 * LARGE) as second:
                await second.hub.ask(Picture([bytes(LARGE)] * 2), Copy)
                with pytest.raises(fw.MessageError, match="max_message_bytes"):
                    await second.hub.ask(Picture([bytes(LARGE)] * 3), Copy)
                await second.hub.ask(Picture([bytes(LARGE)] * 2), Copy)

    run(main())


def test_max_frames_holds_for_a_body_of_many_frames():
    async def main():
        first = make_node(max_frames=100)
        async with first:
            await first.host(Mirror())
            async with make_node(peers=[first.uri], max_frames=100) as second:
                with pytest.raises(fw.MessageError, match="max_frames"):
                    await second.hub.ask(Picture([b"x"] * 100), Copy)
                copy = await second.hub.ask(Picture([b"x"] * 50), Copy)
                assert len(copy) == 50

    run(main())


def test_an_array_that_is_sent_again_and_again_is_right_each_time():
    async def main():
        first = make_node()
        async with first:
            await first.host(Mirror())
            async with make_node(peers=[first.uri]) as second:
                sent = [Readings("many", np.full(20_000, number, np.float64)) for number in range(50)]
                found = await asyncio.gather(*(second.hub.ask(each, Same) for each in sent))
                for one, other in zip(found, sent, strict=True):
                    assert np.array_equal(one.readings.values, other.values)

    run(main())


@pytest.mark.parametrize("bodies", ["keep", 10], ids=["whole", "cut"])
def test_a_recording_keeps_the_frames(tmp_path, bodies):
    async def main():
        first = make_node(identity="first", capture=fw.Capture(tmp_path, bodies=bodies))
        async with first:
            await first.host(Mirror())
            async with make_node(peers=[first.uri]) as second:
                await second.hub.ask(Picture(PICTURE), Copy)

    run(main())
    rows = read(tmp_path).to_pylist()
    found = [decode(row["frames"]) for row in rows]
    recorded = {
        (row["direction"], message.identity): message.body_frames
        for row, message in zip(rows, found, strict=True)
        if message.identity.startswith(b"bodies.")
    }
    assert recorded.keys() == {
        *(("received", b"bodies.picture"), ("delivered", b"bodies.picture"), ("sent", b"bodies.copy")),
    }
    for frames in recorded.values():
        if bodies == "keep":
            assert frames == tuple(PICTURE)
        else:
            assert [frame[:4] for frame in frames] == [frame[:4] for frame in PICTURE]
            assert all(len(frame) < 200 for frame in frames)


def test_a_message_that_stays_on_its_node_is_recorded_in_its_frames(tmp_path):
    async def main():
        async with make_node(capture=fw.Capture(tmp_path)) as node:
            await node.host(Mirror())
            for _ in range(3):
                await node.hub.ask(Picture(PICTURE), Copy)

    run(main())
    found = [decode(frames) for frames in read(tmp_path)["frames"].to_pylist()]
    assert [each.body_frames for each in found if each.identity == b"bodies.picture"] == [tuple(PICTURE)] * 3
    assert [each.body_frames for each in found if each.identity == b"bodies.copy"] == [tuple(PICTURE)] * 3
