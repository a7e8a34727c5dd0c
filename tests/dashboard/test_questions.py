"""Questions to the lake: one for everybody who asks the same, none that blocks the pages."""

import asyncio
import threading

import pytest
from tests.history.known import make_known_lake

from framewire.dashboard.questions import Questions
from framewire.errors import UsageError


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return str(make_known_lake(tmp_path_factory.mktemp("lake") / "lake"))


def asked(lake, main):
    """A coroutine with questions and their clock."""
    clock = Clock()

    async def run():
        questions = Questions(lake, clock=clock)
        try:
            return await asyncio.wait_for(main(questions, clock), 60)
        finally:
            questions.close()

    return asyncio.run(run())


def test_several_people_at_once_cost_one_question(lake):
    times = []

    def question(history):
        times.append(1)
        return history.summary().flows.all

    async def main(questions, _):
        return await asyncio.gather(*(questions.ask("summary", question) for _ in range(20)))

    assert asked(lake, main) == [12] * 20
    assert len(times) == 1


def test_an_answer_is_asked_for_again_when_it_is_old(lake):
    times = []

    async def main(questions, clock):
        for clock.now in (0.0, 10.0, 14.0, 16.0, 20.0):
            await questions.ask("key", lambda _: times.append(clock.now))

    asked(lake, main)
    assert times == [0.0, 16.0]


def test_what_went_wrong_is_not_kept(tmp_path):
    where = tmp_path / "lake"

    async def main(questions, _):
        with pytest.raises(UsageError, match="does not exist"):
            await questions.ask("losses", lambda history: history.losses())
        make_known_lake(where)
        return await questions.ask("losses", lambda history: len(history.losses().rows))

    assert asked(str(where), main) == 1


def test_whoever_leaves_takes_the_answer_from_nobody(lake):
    go = threading.Event()

    async def main(questions, _):
        leaving, staying = (asyncio.create_task(questions.ask("slow", lambda _: go.wait(30))) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        go.set()
        return await staying

    assert asked(lake, main) is True


def test_only_so_many_answers_are_kept(lake):
    async def main(questions, _):
        for number in range(200):
            await questions.ask(number, lambda _: "x" * 1000)
        return len(questions._asked)

    assert asked(lake, main) == 48
