"""Dashboards that tests look at, each started once, and a page that fails the test in which it complains."""

import pytest
from playwright.sync_api import expect
from tests.browser import WIDE, browser, open_page  # noqa: F401 - fixtures
from tests.dashboard.looking import SECONDS, dashboard
from tests.history.known import make_known_lake

expect.set_options(timeout=SECONDS)


@pytest.fixture(scope="session")
def known(tmp_path_factory):
    """A dashboard of the lake whose figures are known; yields its address."""
    directory = tmp_path_factory.mktemp("known")
    make_known_lake(directory / "lake")
    with dashboard(directory, "--lake=lake") as address:
        yield address


@pytest.fixture(scope="session")
def secretive(tmp_path_factory):
    """The same with ``--no-bodies``."""
    directory = tmp_path_factory.mktemp("secretive")
    make_known_lake(directory / "lake")
    with dashboard(directory, "--lake=lake", "--no-bodies") as address:
        yield address


@pytest.fixture
def visit(open_page):  # noqa: F811 - the fixture
    """Opens an address; at the end of the test nothing may have gone wrong on it, or left this machine."""
    opened = []

    def visited(url, **options):
        looked = open_page(url, **options)
        looked.page.set_default_timeout(SECONDS)
        opened.append(looked)
        return looked.page

    yield visited
    for looked in opened:
        assert looked.problems == []
        assert looked.elsewhere("http://127.0.0.1:", "ws://127.0.0.1:") == []


@pytest.fixture
def page(visit):
    """An empty page of the usual width."""
    return visit("about:blank", width=WIDE)
