"""The real command as a process of its own, and a real browser that looks at it."""

import contextlib
import re
import signal
from pathlib import Path

from tests.cluster.clustering import HEARTBEAT
from tests.cluster.processes import line_of
from tests.history.known import make_known_lake
from tests.node.running import until
from tests.operation.programs import SHOP, program, write

SECONDS = 20_000
"""Milliseconds that a busy machine may take until something is on the page."""
_COMPLAINTS = ("Traceback", "Stack (most", "never retrieved", "has been deleted")
QUICK = (f"--set=cluster.heartbeat={HEARTBEAT}", "--set=cluster.misses=5")


@contextlib.contextmanager
def dashboard(directory, *arguments):
    """``framewire dashboard``; yields its address, as it says it."""
    with program(directory, "dashboard", "--no-open", "--port=0", *arguments) as running:
        yield address_of(running)
        assert running.process.poll() is None, running.said
        assert not complaints(running)


@contextlib.contextmanager
def faulty(kind, directory):
    """A dashboard with a fault, see ``faulty_process``; yields its address and its process."""
    module, root = "tests.dashboard.faulty_process", str(Path(__file__).parents[2])
    lake = make_known_lake(directory / "lake")
    with program(directory, kind, lake, directory, module=module, PYTHONPATH=root) as running:
        yield address_of(running), running
        assert running.process.poll() is None, running.said


def address_of(running):
    said = line_of(running.process.stdout)
    address = re.search(r"at (http://\S+)", said)
    assert address, said + running.said
    return address[1].rstrip("/")


def complaints(running):
    """What a dashboard has said that it should have no reason to say."""
    return running.said if any(word in running.said for word in _COMPLAINTS) else ""


@contextlib.contextmanager
def shops(directory, server, *names):
    """Nodes of a shop, by name, each a process of its own that is quick to be missed."""
    write(directory, "shop.py", SHOP)
    options = ["node", "--app=shop:app", f"--rendezvous={server.uri}", *QUICK]
    with contextlib.ExitStack() as running:
        nodes = {name: running.enter_context(program(directory, *options, f"--identity={name}")) for name in names}
        for node in nodes.values():
            node.says("is ready")
        yield nodes


def killed(node):
    """Kill a node as nothing can prevent, and wait until it is dead."""
    node.send(signal.SIGKILL)
    until(lambda: node.process.poll() is not None)


def rows(page, caption):
    """The texts of the cells of a table, row by row."""
    table = page.get_by_role("table", name=caption)
    return [
        [cell.strip() for cell in row.locator("td").all_inner_texts()] for row in table.locator("tbody tr").all()
    ]
