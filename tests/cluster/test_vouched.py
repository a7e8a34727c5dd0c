"""What strangers say about members: it counts where nobody signs, and changes nothing where members do."""

import asyncio
import contextlib

import pytest
from fuzz import forging, zmtp
from tests.cluster.clustering import Named, acquainted, handled_by, handlers, make_node, peers, served, uri_of
from tests.cluster.strangers import MODES, Cluster
from tests.node.messages import Answer, Question
from tests.node.running import eventually, run

import framewire as fw
from framewire.wire import Message, RouterAddress, encode

SHORTEST = 0.05


class Scene:
    """An asker and a member that know each other, and a stranger who speaks to the asker, if it is let in."""

    def __init__(self, mode, asker, member):
        self.mode, self.asker, self.member = mode, asker, member
        self.patience = asker._transport._settings.patience

    @property
    def health(self):
        return self.member._transport._liveness.uri

    @property
    def watched(self):
        return self.asker._transport._liveness._watched[self.member.identity]

    async def say(self, *messages):
        """Say something to the asker as somebody without keys; whether it was heard."""
        heard = self.asker._transport._discovery
        done, hear = 0, heard.hear

        def noted(frames, **how):
            nonlocal done
            try:
                return hear(frames, **how)
            finally:
                done += frames[0] == b"stranger"

        heard.hear = noted
        try:
            with await asyncio.to_thread(zmtp.connect, uri_of(self.asker), b"DEALER", b"stranger") as stranger:
                for frames in messages:
                    stranger.send(frames)
                await eventually(lambda: done == len(messages) and not heard.is_behind)
        except ConnectionError:
            return False
        finally:
            del heard.hear
        return True


@contextlib.asynccontextmanager
async def scene(mode, folder):
    cluster = Cluster(mode, folder)
    async with (
        contextlib.AsyncExitStack() as stack,
        make_node(**cluster.node_options) as member,
    ):
        told = {"peers": [uri_of(member)], **cluster.node_options}
        asker = await stack.enter_async_context(make_node(**told))
        await member.host(Named("member"))
        await acquainted(asker, member)
        await handled_by(1, asker)
        made = Scene(mode, asker, member)
        await eventually(lambda: member.identity in asker._transport._liveness._watched)
        await eventually(lambda: made.watched.place[1] == (mode == "signed"))
        yield made


def attack(main):
    """Run a test with each kind of cluster."""

    @pytest.mark.parametrize("mode", MODES)
    def test(mode, tmp_path):
        async def staged():
            async with scene(mode, tmp_path) as made:
                await main(made)

        run(staged())

    test.__name__ = main.__name__
    return test


async def still_answers(scene):
    assert (await scene.asker.hub.ask(Question(), Answer)).text == "member"


@attack
async def test_a_stranger_says_that_a_member_gives_signs_of_life_all_the_time(scene):
    same = {"health": scene.health, "interval": 0.0}
    heard = await scene.say(forging.announcement(scene.member.identity, uri_of(scene.member), **same))
    assert heard == (scene.mode != "curve")
    if scene.mode == "open":  # it is believed, but not below the floor
        await eventually(lambda: scene.watched.patience == pytest.approx(SHORTEST * 10))
    else:
        assert scene.watched.patience == scene.patience
        await still_answers(scene)


@attack
async def test_a_stranger_gives_signs_of_life_in_a_members_name_from_its_own_address(scene):
    with zmtp.Listener() as elsewhere:
        announced = forging.announcement(
            b"made up", "tcp://127.0.0.1:9", health=elsewhere.uri, routes=[(b"\1x", [b"x"])]
        )
        if not await scene.say(announced):
            return
        with await asyncio.to_thread(elsewhere.accept, b"PUB") as publisher:
            heard, hear = [], scene.asker._transport._liveness._hear

            def noted(frames, ear):
                hear(frames, ear)
                if ear.uri == elsewhere.uri:
                    heard.append(frames)

            scene.asker._transport._liveness._hear = noted
            await asyncio.to_thread(publisher.receive)  # a subscription
            before = scene.watched.seen
            for _ in range(5):
                publisher.send(forging.heartbeat(scene.member.identity, scene.health, 0.0))
            await eventually(lambda: len(heard) >= 5)
            assert scene.watched.patience == scene.patience
            await eventually(lambda: scene.watched.seen > before)  # by its own
            assert scene.watched.patience == scene.patience
            await still_answers(scene)


@attack
async def test_a_stranger_says_that_a_member_has_left(scene):
    await scene.say(forging.farewell(scene.member.identity, uri_of(scene.member)))
    if scene.mode == "open":
        assert scene.member.identity not in peers(scene.asker)
    else:
        assert scene.member.identity in peers(scene.asker)
        await still_answers(scene)


@attack
async def test_a_stranger_says_that_a_member_is_elsewhere(scene):
    with zmtp.Listener() as elsewhere:
        await scene.say(forging.announcement(scene.member.identity, elsewhere.uri, health=scene.health))
        if scene.mode == "open":
            assert scene.asker._transport.uri_of(scene.member.identity) == elsewhere.uri
        else:
            assert scene.asker._transport.uri_of(scene.member.identity) == uri_of(scene.member)
            await still_answers(scene)


@attack
async def test_a_stranger_says_that_a_members_actor_or_hub_is_gone(scene):
    route = next(iter(scene.asker._router.table.all(fw.MessageId(b"test.question"))))
    hub = scene.asker._router.table.find(scene.member.hub.identity)
    assert hub is not None
    withdrawn = [(route.receiver, [b"test.question"]), (route.receiver, []), (scene.member.hub.identity, [])]
    await scene.say(forging.withdrawal(scene.member.identity, uri_of(scene.member), withdrawn))
    if scene.mode == "open":
        assert handlers(scene.asker) == 0
    else:
        assert handlers(scene.asker) == 1
        assert scene.asker._router.table.find(scene.member.hub.identity) == hub
        await still_answers(scene)


@attack
async def test_a_stranger_says_that_a_members_hub_and_actor_are_its_own(scene):
    table = scene.asker._router.table
    actor = next(iter(table.all(fw.MessageId(b"test.question")))).receiver
    claimed = [(scene.member.hub.identity, []), (actor, [b"other.message"])]
    await scene.say(*(forging.announcement(b"made up", "tcp://127.0.0.1:9", routes=[one]) for one in claimed))
    taken = {table.find(receiver).node for receiver, _ in claimed}
    assert taken == ({b"made up"} if scene.mode == "open" else {scene.member.identity})


@attack
async def test_a_stranger_says_that_a_member_writes_an_older_format(scene):
    said = forging.announcement(scene.member.identity, uri_of(scene.member), health=scene.health)
    said[-1] = encode(Message(b"x"), 4)[-1]
    await scene.say(said)
    formats = scene.asker._transport._formats.others
    assert (scene.member.identity in formats) == (scene.mode == "open")


@attack
async def test_a_message_in_a_members_name_in_an_older_format_changes_nothing_where_members_sign(scene):
    member = RouterAddress(uri_of(scene.member), scene.member.identity)
    told = encode(Message(b"nobody.handles", body_frames=(b"x",), routing=(member,), hops=1), 4)
    try:
        with await asyncio.to_thread(zmtp.connect, uri_of(scene.asker)) as stranger:
            stranger.send(told[1:])
            await eventually(scene.asker.dead_letters.counts.total)
    except ConnectionError:
        assert scene.mode == "curve"
    assert (scene.member.identity in scene.asker._transport._formats.others) == (scene.mode == "open")


def test_an_interval_has_a_floor_and_a_ceiling():
    async def main(server):
        async with make_node(server) as node:
            watched = node._transport._liveness._watched
            for name, interval, counts in ((b"a", 0.0, SHORTEST), (b"b", -5.0, SHORTEST), (b"c", 10.0**6, 300.0)):
                node._transport._liveness.watch(name, "tcp://127.0.0.1:9", interval)
                await eventually(lambda name=name: name in watched)
                assert watched[name].patience == pytest.approx(counts * 10)

    run(served(main))
