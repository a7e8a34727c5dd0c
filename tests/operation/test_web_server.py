"""A node in the lifespan of a web application: the server keeps its signals, and the node is drained."""

import contextlib
import signal
import socket

import pytest
from tests.node.running import until
from tests.operation.programs import Program, client, page, write
from tests.operation.shop import Order, Ordered

import framewire as fw

APPLICATION = """
import contextlib, os
import fastapi
import framewire as fw
from shop import Order, Ordered, Shop

@contextlib.asynccontextmanager
async def lifespan(app):
    async with fw.Node(rendezvous=[os.environ["RENDEZVOUS"]]) as node:
        await node.host(Shop)
        app.state.node = node
        yield
    print("node stopped", flush=True)

app = fastapi.FastAPI(lifespan=lifespan)

@app.get("/order/{article}")
async def order(article: str):
    return (await app.state.node.hub.ask(Order(article), Ordered)).article
"""


@contextlib.contextmanager
def serving(shop, server, *options, module="uvicorn"):
    """A web server with the application in it, and where it serves."""
    write(shop, "web.py", APPLICATION)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    arguments = [option.format(port=port) for option in options]
    running = Program(shop, *arguments, module=module, RENDEZVOUS=server.uri)
    with contextlib.closing(running):
        yield running, f"127.0.0.1:{port}"


def answers(address):
    """Whether the application answers a request by an ask."""
    try:
        return page(address, "/order/tea") == (200, '"tea"')
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_uvicorn_and_drains_the_node_of_its_lifespan(shop, server, number):
    options = ["web:app", "--port={port}", "--no-access-log"]
    with serving(shop, server, *options) as (running, address), client(server) as hub:
        running.says("Application startup complete")
        until(lambda: answers(address))
        slow = hub.start(Order("cup", 1.0), Ordered)
        assert hub.ask(Order("pot"), Ordered).article == "pot"  # so the slow one has arrived
        running.send(number)
        assert slow.result(20) == Ordered("cup", running.process.pid)
        # uvicorn ends by the signal that it has got, once everything is shut down.
        assert running.ended() in {0, -number}
        assert "Application shutdown complete" in running.said
        assert running.process.stdout.read() == b"node stopped\n"
        with pytest.raises(fw.MessageError):
            hub.ask(Order("tea"), Ordered, timeout=2)
