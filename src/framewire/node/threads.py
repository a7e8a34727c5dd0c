"""Handlers that are plain functions, in the threads of their node."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import Any

from framewire.node.actor import Handler
from framewire.node.core import Core
from framewire.node.parcel import Parcel

__all__ = ["TooLateError", "in_thread"]


class TooLateError(Exception):
    """The time of a message was over before a thread was free for it."""


def in_thread(core: Core, parcel: Parcel, handler: Handler, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
    """Handle a message as soon as a thread is free."""

    def handle() -> Any:
        if parcel.deadline <= core.now():
            raise TooLateError
        try:
            return handler.function(*arguments)
        except StopIteration as problem:
            # No future can hold this one; coroutines turn it into the same.
            raise RuntimeError(f"{handler.name} raised StopIteration") from problem

    return core.in_thread(copy_context().run, handle)
