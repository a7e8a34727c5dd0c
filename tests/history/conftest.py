"""A lake whose figures are known, made once."""

import pytest
from tests.history.known import make_known_lake

from framewire.history import History


@pytest.fixture(scope="session")
def known_lake(tmp_path_factory):
    return make_known_lake(tmp_path_factory.mktemp("known") / "lake")


@pytest.fixture(scope="module")
def history(known_lake):
    with History(str(known_lake)) as opened:
        yield opened
