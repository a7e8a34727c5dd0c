"""The life of an actor: its hooks, and what happens when it keeps failing."""

import asyncio

import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import eventually, run

import framewire as fw


class Life(fw.Actor):
    """Writes down what happens to it; a list that is shared with its successors."""

    restart = fw.Restart(after=2, attempts=3, backoff=0)

    def __init__(self, diary):
        self.diary = diary
        self.failures_to_start = 0

    async def started(self):
        if self.failures_to_start:
            self.failures_to_start -= 1
            self.diary.append("did not start")
            raise OSError("no database")
        self.diary.append("started")

    async def stopping(self):
        self.diary.append("stopping")

    @fw.handles(Question)
    async def fail(self, question):
        self.diary.append(f"failed {question.text}")
        raise ValueError(question.text)

    @fw.handles(Job)
    async def job(self, job):
        self.diary.append(f"job {job.number}")
        return Done(job.number)


class Sulking(fw.Actor):
    async def stopping(self):
        raise OSError("I will not")


async def fail(node, times):
    for number in range(times):
        with pytest.raises(fw.RemoteError):
            await node.hub.ask(Question(str(number)), Answer)


def test_started_comes_before_the_first_message_and_stopping_after_the_last():
    async def main():
        diary = []
        async with fw.Node() as node:
            await node.host(Life(diary))
            await node.hub.ask(Job(1), Done)
            for number in (2, 3):
                await node.hub.tell(Job(number))
        assert diary == ["started", "job 1", "job 2", "job 3", "stopping"]

    run(main())


def test_the_node_is_there_in_started():
    class Asks(fw.Actor):
        async def started(self):
            self.answer = await self.node.hub.ask(Job(1), Done)

    async def main():
        async with fw.Node() as node:
            await node.host(Life([]))
            asks = Asks()
            await node.host(asks)
            assert asks.answer == Done(1)

    run(main())


def test_a_started_hook_that_fails_is_tried_again():
    async def main():
        life = Life(diary := [])
        life.failures_to_start = 2
        async with fw.Node() as node:
            await node.host(life)
            await node.hub.ask(Job(1), Done)
        assert diary == ["did not start", "did not start", "started", "job 1", "stopping"]

    run(main())


def test_an_actor_that_does_not_start_is_not_hosted():
    async def main():
        life = Life(diary := [])
        life.failures_to_start = 99
        async with fw.Node() as node:
            with pytest.raises(OSError, match="no database"):
                await node.host(life)
            with pytest.raises(fw.NoRoute):
                await node.hub.ask(Job(1), Done)
        assert diary == ["did not start"] * 3

    run(main())


def test_waits_between_attempts_double_up_to_the_longest():
    restart = fw.Restart(backoff=0.1, longest=0.5)
    assert [restart.delay(attempt) for attempt in (1, 2, 3, 4, 5000)] == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_failures_in_a_row_restart_the_actor():
    async def main():
        diary = []
        async with fw.Node() as node:
            await node.host(Life(diary))
            await fail(node, 2)
            assert await node.hub.ask(Job(1), Done) == Done(1)
            assert [actor.restarts for actor in node.stats().actors if actor.name == "Life"] == [1]
        assert diary == ["started", "failed 0", "failed 1", "stopping", "started", "job 1", "stopping"]

    run(main())


def test_a_success_in_between_starts_the_count_again():
    async def main():
        diary = []
        async with fw.Node() as node:
            await node.host(Life(diary))
            for _ in range(3):
                await fail(node, 1)
                await node.hub.ask(Job(1), Done)
        assert diary.count("started") == 1

    run(main())


def test_handlers_may_fail_as_they_like_where_no_limit_is_set():
    class Careless(Life):
        restart = fw.Restart()

    async def main():
        diary = []
        async with fw.Node() as node:
            await node.host(Careless(diary))
            await fail(node, 20)
        assert diary.count("started") == 1

    run(main())


def test_given_a_class_a_restart_makes_a_new_actor():
    async def main():
        made = []

        def make():
            made.append(Life([]))
            return made[-1]

        async with fw.Node() as node:
            await node.host(make)
            await fail(node, 2)
            await node.hub.ask(Job(1), Done)
        assert [life.diary for life in made] == [
            ["started", "failed 0", "failed 1", "stopping"],
            ["started", "job 1", "stopping"],
        ]

    run(main())


def test_messages_wait_while_an_actor_restarts():
    async def main():
        open_again = asyncio.Event()

        class Slow(Life):
            async def started(self):
                await super().started()
                if self.diary.count("started") > 1:
                    await open_again.wait()

        diary = []
        async with fw.Node() as node:
            await node.host(Slow(diary))
            await fail(node, 2)
            promises = [node.hub.start(Job(number), Done) for number in range(3)]
            await eventually(lambda: diary.count("started") == 2)
            assert not any(promise.done for promise in promises)
            open_again.set()
            assert [(await promise).number for promise in promises] == [0, 1, 2]

    run(main())


def test_an_actor_that_does_not_start_again_is_given_up_and_its_messages_are_told():
    async def main():
        life = Life(diary := [])
        async with fw.Node() as node:
            await node.host(life)
            life.failures_to_start = 99
            promises = [node.hub.start(Question(str(n)), Answer) for n in range(2)]
            promises += [node.hub.start(Job(n), Done) for n in range(3)]
            ends = await asyncio.gather(*promises, return_exceptions=True)
            assert [type(end) for end in ends] == [fw.RemoteError] * 2 + [fw.NoRoute] * 3
            await eventually(lambda: all(actor.name != "Life" for actor in node.stats().actors))
            with pytest.raises(fw.NoRoute, match="nobody handles it"):
                await node.hub.ask(Job(1), Done)
            assert node.dead_letters.counts[fw.Reason.HANDLER_GONE] == 3
        assert diary.count("stopping") == 1

    run(main())


def test_stopping_waits_for_messages_that_others_still_handle():
    class Two(Life):
        concurrency = 2

        def __init__(self, diary):
            super().__init__(diary)
            self.go = asyncio.Event()

        @fw.handles(Answer)
        async def slow(self, _):
            await self.go.wait()
            self.diary.append("slow is done")
            return Done()

    async def main():
        two = Two(diary := [])
        async with fw.Node() as node:
            await node.host(two)
            slow = node.hub.start(Answer(), Done)
            await fail(node, 2)
            for _ in range(20):
                await asyncio.sleep(0)
            assert "stopping" not in diary
            two.go.set()
            await slow
            await node.hub.ask(Job(1), Done)
        assert diary[:5] == ["started", "failed 0", "failed 1", "slow is done", "stopping"]

    run(main())


def test_inline_handlers_that_keep_failing_restart_the_actor_too():
    class Inline(Life):
        @fw.handles(Question, inline=True)
        def fail(self, question):
            raise ValueError(question.text)

    async def main():
        diary = []
        async with fw.Node() as node:
            await node.host(Inline(diary))
            await fail(node, 2)
            await node.hub.ask(Job(1), Done)
        assert diary == ["started", "stopping", "started", "job 1", "stopping"]

    run(main())


def test_inline_messages_that_waited_for_a_restart_are_not_overtaken():
    async def main():
        class Mixed(fw.Actor):
            restart = fw.Restart(after=1, backoff=0)

            def __init__(self):
                self.order = []
                self.again = asyncio.Event()
                self.again.set()
                self.go = asyncio.Event()

            async def started(self):
                await self.again.wait()

            @fw.handles(Question)
            async def fail(self, _):
                self.again.clear()
                raise ValueError

            @fw.handles(Answer)
            async def block(self, _):
                await self.go.wait()
                return Done(0)

            @fw.handles(Job, inline=True)
            def job(self, job):
                self.order.append(job.number)
                return Done(job.number)

        async with fw.Node() as node:
            mixed = Mixed()
            await node.host(mixed)
            await fail(node, 1)
            promises = [node.hub.start(Answer(), Done), node.hub.start(Job(1), Done)]
            assert mixed.order == []
            mixed.again.set()
            await eventually(lambda: node.stats().actors[-1].busy)
            promises.append(node.hub.start(Job(2), Done))
            mixed.go.set()
            assert [(await promise).number for promise in promises] == [0, 1, 2]
            assert mixed.order == [1, 2]
            await eventually(lambda: node.hub.start(Job(3), Done).done)

    run(main())


def test_bodies_that_do_not_decode_are_no_failures_of_the_actor():
    @fw.message("test.job")
    class Theirs(bytes):
        pass

    async def main():
        diary = []
        async with fw.Node() as node:
            await node.host(Life(diary))
            for _ in range(5):
                with pytest.raises(fw.BadBody):
                    await node.hub.ask(Theirs(b"\xc1"), Done)
            await node.hub.ask(Job(1), Done)
        assert diary == ["started", "job 1", "stopping"]

    run(main())


def test_a_stopping_hook_that_fails_is_logged_and_no_more(caplog):
    async def main():
        async with fw.Node() as node:
            await node.host(Sulking())

    run(main())
    assert "the stopping hook of Sulking failed" in caplog.text
    assert "I will not" in caplog.text


def test_a_stopping_hook_may_still_send():
    async def main():
        heard = []

        class Leaves(fw.Actor):
            async def stopping(self):
                await self.node.hub.tell(Job(9))

        node = fw.Node()

        @node.on_dead_letter
        def hear(letter):
            heard.append(letter.message.message_id.identity)

        async with node:
            await node.host(Leaves())
        assert heard == [b"test.job"]

    run(main())


def test_unhosting_finishes_what_is_there_and_runs_the_hook():
    async def main():
        diary = []
        async with fw.Node() as node:
            address = await node.host(Life(diary))
            promises = [node.hub.start(Job(number), Done) for number in range(3)]
            await node.unhost(address)
            assert [(await promise).number for promise in promises] == [0, 1, 2]
            assert diary[-1] == "stopping"
            with pytest.raises(fw.NoRoute):
                await node.hub.ask(Job(1), Done)
            with pytest.raises(fw.UsageError, match="no actor with the address"):
                await node.unhost(address)

    run(main())


def test_unhosting_a_busy_actor_twice_at_once_stops_it_once():
    async def main():
        go = asyncio.Event()

        class Busy(Life):
            @fw.handles(Answer)
            async def wait(self, _):
                await go.wait()
                return Done()

        diary = []
        async with fw.Node() as node:
            address = await node.host(Busy(diary))
            promise = node.hub.start(Answer(), Done)
            await eventually(lambda: node.stats().actors[-1].busy == 1)
            leaving = [asyncio.create_task(node.unhost(address)) for _ in range(2)]
            await asyncio.sleep(0)
            go.set()
            await asyncio.gather(*leaving)
            assert await promise == Done()
        assert diary == ["started", "stopping"]

    run(main())


def test_unhosting_an_actor_that_does_not_finish_tells_its_callers():
    class Stuck(fw.Actor):
        @fw.handles(Job)
        async def wait(self, _):
            await asyncio.Event().wait()

    async def main():
        async with fw.Node(stop_timeout=0.05) as node:
            address = await node.host(Stuck())
            promises = [node.hub.start(Job(number), Done) for number in range(3)]
            await node.unhost(address)
            ends = await asyncio.gather(*promises, return_exceptions=True)
            assert [type(end) for end in ends] == [fw.NoRoute] * 3
            assert node.dead_letters.counts == {fw.Reason.HANDLER_GONE: 3}

    run(main())


def test_an_actor_may_unhost_itself():
    class Once(fw.Actor):
        async def stopping(self):
            gone.set()

        @fw.handles(Job)
        async def job(self, job, ctx):
            await self.node.unhost(ctx.actor)
            return Done(job.number)

    gone = asyncio.Event()

    async def main():
        async with fw.Node() as node:
            await node.host(Once())
            assert await node.hub.ask(Job(1), Done) == Done(1)
            await gone.wait()
            with pytest.raises(fw.NoRoute):
                await node.hub.ask(Job(2), Done)

    run(main())
