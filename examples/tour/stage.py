"""What the audience sees: chapters, steps that tell how long they took, and the end when a figure is wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

__all__ = ["BrokenPromiseError", "Stage", "Step"]

_INDENT = 2


class BrokenPromiseError(Exception):
    """Something that the demo shows is not as it must be."""


class Step:
    """One thing that is being done; what came of it is told when it is done."""

    def __init__(self, told: str) -> None:
        self.told = told


class Stage:
    """Writes to a console: with a spinner where a person watches, as plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._chapters = 0

    @property
    def width(self) -> int:
        """Columns that there are for what is shown below a chapter."""
        return self._console.width - _INDENT

    @property
    def coloured(self) -> bool:
        return self._console.is_terminal

    @property
    def seconds(self) -> float:
        """Since the demo began."""
        return time.monotonic() - self._began

    def title(self, text: str, below: str) -> None:
        self._console.print(f"[bold]{escape(text)}[/]\n[dim]{escape(below)}[/]", highlight=False)

    def chapter(self, title: str) -> None:
        self._chapters += 1
        self._console.print()
        self._console.print(f"[bold cyan]{self._chapters}  {escape(title)}[/]", highlight=False)

    @contextmanager
    def step(self, doing: str, *, slow: bool = False) -> Iterator[Step]:
        """Do something while people are told what; a ``slow`` one is told beforehand where nothing can spin."""
        began = time.monotonic()
        step = Step(doing)
        if slow and not self._console.is_terminal:
            self._line("…", "dim", doing, "")
        try:
            with self._spinner(doing):
                yield step
        except BaseException as problem:
            if isinstance(problem, Exception):
                self._line("✗", "bold red", doing, "")
            raise
        self._line("✓", "green", step.told, f"{time.monotonic() - began:.1f} s")

    def _spinner(self, doing: str) -> Progress:
        """What is being done, and for how long: gone when it is done."""
        columns = (TextColumn(" "), SpinnerColumn(), TextColumn("[dim]{task.description}"), TimeElapsedColumn())
        spinner = Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)
        spinner.add_task(escape(doing), total=None)
        return spinner

    def say(self, text: str) -> None:
        self._console.print(Padding(Text(text), (0, 0, 0, _INDENT)), highlight=False)

    def show(self, what: RenderableType) -> None:
        """Anything that rich can draw."""
        self._console.print(Padding(what, (0, 0, 0, _INDENT)))

    def end(self, text: str, *, failed: bool = False) -> None:
        """The last words."""
        self._console.print()
        self._console.print(Text.assemble(("The demo failed: ", "bold red"), text) if failed else Text(text, "dim"))

    def command(self, line: str, output: str, *, cut: bool = False) -> None:
        """A command as a person would type it, and what it said; with ``cut``, as much of each line as fits."""
        self._console.print(Padding(Text(f"$ {line}", style="dim"), (0, 0, 0, _INDENT)), highlight=False)
        self.show(Text.from_ansi(output.rstrip("\n"), no_wrap=cut, overflow="ellipsis" if cut else None))

    def check(self, what: str, *, holds: bool) -> None:
        """Go on only if something is as it must be."""
        if not holds:
            raise BrokenPromiseError(what)

    def _line(self, mark: str, style: str, text: str, took: str) -> None:
        line = Table.grid(padding=(0, 1), expand=True)
        line.add_column(width=1, style=style)
        line.add_column(ratio=1)
        line.add_column(justify="right", style="dim", no_wrap=True)
        line.add_row(mark, Text(text), took)
        self.show(line)
