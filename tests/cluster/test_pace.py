"""The pace of libzmq's thread: eager while there is little to do, patient while there is much."""

import os

import pytest
import zmq

from framewire.cluster.pace import Pace, make_context

pytestmark = pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="this system has no batch threads")


@pytest.fixture
def made():
    context, pace = make_context()
    yield context, pace
    context.destroy(0)


def policies(pace):
    return {os.sched_getscheduler(thread) for thread in pace._threads}


def test_the_thread_of_a_context_is_found(made):
    _, pace = made
    assert len(pace._threads) == 1
    assert policies(pace) == {os.SCHED_OTHER}


def test_the_threads_of_others_are_left_alone(made):
    _, pace = made
    context, other = make_context()
    for _ in range(100):
        other.turn(64)
    assert policies(other) == {os.SCHED_BATCH}
    assert policies(pace) == {os.SCHED_OTHER}
    context.destroy(0)


def test_it_becomes_patient_with_many_messages_and_eager_again_with_few(made):
    _, pace = made
    for _ in range(100):
        pace.turn(10)
    assert policies(pace) == {os.SCHED_BATCH}
    for _ in range(100):
        pace.turn(1)
    assert policies(pace) == {os.SCHED_OTHER}


def test_a_busy_moment_changes_nothing(made):
    _, pace = made
    for _ in range(1000):
        for messages in (10, 10, 10, 1, 1, 1, 1):
            pace.turn(messages)
    assert policies(pace) == {os.SCHED_OTHER}


def test_a_thread_that_is_gone_or_not_ours_is_no_matter():
    pace = Pace([2**22 + 1])  # there is no such thread
    for _ in range(100):
        pace.turn(10)
    assert pace.hurried


def test_sockets_work_whatever_the_pace(made):
    context, pace = made
    with context.socket(zmq.REP) as server, context.socket(zmq.REQ) as client:
        client.connect(f"tcp://127.0.0.1:{server.bind_to_random_port('tcp://127.0.0.1')}")
        for messages in (10, 1):
            for _ in range(100):
                pace.turn(messages)
            client.send(b"ask")
            assert server.recv() == b"ask"
            server.send(b"answer")
            assert client.recv() == b"answer"
