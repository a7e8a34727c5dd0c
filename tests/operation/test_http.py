"""The small HTTP server: a few pages, and no way to do harm."""

import asyncio

import pytest
from tests.node.running import run

from framewire.operation.http import TEXT, CannotListenError, Page, Server, place


async def hello():
    return Page("hello\n", TEXT)


async def fails():
    raise ValueError("on purpose")


async def asked(server, request, *, end=True):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    if end:
        writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def serving(main):
    async def served():
        server = Server({"/hello": hello, "/fails": fails})
        await server.start("endpoints.health", "127.0.0.1:0")
        try:
            await main(server)
        finally:
            await server.close()

    run(served())


def test_a_page_is_answered_and_the_connection_closed():
    async def main(server):
        head, _, body = (await asked(server, b"GET /hello?x=1 HTTP/1.1\r\nHost: a\r\n\r\n")).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Content-Length: 6\r\n" in head
        assert b"Connection: close" in head
        assert body == b"hello\n"

    serving(main)


def test_head_is_answered_without_a_body():
    async def main(server):
        answer = await asked(server, b"HEAD /hello HTTP/1.0\r\n\r\n")
        assert b"Content-Length: 6\r\n" in answer
        assert answer.endswith(b"\r\n\r\n")

    serving(main)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /nothing HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /hello HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /fails HTTP/1.1\r\n\r\n", b"500"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /hello SPDY/3\r\n\r\n", b"400"),
        (b"GET /hello HTTP/1.1\r\n", b"400"),
        (b"", b"400"),
        (b"\x00\xff" * 3 + b"\r\n\r\n", b"400"),
        (b"GET /hello HTTP/1.1\r\nX: " + b"x" * 10_000 + b"\r\n\r\n", b"431"),
    ],
)
def test_what_is_no_request_for_a_page_is_refused(request_, status):
    async def main(server):
        assert (await asked(server, request_)).split()[1] == status
        assert b"200 OK" in await asked(server, b"GET /hello HTTP/1.1\r\n\r\n")

    serving(main)


def test_a_request_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr("framewire.operation.http._PATIENCE", 0.1)

    async def main(server):
        assert await asked(server, b"GET /hello HT", end=False) == b""

    serving(main)


def test_there_is_a_limit_to_connections():
    async def main(server):
        idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(32)]
        assert (await asked(server, b"", end=False)).split()[1] == b"503"
        for reader, writer in idle:
            writer.write(b"GET /hello HTTP/1.1\r\n\r\n")
            assert b"200 OK" in await reader.read()
            writer.close()
            await writer.wait_closed()


def test_who_is_on_the_line_does_not_keep_it_from_closing():
    async def main(server):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await asked(server, b"GET /hello HTTP/1.1\r\n\r\n")  # so the other one has been taken
        await server.close()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()

    serving(main)


def test_an_address_that_is_taken_is_told():
    async def main(server):
        with pytest.raises(CannotListenError, match=r"endpoints\.metrics: cannot listen at 127\.0\.0\.1:"):
            await Server({}).start("endpoints.metrics", f"127.0.0.1:{server.port}")

    serving(main)


@pytest.mark.parametrize(
    ("endpoint", "found"), [("*:80", (None, 80)), ("[::1]:80", ("::1", 80)), ("host:0", ("host", 0))]
)
def test_an_endpoint_is_a_host_and_a_port(endpoint, found):
    assert place(endpoint) == found
