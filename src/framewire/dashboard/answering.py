"""Parts of a page that wait for the lake: shown at once if the answer is quick, after a sign of waiting if not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from nicegui import ui

from framewire.dashboard.board import Board
from framewire.dashboard.elements import block, text
from framewire.dashboard.shell import OUR_FAULT, state
from framewire.dashboard.showing import shown
from framewire.errors import UsageError
from framewire.history import History

__all__ = ["answered", "no_lake", "wrong_address"]

T = TypeVar("T")
_log = logging.getLogger("framewire.dashboard")
_AT_ONCE = 0.25
"""Seconds for which a page is held back: most answers come sooner, and then nothing jumps."""

_PATIENCE = 30.0
"""Seconds for a browser that has been sent a page to connect; programs that fetch pages never do."""


def no_lake() -> None:
    """What a page of history shows where the dashboard was started without a lake."""
    state(
        "No history",
        "This dashboard was started without a lake. Record the messages of your nodes, have the pipeline make a "
        "lake of them, and start the dashboard with it.",
        "framewire dashboard --lake lake/",
    )


def wrong_address(problems: Sequence[str]) -> None:
    """What a page shows whose address says what it does not understand."""
    state("This address is not understood", "\n".join(problems), tone="bad")


async def answered(
    board: Board, key: Hashable, question: Callable[[History], T], show: Callable[[T], None], *, waiting: str
) -> None:
    """Show the answer of the lake here, or what is wrong with it."""
    if board.questions is None:
        no_lake()
        return
    client = ui.context.client
    asked = asyncio.ensure_future(board.questions.ask(key, question))
    # Nobody may be there any more to take what is wrong with an answer.
    asked.add_done_callback(lambda done: done.cancelled() or done.exception())
    place = block("div", "fw-main-part")
    await asyncio.wait({asked}, timeout=_AT_ONCE)
    if not asked.done():
        with place, block("div", "fw-loading", role="status"):
            text("p", f"{waiting}…", "soft")
        await client.connected(_PATIENCE)
    problem = ""
    try:
        answer = await asked
    except UsageError as wrong:
        problem = shown(wrong, 1000)
    except Exception as wrong:  # noqa: BLE001 - a page must not wait for ever for what will not come
        _log.exception("a question to the lake failed")
        problem = f"{type(wrong).__name__}: {shown(wrong, 600)}. {OUR_FAULT}"
    if client.is_deleted:
        # Whoever asked has left the page meanwhile: there is nobody to build the rest of it for.
        raise asyncio.CancelledError
    place.clear()
    with place:
        if problem:
            state("The lake cannot be read", problem, tone="bad")
        else:
            show(answer)
