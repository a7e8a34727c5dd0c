"""What a command that failed says, and with which status it ends: one clear paragraph, and never a traceback.

Commands let errors pass unless they have something to add. Whoever wants the traceback asks with ``--debug``.
"""

from __future__ import annotations

import traceback

import click

from framewire.cli.settings import Wrong
from framewire.errors import BadBody, Expired, FramewireError, NoRoute, Unreachable, UsageError
from framewire.operation.exits import Exit

__all__ = ["failure", "show_traceback"]

_EXTRAS = {
    "duckdb": "spark",
    "jdk": "spark",
    "nicegui": "dashboard",
    "numpy": "spark",
    "opentelemetry": "otel",
    "pyarrow": "spark",
    "pyspark": "spark",
}
"""Packages that not every installation has, and the extra of framewire that brings each."""


def failure(problem: Exception) -> click.ClickException:
    """The error that click is to show for what went wrong."""
    if isinstance(problem, click.ClickException):
        return problem
    if isinstance(problem, FramewireError):
        return Wrong(_told(problem), _status(problem))
    if isinstance(problem, ModuleNotFoundError) and (extra := _extra(problem)):
        return Wrong(
            f"this needs {problem.name}, which is not installed: pip install 'framewire[{extra}]'", Exit.LACKING
        )
    if isinstance(problem, OSError):
        return Wrong(_about_file(problem), Exit.FILES)
    if _package(type(problem).__module__) in ("pyspark", "py4j"):
        return Wrong(f"Spark failed: {_of_java(str(problem))}\n`framewire --debug …` shows the rest.", Exit.FAILED)
    return Wrong(
        f"{type(problem).__name__}: {problem}\n"
        "This is a fault of framewire's own, and nothing that you did wrong. Run the same as `framewire --debug …` "
        "to see where it comes from, and report it with that and what `framewire --version` says.",
        Exit.FAULT,
    )


def show_traceback(problem: BaseException) -> None:
    """Write where an error comes from to the standard error, what it was made of included."""
    link: BaseException | None = problem
    while link is not None:  # errors that are told in a paragraph hide what they were made of
        link.__suppress_context__ = False
        link = link.__cause__ or link.__context__
    click.echo("".join(traceback.format_exception(problem)), err=True, nl=False)


def _status(problem: FramewireError) -> Exit:
    from framewire.operation.apps import AppError  # noqa: PLC0415 - sockets come with it, and the help needs none
    from framewire.operation.http import CannotListenError  # noqa: PLC0415 - same
    from framewire.operation.observing import NoClusterError  # noqa: PLC0415 - same

    statuses: dict[type[FramewireError], Exit] = {
        NoClusterError: Exit.NO_CLUSTER,
        AppError: Exit.APP,
        CannotListenError: Exit.LISTEN,
        NoRoute: Exit.NO_ROUTE,
        Expired: Exit.NO_ANSWER,
        Unreachable: Exit.NO_ANSWER,
        UsageError: Exit.USAGE,
    }
    return next((status for kind, status in statuses.items() if isinstance(problem, kind)), Exit.FAILED)


def _told(problem: FramewireError) -> str:
    # What is the caller's to mend says so itself; of what happened to a message, the kind says most.
    named = type(problem).__module__ == FramewireError.__module__ and not isinstance(problem, UsageError)
    hint = "\nIs its codec another? --app MODULE has its type." if isinstance(problem, BadBody) else ""
    return f"{type(problem).__name__ + ': ' if named else ''}{problem}{hint}"


def _of_java(told: str) -> str:
    """The line that says something: Java's own, where Python's only says that Java was called."""
    lines = told.strip().splitlines() or [""]
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])


def _extra(problem: ModuleNotFoundError) -> str:
    return _EXTRAS.get(_package(problem.name or ""), "")


def _package(module: str) -> str:
    return module.partition(".")[0]


def _about_file(problem: OSError) -> str:
    what = problem.strerror or str(problem) or type(problem).__name__
    return f"{problem.filename}: {what}" if problem.filename is not None else what
