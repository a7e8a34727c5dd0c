"""Threads for handlers, whose places others take while they wait."""

import threading

import pytest
from tests.node.running import framewire_threads, until

import framewire as fw
from framewire.node.thread_pool import HandlerThreads, waiting


@pytest.fixture
def pool():
    made = HandlerThreads(2, 4)
    yield made
    made.close(wait=True)
    assert not framewire_threads()


def test_there_are_no_more_threads_than_are_needed(pool):
    for _ in range(5):
        assert pool.submit(lambda: threading.current_thread().name).result(5).startswith("framewire handler")
        until(lambda: pool._idle == pool.count)
    assert pool.count == 1


def test_at_most_so_many_run_at_a_time(pool):
    go = threading.Event()
    jobs = [pool.submit(go.wait, 10) for _ in range(6)]
    assert pool.count == 2
    assert pool.unfinished == 6
    go.set()
    assert all(job.result(5) for job in jobs)
    until(lambda: not pool.unfinished)


def test_another_takes_the_place_of_one_that_waits(pool):
    go = threading.Event()

    def wait():
        with waiting():
            return go.wait(10)

    jobs = [pool.submit(wait) for _ in range(2)]
    assert pool.submit(lambda: "done meanwhile").result(5) == "done meanwhile"
    go.set()
    assert all(job.result(5) for job in jobs)
    pool.submit(lambda: None).result(5)
    until(lambda: pool.count <= 3)


def test_no_thread_is_left_to_wait_in_when_all_do_and_something_waits_for_them(pool):
    go, begun = threading.Event(), threading.Semaphore(0)

    def wait():
        with waiting():
            begun.release()
            return go.wait(10)

    def wait_behind():
        pool.submit(lambda: None)  # so that something waits for a thread
        with waiting():
            go.wait(10)

    jobs = [pool.submit(wait) for _ in range(3)]
    assert all(begun.acquire(timeout=5) for _ in jobs)
    with pytest.raises(fw.Overloaded, match="all 4 threads of the node wait already"):
        pool.submit(wait_behind).result(5)
    go.set()
    assert all(job.result(5) for job in jobs)


def test_who_belongs_to_no_pool_just_waits():
    with waiting():
        pass


def test_what_has_not_begun_is_cancelled_when_the_pool_is_closed():
    pool = HandlerThreads(1, 1)
    go = threading.Event()
    running, queued = pool.submit(go.wait, 10), pool.submit(go.wait, 10)
    until(running.running)
    pool.close(wait=False)
    assert queued.cancelled()
    go.set()
    assert running.result(5)
    until(lambda: not framewire_threads())


def test_an_exception_is_for_the_one_who_waits(pool):
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 / 0).result(5)
