"""Servers that load a program and fork it: gunicorn --preload and Celery's prefork pool."""

import contextlib
import os
import signal
import socket
import subprocess
import sys

from tests.node.running import until
from tests.operation.programs import Program, page, program, write

SERVER = """
import os
import framewire as fw
from shop import Order, Ordered

OPTIONS = {"rendezvous": [os.environ["RENDEZVOUS"]], "route_grace": 20, "timeout": 20}
preloaded = fw.Client(**OPTIONS)
client = None

def app(environ, start_response):
    hub = preloaded if environ["PATH_INFO"] == "/preloaded" else client
    try:
        status, text = "200 OK", f"{hub.ask(Order('tea'), Ordered).article} {os.getpid()}"
    except fw.UsageError as error:
        status, text = "500 Internal Server Error", str(error)
    start_response(status, [("Content-Type", "text/plain")])
    return [text.encode()]
"""
HOOKS = """
import framewire as fw

def post_fork(server, worker):
    import web
    web.client = fw.Client(**web.OPTIONS)

def worker_exit(server, worker):
    import web
    web.client.close()
    print("client closed", flush=True)
"""
TASKS = """
import os
import celery
from celery.signals import worker_process_init, worker_process_shutdown
import framewire as fw
from shop import Order, Ordered

OPTIONS = {"rendezvous": [os.environ["RENDEZVOUS"]], "route_grace": 20, "timeout": 20}
client = preloaded = None
app = celery.Celery("tasks", broker="filesystem://", backend="file://" + os.path.abspath("results"))
app.conf.broker_transport_options = {
    "data_folder_in": "queue", "data_folder_out": "queue", "control_folder": "control"
}
app.conf.broker_connection_retry_on_startup = True

if "worker" in os.sys.argv:
    preloaded = fw.Client(**OPTIONS)

@worker_process_init.connect
def begin(**_):
    global client
    client = fw.Client(**OPTIONS)

@worker_process_shutdown.connect
def end(**_):
    client.close()
    os.write(1, b"client closed\\n")

@app.task
def order(article):
    return client.ask(Order(article), Ordered).article

@app.task
def order_preloaded(article):
    try:
        preloaded.ask(Order(article), Ordered)
    except fw.UsageError as error:
        return str(error)
"""


@contextlib.contextmanager
def hosted(shop, server):
    """The shop's own node, in a process of its own."""
    with program(shop, "node", "--app=shop:app", f"--rendezvous={server.uri}") as running:
        running.says("is ready")
        yield running


def test_workers_of_gunicorn_make_their_clients_after_the_fork(shop, server):
    write(shop, "web.py", SERVER)
    write(shop, "hooks.py", HOOKS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    options = ["--preload", "--workers=2", "--config=hooks.py", f"--bind={address}", "web:app"]
    gunicorn = Program(shop, *options, module="gunicorn", RENDEZVOUS=server.uri)
    with hosted(shop, server), contextlib.closing(gunicorn):
        gunicorn.says("Booting worker with pid", 2)
        seen = set()

        def both_answer():
            with contextlib.suppress(OSError):
                status, text = page(address, "/")
                assert (status, text.split()[0]) == (200, "tea")
                seen.add(text)
            return len(seen) == 2

        until(both_answer, 60)
        status, text = page(address, "/preloaded")
        assert status == 500
        assert "this client was made in the process that process " in text
        assert gunicorn.stop() == 0
        assert gunicorn.process.stdout.read().count(b"client closed\n") == 2


def test_processes_of_celery_make_their_clients_after_the_fork(shop, server):
    write(shop, "tasks.py", TASKS)
    for folder in ("queue", "control", "results"):
        (shop / folder).mkdir()
    options = ["--app=tasks", "worker", "--pool=prefork", "--concurrency=2", "--loglevel=info"]
    celery = Program(shop, *options, module="celery", warnings="default", RENDEZVOUS=server.uri)
    with hosted(shop, server), contextlib.closing(celery):
        celery.says("ready.")
        code = "import tasks; print(tasks.order.delay('tea').get(60), tasks.order_preloaded.delay('tea').get(60))"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=shop,
            env={**os.environ, "RENDEZVOUS": server.uri},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.stdout.startswith("tea this client was made in the process that process "), done.stderr
        assert celery.stop(signal.SIGTERM) == 0
        assert b"client closed\n" in celery.process.stdout.read()
