"""The frame around every page: where one can go, what is looked at, light or dark; and what stands in for data.

A page that has nothing to show says why, and which command changes that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nicegui import app, ui

from framewire.dashboard.board import Board
from framewire.dashboard.elements import Copy, block, link, text
from framewire.dashboard.showing import shown

__all__ = ["OUR_FAULT", "add_looks", "heading", "page", "section", "state"]

OUR_FAULT = (
    "This is a fault of the dashboard's own; what it has written to its terminal tells where. Please report it."
)
_LIVE, _PAST, _TOOLS = "Live", "History", "Tools"
NAVIGATION = (
    (_LIVE, (("/cluster", "Cluster"), ("/topology", "Topology"))),
    (
        _PAST,
        (
            ("/flows", "Flows"),
            ("/losses", "Losses"),
            ("/dead-letters", "Dead letters"),
            ("/quarantine", "Quarantine"),
            ("/audit", "Audit"),
            ("/adoption", "Adoption"),
        ),
    ),
    (_TOOLS, (("/wire", "Wire"),)),
)
_LOOKS = Path(__file__).parent / "browser"
_THEME = """() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const now = root.dataset.theme === "auto" ? system : root.dataset.theme;
  const other = now === "dark" ? "light" : "dark";
  root.dataset.theme = other === system ? "auto" : other;
  localStorage.setItem("framewire-theme", root.dataset.theme);
}"""
"""The other of light and dark; the system decides again where that is what it would choose."""


def add_looks() -> None:
    """Serve the style sheet, and have every page use it before it is drawn."""
    app.add_static_files("/_framewire", _LOOKS, max_cache_age=0)
    ui.add_head_html(
        '<link rel="stylesheet" href="/_framewire/style.css">'
        '<script>document.documentElement.dataset.theme = localStorage.getItem("framewire-theme") || "auto";'
        'document.documentElement.lang = "en";</script>',
        shared=True,
    )


@contextmanager
def page(board: Board, title: str, here: str) -> Iterator[None]:
    """Everything but the contents of a page; ``here`` is its address."""
    ui.page_title(f"{title} · framewire")
    link("Skip to the contents", "#contents", "fw-skip")
    with block("div", "fw-frame"):
        with block("header", "fw-side"):
            link("framewire", "/", "fw-brand")
            _navigation(here)
            with block("div", "fw-about"):
                if board.lake is not None:
                    text("span", f"lake {shown(board.lake, 60)}", title=shown(board.lake))
                for place in (*board.rendezvous, *board.peers):
                    text("span", f"cluster {shown(place, 60)}")
                switch = text("button", "Light or dark", "fw-button", type="button")
                switch.on("click", js_handler=_THEME)
        # NiceGUI has made all of this the page's main part already.
        with block("div", "fw-main", id="contents", tabindex="-1"):
            yield


def _navigation(here: str) -> None:
    with block("nav", "fw-nav", aria_label="Pages"):
        for group, pages in NAVIGATION:
            text("span", group, "fw-group")
            for where, name in pages:
                current = {"aria_current": "page"} if where == here else {}
                link(name, where, **current)


def heading(title: str, about: str = "", *, mono: bool = False) -> None:
    """What a page is, and a line about it."""
    with block("div", "fw-heading"):
        text("h1", title, "mono" if mono else "")
        if about:
            text("p", about)


@contextmanager
def section(title: str, note: str = "", *, classes: str = "") -> Iterator[None]:
    """A part of a page, with its title."""
    with block("section", f"fw-section {classes}".strip(), aria_label=title):
        with block("div", "fw-section-head"):
            text("h2", title)
            if note:
                text("span", note, "soft")
        yield


def state(title: str, why: str, command: str = "", *, tone: str = "") -> None:
    """What is shown where there is nothing to show: why that is, and what to do next."""
    with block("div", f"fw-state {tone}".strip(), role="alert" if tone == "bad" else "status"):
        text("strong", title)
        text("p", why)
        if command:
            with block("div", "fw-command"):
                text("code", command)
                Copy("Copy", command)
