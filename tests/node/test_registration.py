"""What other nodes are told about the receivers of this one."""

import pytest
from tests.node.messages import Job, Question
from tests.node.running import run
from tests.node.transports import Recording

import framewire as fw
from framewire.node.payloads import type_of


class Listening(Recording):
    def __init__(self):
        super().__init__()
        self.announced = {}

    def announce(self, registrations):
        self.announced.update(registrations)

    def withdraw(self, registrations, grace=None):  # noqa: ARG002 - nobody waits here
        for route, _ in registrations:
            del self.announced[route]


class Worker(fw.Actor):
    @fw.handles(Job)
    async def job(self, _): ...

    @fw.handles(Question)
    async def question(self, _): ...


@pytest.mark.parametrize("local", [False, True], ids=["global", "local"])
def test_an_actor_is_announced_with_what_it_handles_unless_it_is_local(local):
    async def main():
        transport = Listening()
        async with fw.Node(transport=transport) as node:
            address = await node.host(Worker(), local=local)
            handled = {type_of(Job).message_id, type_of(Question).message_id}
            assert set(transport.announced.get(address, ())) == (set() if local else handled)
            assert (address in dict(node.port.registrations)) is not local

    run(main())


@pytest.mark.parametrize("local", [False, True], ids=["global", "local"])
def test_a_hub_is_announced_unless_it_is_local(local):
    async def main():
        transport = Listening()
        async with fw.Node(transport=transport) as node:
            hub = await node.new_hub(local=local)
            assert (fw.Route(hub.identity) in transport.announced) is not local

    run(main())


def test_an_actor_that_leaves_is_withdrawn():
    async def main():
        transport = Listening()
        async with fw.Node(transport=transport) as node:
            address = await node.host(Worker())
            await node.unhost(address)
            assert address not in transport.announced
            assert address not in dict(node.port.registrations)

    run(main())


def test_an_actor_that_is_given_up_is_withdrawn():
    class Broken(Worker):
        restart = fw.Restart(after=1, attempts=1)
        starts = 0

        async def started(self):
            self.starts += 1
            if self.starts > 1:
                raise OSError("gone")

        async def stopping(self):
            stopped.append(True)

        @fw.handles(Question)
        async def question(self, _):
            raise ValueError

    stopped = []

    async def main():
        transport = Listening()
        async with fw.Node(transport=transport) as node:
            address = await node.host(Broken())
            assert address in transport.announced
            await node.hub.tell(Question())
        assert stopped == [True]
        assert address not in transport.announced

    run(main())
