"""A node in the lifespan of a web application: the server keeps its signals, and the node is drained."""

import asyncio
import contextlib
import re
import signal
import socket
from pathlib import Path

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


def middleware():
    """The middleware as docs/embedding.md shows it."""
    text = (Path(__file__).parents[2] / "docs" / "embedding.md").read_text(encoding="utf-8")
    return next(block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "CancelWhenGone" in block)


def test_what_runs_for_a_web_client_that_is_gone_is_cancelled_on_the_node_that_handles_it(
    shop, server, monkeypatch
):
    began, ended = [], []

    class Slow(fw.Actor):
        @fw.handles(Order)
        async def order(self, order):
            if order.article == "tea":
                return Ordered("tea", 0)
            began.append(order.article)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append(order.article)
                raise

    application = APPLICATION.replace("        await node.host(Shop)\n", "") + middleware()
    monkeypatch.setattr(f"{__name__}.APPLICATION", application)
    with serving(shop, server, "web:app", "--port={port}") as (running, address), client(server) as hub:
        hub.host(Slow())
        running.says("Application startup complete")
        until(lambda: answers(address))
        host, port = address.split(":")
        with socket.create_connection((host, int(port))) as web_client:
            web_client.sendall(b"GET /order/cup HTTP/1.1\r\nHost: shop\r\n\r\n")
            until(lambda: began == ["cup"])
            assert not ended
        until(lambda: ended == ["cup"])
        assert answers(address)
        running.stop()
        assert "Exception" not in running.said
