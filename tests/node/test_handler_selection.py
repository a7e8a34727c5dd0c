"""Which handler gets a message."""

import pytest
from tests.node.messages import Answer, Question
from tests.node.running import run

import framewire as fw


class Named(fw.Actor):
    def __init__(self, name):
        self.name = name

    @fw.handles(Question)
    async def answer(self, _):
        return Answer(self.name)


async def two(node):
    return await node.host(Named("a")), await node.host(Named("b"))


@pytest.mark.parametrize("as_bytes", [False, True], ids=["route", "bytes"])
def test_a_message_with_a_receiver_goes_to_that_receiver(as_bytes):
    async def main():
        async with fw.Node() as node:
            _, second = await two(node)
            address = second.receiver if as_bytes else second
            answers = [(await node.hub.ask(Question(), Answer, to_actor=address)).text for _ in range(3)]
            assert answers == ["b", "b", "b"]

    run(main())


def test_a_message_without_a_receiver_goes_to_whoever_handles_its_id_in_turn():
    async def main():
        async with fw.Node() as node:
            await two(node)
            answers = [(await node.hub.ask(Question(), Answer)).text for _ in range(4)]
            assert answers == ["a", "b", "a", "b"]

    run(main())


def test_a_message_for_this_node_is_handled_here():
    async def main():
        async with fw.Node(identity="here") as node:
            await two(node)
            assert (await node.hub.ask(Question(), Answer, to_node=b"here")).text == "a"

    run(main())


def test_a_receiver_that_does_not_handle_the_message_does_not_get_it():
    async def main():
        async with fw.Node() as node:
            await two(node)
            idle = await node.host(fw.Actor())
            with pytest.raises(fw.NoRoute, match="not known or does not handle it"):
                await node.hub.ask(Question(), Answer, to_actor=idle)

    run(main())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"to_actor": b"\x01nobody"}, "receiver 01"), ({"to_node": b"nowhere"}, "node nowhere is not known")],
    ids=["actor", "node"],
)
def test_an_unknown_address_has_no_route(options, complaint):
    async def main():
        async with fw.Node() as node:
            await two(node)
            with pytest.raises(fw.NoRoute, match=complaint):
                await node.hub.ask(Question(), Answer, **options)

    run(main())


def test_no_route_names_the_versions_that_are_handled():
    @fw.message("test.question", version=7, partition="eu")
    class Newer(bytes):
        pass

    async def main():
        async with fw.Node() as node:
            await two(node)
            with pytest.raises(fw.NoRoute, match=r"test.question v7 \[eu\]: nobody .*Known: test.question v1"):
                await node.hub.ask(Newer(), Answer)

    run(main())
