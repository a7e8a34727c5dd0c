"""What a caller learns about a handler that failed."""

import asyncio
import logging

import pytest
from tests.node.messages import Answer, Job, Question
from tests.node.running import eventually, run

import framewire as fw


class OutOfStockError(Exception):
    pass


class UnspeakableError(Exception):
    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


class Shop(fw.Actor):
    def __init__(self, problem):
        self.problem = problem

    @fw.handles(Question)
    async def sell(self, _):
        raise self.problem


def error_of(problem, **options):
    async def main():
        async with fw.Node(identity="shop-node", **options) as node:
            await node.host(Shop(problem))
            with pytest.raises(fw.RemoteError) as raised:
                await node.hub.ask(Question(), Answer)
            # One who failed goes on to handle the next.
            with pytest.raises(fw.RemoteError):
                await node.hub.ask(Question(), Answer)
            return raised.value

    return run(main())


def test_a_remote_error_has_type_text_traceback_actor_and_node():
    error = error_of(OutOfStockError("no more tea"))
    assert error.type_name.endswith("test_errors_in_handlers.OutOfStockError")
    assert error.detail == "no more tea"
    assert "raise self.problem" in error.traceback
    assert "OutOfStockError: no more tea" in error.traceback
    assert error.actor == "Shop.sell"
    assert error.node == b"shop-node"


def test_the_text_of_a_remote_error_says_it_all():
    text = str(error_of(ValueError("no more tea")))
    for fact in ("ValueError", "Shop.sell", "no more tea", "test.question v1", "shop-no"):
        assert fact in text


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (ValueError(""), ""),
        (ValueError("\ud800 half a character"), "\\ud800 half a character"),
        (UnspeakableError(), "<its text cannot be had: RuntimeError>"),
        (ValueError("x" * 1_000_000), "x" * 1_000_000),
        (ExceptionGroup("several", [ValueError("one")]), "several (1 sub-exception)"),
        (BaseExceptionGroup("worse", [KeyboardInterrupt()]), "worse (1 sub-exception)"),
        (asyncio.CancelledError("given up"), "given up"),
    ],
    ids=["empty", "surrogate", "unspeakable", "long", "group", "base group", "cancelled"],
)
def test_an_exception_with_a_strange_text_still_gets_through(problem, text):
    assert error_of(problem).detail == text


@pytest.mark.parametrize("problem", [fw.NoRoute("elsewhere"), fw.Expired("elsewhere"), fw.BadBody("elsewhere")])
def test_a_handlers_own_failure_to_get_through_is_not_taken_for_the_callers(problem):
    error = error_of(problem)
    assert error.type_name == f"framewire.errors.{type(problem).__name__}"
    assert error.detail == "elsewhere"


def test_a_failure_in_a_stream_reaches_the_caller_after_what_was_yielded():
    async def main():
        async with fw.Node() as node:
            seen = []

            @node.handler(Question)
            async def stream(_):
                yield Job(1)
                raise ValueError("dry")

            @node.handler(Job)
            async def collect(job):
                seen.append(job.number)

            with pytest.raises(fw.RemoteError, match="dry"):
                await node.hub.ask(Question(), Answer)
            await eventually(lambda: seen == [1])

    run(main())


def test_a_failure_that_nobody_waits_for_is_logged_with_its_traceback(caplog):
    async def main():
        async with fw.Node() as node:
            await node.host(Shop(ValueError("no more tea")))
            await node.hub.tell(Question())
            await eventually(lambda: node.stats().totals["failed"] == 1)

    run(main())
    [record] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert record.getMessage() == "Shop.sell failed on test.question v1"
    assert "no more tea" in caplog.text


def test_a_failed_handler_is_counted():
    async def main():
        async with fw.Node() as node:
            await node.host(Shop(ValueError()))
            with pytest.raises(fw.RemoteError):
                await node.hub.ask(Question(), Answer)
            [handler] = node.stats().actors[-1].handlers
            assert (handler.handled, handler.failed) == (1, 1)

    run(main())
