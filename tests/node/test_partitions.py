"""Partition and version are of the message; its class has defaults."""

import asyncio
import dataclasses
import subprocess
import sys
from operator import attrgetter

import msgspec
import pytest
from tests.node.running import eventually, run

import framewire as fw
from framewire.node.payloads import type_of
from framewire.testing import Cluster


@fw.message("partitions.place", version=1)
class Place(msgspec.Struct):
    article: str = ""


@fw.message("partitions.placed")
class Placed(msgspec.Struct):
    by: str = ""


@fw.message("partitions.step", partition="start")
class Step(msgspec.Struct):
    left: int = 0


PLACE = type_of(Place).message_id


def on(partition=b"", version=1):
    return fw.MessageId(b"partitions.place", version, partition)


class Regions(fw.Actor):
    """Handles orders in two regions with one method."""

    @fw.handles(Place, partitions=["eu", b"us"])
    async def place(self, _, ctx):
        return Placed(ctx.partition.decode())


# --- naming a type in a partition


@pytest.mark.parametrize("partition", ["eu", b"eu"])
def test_a_type_is_named_in_a_partition_or_version(partition):
    assert type_of(Place.on(partition)).message_id == on(b"eu")
    assert type_of(Place.on(version=2)).message_id == on(version=2)
    assert type_of(Place.on(partition, version=2)).message_id == on(b"eu", 2)
    assert type_of(fw.on(Place, partition)).message_id == on(b"eu")
    assert type_of(fw.on(Place.on(partition), version=3)).message_id == on(b"eu", 3)
    assert type_of(Place.on("eu").on("")).message_id == PLACE
    assert type_of(Place).message_id == PLACE


def test_names_of_one_type_in_one_partition_are_equal():
    assert Place.on("eu") == Place.on(b"eu")
    assert len({Place.on("eu"), Place.on(b"eu"), Place.on("us")}) == 2


def test_a_class_that_has_something_of_the_name_keeps_it():
    @fw.message("partitions.switch")
    class Switch(msgspec.Struct):
        on: bool = True

    @fw.message("partitions.lamp")
    @dataclasses.dataclass
    class Lamp:
        on: bool

    assert Switch(on=False).on is False
    assert Lamp(on=False).on is False
    assert not hasattr(Lamp, "on")
    assert type_of(fw.on(Lamp, "eu")).message_id.partition == b"eu"


def test_a_class_without_a_declaration_has_no_partitions():
    class Plain:
        pass

    class Inherits(Place):
        pass

    for cls in (Plain, Inherits):
        with pytest.raises(fw.UsageError, match="is not a message"):
            fw.on(cls, "eu")


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (lambda: Place.on(5), "partition: 5 is neither text nor bytes"),
        (lambda: Place.on(version="2"), "version: '2' is not a number from 0 to 65535"),
        (lambda: Place.on(version=65536), "version: 65536 is not a number"),
        (
            lambda: Place.on("eu")("tea"),
            r"Place.on\(…\) names partitions.place v1 \[eu\] and makes none: send a Place",
        ),
    ],
)
def test_what_is_no_partition_or_version_is_told(wrong, complaint):
    with pytest.raises(fw.UsageError, match=complaint):
        wrong()


def test_a_named_type_passes_strict_type_checks(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import msgspec\nimport framewire as fw\n\n\n"
        '@fw.message("a.b")\nclass A(msgspec.Struct):\n    x: int = 0\n\n\n'
        '@fw.message("a.c")\nclass B(msgspec.Struct):\n    y: int = 0\n\n\n'
        "class Actor(fw.Actor):\n"
        '    regions = ["eu"]\n\n'
        '    @fw.handles(fw.on(A, "eu"))\n    async def a(self, a: A) -> B:\n        return B(a.x)\n\n'
        '    @fw.handles(A, partitions="regions")\n    async def b(self, a: A) -> B:\n        return B(a.x)\n\n'
        "    @fw.handles(A, partitions=lambda actor: actor.regions)\n"
        "    async def c(self, a: A) -> B:\n        return B(a.x)\n\n\n"
        "async def ask(node: fw.Node) -> int:\n"
        '    answer = await node.hub.ask(A(), fw.on(B, "eu"), partition=b"eu", version=2, new_flow=True)\n'
        "    return answer.y\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


# --- sending


WAYS = ["ask", "start", "send", "tell", "broadcast", "gather"]


async def sends(hub, way, **options):
    if way in ("ask", "start"):
        await getattr(hub, way)(Place(), Placed, **options)
    elif way == "gather":
        await hub.gather(Place(), Placed, stop_after=1, **options)
    else:
        await getattr(hub, way)(Place(), **options)


def takes(node, seen, **options):
    @node.handler(Place, **options)
    async def take(_, ctx):
        seen.append(ctx.message_id)
        return Placed()

    @node.handler(Placed)
    async def ignore(_):
        pass


@pytest.mark.parametrize("partition", ["eu", b"eu"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_send_takes_a_partition(way, partition):
    async def main():
        async with fw.Node() as node:
            seen = []
            takes(node, seen, partitions=["eu", "us"])
            await sends(node.hub, way, partition=partition)
            await eventually(lambda: seen)
            assert seen == [on(b"eu")]

    run(main())


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_send_takes_a_version(way):
    async def main():
        async with fw.Node() as node:
            seen = []

            @node.handler(Place.on(version=2), Place)
            async def take(_, ctx):
                seen.append(ctx.message_id)
                return Placed()

            @node.handler(Placed)
            async def ignore(_):
                pass

            await sends(node.hub, way, version=2)
            await eventually(lambda: seen)
            assert seen == [on(version=2)]

    run(main())


@pytest.mark.parametrize("way", ["ask", "tell", "broadcast", "reply", "forward"])
def test_so_does_a_context(way):
    async def main():
        async with fw.Node() as node:
            seen = []
            takes(node, seen, partitions=["eu", "us"])

            @node.handler(Step.on("here"))
            async def step(_, ctx):
                if way == "ask":
                    await ctx.ask(Place(), Placed, partition="us")
                else:
                    await getattr(ctx, way)(Place(), partition="us")

            await node.hub.tell(Step(), partition="here")
            await eventually(lambda: seen)
            assert seen == [on(b"us")]

    run(main())


def test_a_client_takes_partitions():
    with fw.Client() as client:
        client.host(Regions())
        assert client.ask(Place(), Placed, partition="eu").by == "eu"


def test_the_class_has_the_defaults():
    async def main():
        async with fw.Node() as node:
            seen = []

            @node.handler(Step)
            async def step(_, ctx):
                seen.append(ctx.partition)

            await node.hub.tell(Step())
            await eventually(lambda: seen)
            assert seen == [b"start"]

    run(main())


def test_a_partition_that_nobody_handles_has_no_route_and_the_error_names_others():
    async def main():
        async with fw.Node() as node:
            await node.host(Regions())
            with pytest.raises(fw.NoRoute, match=r"Known: partitions.place v1 \[eu\], partitions.place v1 \[us\]"):
                await node.hub.ask(Place(), Placed, partition="asia")
            with pytest.raises(fw.NoRoute):
                await node.hub.ask(Place(), Placed)

    run(main())


# --- answers


def answering(node):
    @node.handler(Place, partitions=["eu", "us"])
    async def take(_, ctx):
        return Placed(ctx.partition.decode())


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize(
    "wanted",
    [
        lambda: (Placed,),
        lambda: (Placed.on("eu"),),
        lambda: (Placed.on("anywhere"),),
        lambda: (Placed.on("eu"), Placed.on("us")),
        lambda: (Placed, Placed.on("eu")),
    ],
    ids=["usual", "same", "another", "several", "usual and same"],
)
def test_an_answer_is_in_the_partition_that_its_asker_waits_for_it_in(wanted, nodes):
    async def main():
        async with Cluster(nodes) as cluster:
            answering(cluster[-1])
            await cluster.settled()
            for _ in range(3):
                for region in ("eu", "us"):
                    answer = await cluster[0].hub.ask(Place(), *wanted(), partition=region, timeout=5)
                    assert answer == Placed(region)

    run(main())


def test_what_could_be_for_several_partitions_and_is_for_none_goes_on():
    async def main():
        async with fw.Node() as node:
            answering(node)
            with pytest.raises(fw.NoRoute, match=r"partitions.placed v1, which came of it"):
                await node.hub.ask(Place(), Placed.on("asia"), Placed.on("africa"), partition="eu", timeout=5)

    run(main())


def test_a_version_is_never_taken_for_another():
    async def main():
        async with fw.Node() as node:
            answering(node)
            with pytest.raises(fw.NoRoute, match=r"partitions.placed v1, which came of it"):
                await node.hub.ask(Place(), Placed.on(version=2), partition="eu", timeout=5)

    run(main())


def test_a_reply_in_a_chosen_partition_is_the_answer_only_for_who_waits_there():
    async def main():
        async with fw.Node() as node:

            @node.handler(Place)
            async def take(place, ctx):
                if place.article:
                    await ctx.reply(Placed("eu"), partition="eu")
                else:
                    await ctx.reply(Placed("v2"), version=2)

            assert (await node.hub.ask(Place("tea"), Placed.on("eu"), timeout=5)).by == "eu"
            assert (await node.hub.ask(Place(), Placed.on(version=2), timeout=5)).by == "v2"
            with pytest.raises(fw.NoRoute, match=r"partitions.placed v1 \[eu\], which came of it"):
                await node.hub.ask(Place("tea"), Placed, timeout=5)

    run(main())


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_next_step_of_the_same_message_stays_in_its_partition(nodes):
    async def main():
        async with Cluster(nodes) as cluster:
            seen = []

            @cluster[-1].handler(Step, partitions=["a", "b"])
            async def step(step, ctx):
                seen.append(ctx.partition)
                return Step(step.left - 1) if step.left else Placed()

            await cluster.settled()
            await cluster[0].hub.ask(Step(2), Placed, partition="b", timeout=5)
            assert seen == [b"b", b"b", b"b"]

    run(main())


@pytest.mark.parametrize("payload", [None, Place("other")], ids=["itself", "another"])
def test_a_message_that_is_passed_on_keeps_its_partition_and_version(payload):
    async def main():
        async with Cluster(2) as cluster:
            one, two = cluster.nodes

            @one.handler(Place.on("eu", version=1), local=True)
            async def passes(_, ctx):
                await ctx.forward(payload, to_node=two.identity)

            @two.handler(Place.on("eu"))
            async def takes(place, ctx):
                return Placed(f"{ctx.message_id} {place.article}")

            await cluster.settled()
            answer = await one.hub.ask(Place("this"), Placed, partition="eu", to_node=one.identity, timeout=5)
            assert answer.by == f"partitions.place v1 [eu] {'this' if payload is None else 'other'}"

    run(main())


def test_what_comes_next_is_in_the_partition_of_its_own_class():
    async def main():
        async with fw.Node() as node:

            @node.handler(Place, partitions=["eu"])
            async def take(_):
                return Step()

            @node.handler(Step)
            async def step(_, ctx):
                return Placed(ctx.partition.decode())

            assert (await node.hub.ask(Place(), Placed, partition="eu")).by == "start"

    run(main())


# --- handling


def test_one_actor_handles_many_partitions_with_one_handler():
    async def main():
        async with fw.Node() as node:
            await node.host(Regions())
            assert (await node.hub.ask(Place(), Placed, partition="eu")).by == "eu"
            assert (await node.hub.ask(Place(), Placed, partition="us")).by == "us"
            [handler] = node.stats().actors[-1].handlers
            assert (handler.message, handler.partitions) == ("partitions.place v1 [2 partitions]", 2)
            assert handler.handled == 2
            assert handler.handles(on(b"eu"))
            assert not handler.handles(on(b"eu", 2))

    run(main())


class Told:
    """Ways to tell the partitions of an actor when it is hosted."""

    class ByFunction(fw.Actor):
        def __init__(self, regions):
            self.regions = regions

        @fw.handles(Place, partitions=lambda actor: actor.regions)
        async def place(self, _, ctx):
            return Placed(ctx.partition.decode())

    class ByAttribute(ByFunction):
        @fw.handles(Place, partitions="regions")
        async def place(self, _, ctx):
            return Placed(ctx.partition.decode())

    class ByGetter(ByFunction):
        @fw.handles(Place, partitions=attrgetter("regions"))
        async def place(self, _, ctx):
            return Placed(ctx.partition.decode())

    class ByMethod(ByFunction):
        @fw.handles(Place, partitions="chosen")
        async def place(self, _, ctx):
            return Placed(ctx.partition.decode())

        def chosen(self):
            return self.regions


@pytest.mark.parametrize("actor", [Told.ByFunction, Told.ByAttribute, Told.ByGetter, Told.ByMethod])
def test_partitions_may_be_told_when_an_actor_is_hosted(actor):
    async def main():
        async with fw.Node() as node:
            await node.host(actor(["eu"]))
            await node.host(actor(["us", "asia"]))
            for region in ("eu", "us", "asia"):
                assert (await node.hub.ask(Place(), Placed, partition=region)).by == region
            assert node.stats().actors[-2].handlers[0].message == "partitions.place v1 [eu]"

    run(main())


def test_an_actor_keeps_its_partitions_over_a_restart():
    async def main():
        async with fw.Node() as node:
            made = []

            class Failing(fw.Actor):
                restart = fw.Restart(after=1)

                def __init__(self):
                    made.append(self)
                    self.regions = [f"region-{len(made)}"]

                @fw.handles(Place, partitions="regions")
                async def place(self, place, ctx):
                    if place.article == "bad":
                        raise ValueError("bad")
                    return Placed(ctx.partition.decode())

            await node.host(Failing)
            with pytest.raises(fw.RemoteError):
                await node.hub.ask(Place("bad"), Placed, partition="region-1")
            assert (await node.hub.ask(Place(), Placed, partition="region-1", timeout=5)).by == "region-1"
            assert len(made) == 2

    run(main())


@pytest.mark.parametrize(
    ("partitions", "complaint"),
    [
        ([], "there is none that .*take is for"),
        (["eu", "eu"], "to handle one message twice"),
        ("eu", r"attribute 'eu', which take does not have; for one partition of that name give \['eu'\]"),
        (b"eu", "b'eu' is neither a list of them nor something that gives one"),
        (5, "5 is neither a list"),
        ([5], "partitions: 5 is neither text nor bytes"),
        (lambda _: "eu", "'eu' of .*take is not a list of partitions"),
    ],
)
def test_what_are_no_partitions_is_told(partitions, complaint):
    async def main():
        async with fw.Node() as node:

            async def take(_):
                pass

            take.__qualname__ = "take"
            with pytest.raises(fw.UsageError, match=complaint.replace("which take", "which FunctionActor")):
                node.handler(Place, partitions=partitions)(take)

    run(main())


def test_two_methods_cannot_handle_a_message_in_one_partition():
    class Twice(fw.Actor):
        @fw.handles(Place, partitions=["eu", "us"])
        async def one(self, _):
            pass

        @fw.handles(Place.on("us"))
        async def other(self, _):
            pass

    async def main():
        async with fw.Node() as node:
            with pytest.raises(fw.UsageError, match=r"Twice handles partitions.place v1 \[us\] twice: in .* and "):
                await node.host(Twice())

    run(main())


def test_methods_can_handle_a_message_in_partitions_of_their_own():
    class Apart(fw.Actor):
        @fw.handles(Place, partitions=["eu", "us"])
        async def far(self, _):
            return Placed("far")

        @fw.handles(Place.on("here"), Place.on("here", version=2))
        async def near(self, _):
            return Placed("near")

        @fw.handles(Place)
        async def other(self, _):
            return Placed("other")

    async def main():
        async with fw.Node() as node:
            await node.host(Apart())
            hub = node.hub
            assert (await hub.ask(Place(), Placed, partition="us")).by == "far"
            assert (await hub.ask(Place(), Placed, partition="here")).by == "near"
            assert (await hub.ask(Place(), Placed, partition="here", version=2)).by == "near"
            assert (await hub.ask(Place(), Placed)).by == "other"

    run(main())


def test_partitions_of_every_kind_of_handler():
    async def main():
        async with fw.Node() as node:

            @node.handler(Place.on(version=1), partitions=["a", "b"], inline=True)
            def inline(_, ctx):
                return Placed(f"inline {ctx.partition.decode()}")

            @node.handler(Place.on(version=2), partitions=["a", "b"])
            def thread(_, ctx):
                return Placed(f"thread {ctx.partition.decode()}")

            @node.handler(Place.on(version=3), partitions=["a", "b"])
            async def stream(_, ctx):
                yield Placed(f"stream {ctx.partition.decode()}")

            for version, kind in enumerate(("inline", "thread", "stream"), 1):
                for partition in "ab":
                    answer = await node.hub.ask(Place(), Placed, partition=partition, version=version)
                    assert answer.by == f"{kind} {partition}"

    run(main())


# --- many

MANY = [f"p{number}" for number in range(10_000)]


def test_ten_thousand_partitions_are_one_handler_and_reach_other_nodes():
    class Many(fw.Actor):
        @fw.handles(Place, partitions=MANY)
        async def place(self, _, ctx):
            return Placed(ctx.partition.decode())

    async def main():
        async with Cluster(2) as cluster:
            one, two = cluster.nodes
            route = await two.host(Many())
            await cluster.settled()
            some = MANY[::10]
            asked = [one.hub.ask(Place(), Placed, partition=name) for name in some]
            assert [answer.by for answer in await asyncio.gather(*asked)] == some
            [handler] = two.stats().actors[-1].handlers
            assert (handler.handled, handler.partitions) == (len(some), len(MANY))
            with pytest.raises(fw.NoRoute, match=r"(partitions.place v1 \[p\d+\](, )?){5} \("):
                await one.hub.ask(Place(), Placed, partition="other", timeout=5)
            await two.unhost(route)
            await cluster.settled()
            assert not one._router.table.alike(PLACE)

    run(main(), timeout=60)


def test_what_a_hub_remembers_of_partitions_is_bounded(monkeypatch):
    monkeypatch.setattr("framewire.node.hub._MAX_PLANS", 10)
    names = MANY[:50]

    async def main():
        async with fw.Node() as node:
            seen = []
            takes(node, seen, partitions=names)
            for _ in range(2):
                for name in names:
                    await node.hub.ask(Place(), Placed, partition=name)
                    await node.hub.ask(Place(), Placed.on(name), partition=name)
                    await node.hub.tell(Place(), partition=name)
                    assert len(node.hub._plans) <= 10
            await eventually(lambda: len(seen) == 300)
            assert {found.partition.decode() for found in seen} == set(names)

    run(main())


def test_what_a_node_remembers_of_messages_of_others_is_bounded(monkeypatch):
    monkeypatch.setattr("framewire.node.likeness._MOST", 10)
    monkeypatch.setattr("framewire.node.likeness._MAX_UNKNOWN", 20)
    names = MANY[:50]

    async def main():
        async with Cluster(2) as cluster:
            one, two = cluster.nodes
            answering_many(two, names)
            await cluster.settled()
            kinds = []
            for _ in range(4):
                for name in names:
                    assert (await one.hub.ask(Place(), Placed, partition=name, timeout=5)).by == name
                    kinds.append(frozenset(two._router._familiar._known))
            assert max(map(len, kinds)) == 10
            assert len(set().union(*kinds)) > 10, "those that are not seen any more are forgotten"

    run(main())


def answering_many(node, names):
    @node.handler(Place, partitions=names)
    async def take(_, ctx):
        return Placed(ctx.partition.decode())
