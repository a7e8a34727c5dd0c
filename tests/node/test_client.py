"""The blocking client: in scripts, notebooks and thread pools."""

import asyncio
import subprocess
import sys
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest
from tests.node.messages import Answer, Done, Job, Question
from tests.node.running import framewire_threads, run, until

import framewire as fw


class Worker(fw.Actor):
    concurrency = 100

    @fw.handles(Job)
    async def job(self, job):
        return Done(job.number)

    @fw.handles(Question)
    async def never(self, _):
        await asyncio.Event().wait()


@pytest.fixture
def client():
    before = framewire_threads()
    with fw.Client(stop_timeout=0) as made:
        made.host(Worker)
        yield made
    assert framewire_threads() <= before


def test_ask_waits_for_the_answer(client):
    assert client.ask(Job(1), Done) == Done(1)


def test_ask_raises_what_a_hub_would_raise(client):
    with pytest.raises(fw.Expired):
        client.ask(Question(), Answer, timeout=0.05)
    with pytest.raises(fw.NoRoute):
        client.ask(Answer(), Done)
    with pytest.raises(fw.UsageError):
        client.ask(5, Done)


def test_start_gives_a_future(client):
    future = client.start(Job(2), Done)
    assert future.result(10) == Done(2)


def test_cancelling_the_future_cancels_the_promise(client):
    future = client.start(Question(), Answer)
    until(lambda: client.stats().pending)
    assert future.cancel()
    with pytest.raises(CancelledError):
        future.result(10)
    assert client.stats().pending == []


def test_send_tell_broadcast_and_gather_are_the_hubs(client):
    client.send(Job(1))
    client.tell(Job(2))
    client.broadcast(Job(3))
    assert client.gather(Job(4), Done, stop_after=1) == [Done(4)]
    totals = client.stats().totals
    assert totals["handled"] >= 4


def test_many_threads_may_share_a_client(client):
    with ThreadPoolExecutor(16) as pool:
        done = list(pool.map(lambda number: client.ask(Job(number), Done).number, range(400)))
    assert done == list(range(400))


def test_a_client_works_while_another_event_loop_runs_in_this_thread():
    async def notebook():
        with fw.Client() as client:
            client.host(Worker)
            return client.ask(Job(1), Done)

    assert run(notebook()) == Done(1)


def test_closing_twice_is_fine(client):
    client.close()
    client.close()


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.ask(Job(1), Done),
        lambda client: client.start(Job(1), Done),
        lambda client: client.tell(Job(1)),
        lambda client: client.stats(),
        lambda client: client.host(fw.Actor()),
    ],
    ids=["ask", "start", "tell", "stats", "host"],
)
def test_a_closed_client_says_so(client, use):
    client.close()
    with pytest.raises(fw.NodeStopped, match="closed"):
        use(client)


def test_closing_ends_what_other_threads_wait_for(client):
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(client.ask, Question(), Answer) for _ in range(8)]
        until(lambda: len(client.stats().pending) == 8)
        client.close()
        assert [type(each.exception(10)) for each in waiting] == [fw.NodeStopped] * 8


def test_closing_while_threads_go_on_asking_leaves_nobody_waiting(client):
    def ask_until_closed():
        try:
            while True:
                client.ask(Job(1), Done)
        except fw.NodeStopped:
            return True

    with ThreadPoolExecutor(10) as pool:
        asking = [pool.submit(ask_until_closed) for _ in range(8)]
        until(lambda: client.stats().totals["handled"] >= 100)
        closing = [pool.submit(client.close) for _ in range(2)]
        assert [each.result(20) for each in asking] == [True] * 8
        assert [each.result(20) for each in closing] == [None] * 2


def test_a_client_cannot_be_used_where_it_would_wait_for_itself(client):
    class Blocking(fw.Actor):
        @fw.handles(Answer)
        async def ask(self, _):
            client.ask(Job(1), Done)

    client.host(Blocking())
    with pytest.raises(fw.RemoteError, match="cannot be used in its own handlers"):
        client.ask(Answer(), Done)


def test_a_handler_in_a_thread_may_use_the_client(client):
    class Threaded(fw.Actor):
        @fw.handles(Answer)
        def ask(self, _):
            return client.ask(Job(5), Done)

    client.host(Threaded())
    assert client.ask(Answer(), Done) == Done(5)


def test_closing_ends_what_handlers_have_left_running(client):
    left = []

    class Careless(fw.Actor):
        @fw.handles(Answer)
        async def leave(self, _):
            left.append(asyncio.create_task(asyncio.Event().wait()))
            return Done()

    client.host(Careless())
    client.ask(Answer(), Done)
    client.close()
    assert left[0].cancelled()


def test_a_client_that_cannot_start_leaves_nothing_behind():
    before = framewire_threads()
    with pytest.raises(fw.ConfigError, match="no such setting"):
        fw.Client(colour="red")
    assert framewire_threads() <= before


SCRIPT = """
import msgspec, framewire as fw

@fw.message("script.hello")
class Hello(msgspec.Struct):
    name: str

@fw.message("script.welcome")
class Welcome(msgspec.Struct):
    text: str

class Greeter(fw.Actor):
    @fw.handles(Hello)
    def hello(self, hello):
        return Welcome(f"Welcome, {hello.name}")

client = fw.Client()
client.host(Greeter)
print(client.ask(Hello("Ada"), Welcome).text)
"""


@pytest.mark.parametrize("ending", ["client.close()", ""], ids=["closed", "forgotten"])
def test_a_plain_script_ends_in_good_order(ending):
    command = [sys.executable, "-X", "dev", "-c", SCRIPT + ending]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "Welcome, Ada\n")
    assert ending == "" or done.stderr == ""
