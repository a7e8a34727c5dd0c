"""The server: NiceGUI's application behind our guard, on a socket that is ours before it is announced."""

from __future__ import annotations

import contextlib
import signal
import socket
import webbrowser
from http import HTTPStatus

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from nicegui import app as nicegui_app
from nicegui import ui

from framewire.dashboard.board import Board
from framewire.dashboard.guard import Guard, is_local
from framewire.dashboard.listings import LISTINGS, Listing
from framewire.dashboard.pages.cluster import cluster_page
from framewire.dashboard.pages.flow import flow_page
from framewire.dashboard.pages.flows import flows_page
from framewire.dashboard.pages.tables import export, table_page
from framewire.dashboard.pages.topology import topology_page
from framewire.dashboard.pages.wire import wire_page
from framewire.dashboard.shell import OUR_FAULT, add_looks, heading, page, state
from framewire.dashboard.showing import shown

__all__ = ["listen", "serve"]

_FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" '
    'fill="#1f5fbf"/><path d="M4 4h8M4 8h5M4 12h8" stroke="#fff" stroke-width="1.8"/></svg>'
)


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections at an address; ``OSError`` where that cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def serve(board: Board, listener: socket.socket, *, host: str, token: str | None, show: str | None) -> None:
    """Answer until it is interrupted; ``show`` is an address to open in a browser."""
    application = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    _add_pages(board)
    nicegui_app.on_startup(board.start)
    nicegui_app.on_shutdown(board.stop)
    if show is not None:
        nicegui_app.on_startup(lambda: _open(show))
    ui.run_with(
        application,
        title="framewire",
        favicon=_FAVICON,
        dark=None,
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=10.0,
        message_history_length=100,
        show_welcome_message=False,
    )
    guarded = Guard(application, token=token, local=is_local(host))
    config = uvicorn.Config(
        guarded,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="websockets-sansio",
        timeout_graceful_shutdown=2,
    )
    # The server shuts down on these, and then raises them again for whoever had them before.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    uvicorn.Server(config).run(sockets=[listener])


def _add_pages(board: Board) -> None:
    add_looks()

    @nicegui_app.get("/")
    def home() -> RedirectResponse:
        return RedirectResponse("/cluster" if board.watch is not None else "/flows", 303)

    @ui.page("/cluster")
    def cluster() -> None:
        cluster_page(board)

    @ui.page("/topology")
    async def topology(request: Request) -> None:
        await topology_page(board, request.query_params)

    @ui.page("/flows")
    async def flows(request: Request) -> None:
        await flows_page(board, request.query_params)

    @ui.page("/flow/{flow:path}")
    async def flow(flow: str, request: Request) -> None:
        await flow_page(board, flow, request.query_params)

    for listing in LISTINGS.values():
        _add_table(board, listing)

    nicegui_app.on_page_exception(lambda problem: _failed(board, problem))

    @ui.page("/wire")
    async def wire(request: Request) -> None:
        await wire_page(board, request.query_params)

    # The last, so that it takes what no other page has taken.
    @ui.page("/{rest:path}")
    def nowhere(rest: str) -> None:
        ui.context.client.status_code = HTTPStatus.NOT_FOUND
        with page(board, "No such page", ""):
            heading("There is no such page", f"/{shown(rest, 100)}")
            state("Nothing is here", "The address may have been cut or mistyped. The list of pages leads on.")


def _failed(board: Board, problem: Exception) -> None:
    """What is shown in place of a page that could not be made."""
    with page(board, "Failed", ""):
        heading("This page could not be made")
        state(type(problem).__name__, f"{shown(problem, 600)}\n{OUR_FAULT}", tone="bad")


def _add_table(board: Board, listing: Listing) -> None:
    @ui.page(f"/{listing.name}")
    async def table(request: Request) -> None:
        await table_page(board, listing, request.query_params)

    @nicegui_app.get(f"/export/{listing.name}.csv")
    async def file(request: Request) -> Response:
        return await export(board, listing, request.query_params)


def _open(address: str) -> None:
    with contextlib.suppress(webbrowser.Error):
        webbrowser.open(address)
