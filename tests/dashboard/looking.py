"""The real command as a process of its own, and a real browser that looks at it."""

import contextlib
import re

from tests.cluster.processes import line_of
from tests.operation.programs import program

SECONDS = 20_000
"""Milliseconds that a busy machine may take until something is on the page."""


@contextlib.contextmanager
def dashboard(directory, *arguments):
    """``framewire dashboard``; yields its address, as it says it."""
    with program(directory, "dashboard", "--no-open", "--port=0", *arguments) as running:
        said = line_of(running.process.stdout)
        address = re.search(r"at (http://\S+)", said)
        assert address, said + running.said
        yield address[1].rstrip("/")
        assert running.process.poll() is None, running.said
        assert not any(word in running.said for word in ("Traceback", "Stack (most", "never retrieved")), (
            running.said
        )


def rows(page, caption):
    """The texts of the cells of a table, row by row."""
    table = page.get_by_role("table", name=caption)
    return [
        [cell.strip() for cell in row.locator("td").all_inner_texts()] for row in table.locator("tbody tr").all()
    ]
