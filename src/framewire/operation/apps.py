"""The program that a node runs: a name such as ``shop.orders:app``, found, loaded and hosted.

It is an actor, a class of actors, or a function that gets the node. What the function returns is hosted, too:
nothing, an actor, a class, or several. ``async def`` or not is its own choice.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from framewire.cluster import Node
from framewire.errors import FramewireError, UsageError
from framewire.node.actor import Actor
from framewire.node.payloads import MessageType, type_of

__all__ = ["AppError", "host", "load_app", "load_module", "message_types"]


class AppError(FramewireError):
    """A program that cannot be loaded or started. The cause, if it is in the program, is ``__cause__``."""


def load_module(name: str) -> ModuleType:
    """A module of the user's, by its name; the working directory is looked in first."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name is not None and f"{name}.".startswith(f"{problem.name}."):
            where = f"not in {here}, and not installed"
            raise AppError(f"app: there is no module {problem.name!r}: {where}") from None
        raise AppError(f"app: {name} cannot be imported: {_said(problem)}") from problem
    except Exception as problem:
        raise AppError(f"app: {name} cannot be imported: {_said(problem)}") from problem


def load_app(name: str) -> Any:
    """What ``module:name`` stands for."""
    module_name, colon, attribute = name.partition(":")
    if not (colon and module_name and attribute):
        raise UsageError(f"app: {name!r}; must be module:name, such as shop.orders:app")
    found: Any = load_module(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [each for each in dir(found) if _could_be_app(found, each)]
            listed = f"; it has {', '.join(names)}" if names else ""
            raise AppError(f"app: {module_name} has no {attribute!r}{listed}")
        found = getattr(found, part)
    if not (isinstance(found, Actor) or callable(found)):
        raise AppError(f"app: {name} is {found!r}; must be an actor, a class of actors, or a function of the node")
    return found


async def host(node: Node, app: Any) -> None:
    """Let a program begin on a running node."""
    made = app
    try:
        if not _is_actor(app):
            made = app(node)
            if inspect.isawaitable(made):
                made = await made
        for each in _actors(made):
            await node.host(each)
    except FramewireError as problem:
        raise AppError(f"app: {_name(app)} did not start: {problem}") from problem
    except Exception as problem:
        raise AppError(f"app: {_name(app)} did not start: {_said(problem)}") from problem


def message_types(module: ModuleType) -> Iterator[MessageType]:
    """The messages that a module knows."""
    for cls in dict.fromkeys(value for value in vars(module).values() if isinstance(value, type)):
        try:
            yield type_of(cls)
        except UsageError:
            continue


def _actors(made: Any) -> Iterable[Any]:
    if made is None:
        return ()
    several = [made] if _is_actor(made) or not isinstance(made, Iterable) else list(made)
    for each in several:
        if not _is_actor(each):
            raise UsageError(
                f"it returned {each!r}, which is no actor; return nothing, an actor, or a list of them"
            )
    return several


def _is_actor(value: Any) -> bool:
    return isinstance(value, Actor) or (isinstance(value, type) and issubclass(value, Actor))


def _could_be_app(module: Any, name: str) -> bool:
    value = getattr(module, name)
    here = getattr(value, "__module__", None) == getattr(module, "__name__", "")
    return here and not name.startswith("_") and (_is_actor(value) or inspect.isfunction(value))


def _name(app: Any) -> str:
    return getattr(app, "__qualname__", None) or type(app).__qualname__


def _said(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
