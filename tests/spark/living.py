"""A live cluster to send to: a rendezvous server, and a node that notes what it gets."""

import contextlib
import threading

from tests.cluster.clustering import rendezvous

import framewire as fw


@fw.message("replay.work")
class Work(bytes):
    __slots__ = ()


@fw.message("replay.note", version=2, partition="eu")
class Note(bytes):
    __slots__ = ()


class Worker(fw.Actor):
    """Notes what it gets, in order."""

    def __init__(self):
        self.got = []
        self.frames = []
        """The frames that each came in."""
        self.came = threading.Condition()

    @fw.handles(Work)
    async def work(self, work: Work, ctx: fw.Context):
        self._note(work, ctx)

    @fw.handles(Note)
    async def note(self, note: Note, ctx: fw.Context):
        self._note(note, ctx)

    def _note(self, payload, ctx):
        with self.came:
            self.got.append((bytes(payload), ctx.correlation_id))
            self.frames.append(tuple(bytes(frame) for frame in ctx.body_frames))
            self.came.notify_all()

    @property
    def bodies(self):
        return [body for body, _ in self.got]

    def wait_for(self, count, seconds=20):
        with self.came:
            assert self.came.wait_for(lambda: len(self.got) >= count, seconds), f"got {len(self.got)} of {count}"


@contextlib.contextmanager
def living_cluster():
    """The address of a rendezvous server, and the worker behind it."""
    worker = Worker()
    with rendezvous() as server, fw.Client(rendezvous=[server.uri]) as node:
        node.host(worker)
        yield server.uri, worker
