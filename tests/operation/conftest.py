"""What most tests of running programs begin with."""

import pytest
from tests.cluster.clustering import rendezvous
from tests.operation.programs import SHOP, write


@pytest.fixture
def shop(tmp_path):
    """A directory with the program of a shop in it."""
    write(tmp_path, "shop.py", SHOP)
    return tmp_path


@pytest.fixture
def server():
    """A rendezvous server."""
    with rendezvous() as running:
        yield running
