"""Reports on lakes whose figures are known, and a browser to look at them."""

import pytest
from tests.browser import browser, open_page  # noqa: F401 - fixtures
from tests.history.known import make_hostile_lake, make_known_lake

from framewire.history import History
from framewire.report import gathered, report_page


@pytest.fixture(scope="session")
def reported_lake(tmp_path_factory):
    return make_known_lake(tmp_path_factory.mktemp("reported") / "lake")


@pytest.fixture(scope="session")
def facts(reported_lake):
    with History(str(reported_lake)) as history:
        return gathered(history)


@pytest.fixture(scope="session")
def page_file(facts, tmp_path_factory):
    """The report on the known lake, as a file."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_page(facts, title="Three hours of a shop"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def hostile_file(tmp_path_factory):
    """The report on a lake full of markup, with a title that is markup too."""
    place = tmp_path_factory.mktemp("hostile")
    with History(str(make_hostile_lake(place / "lake"))) as history:
        told = gathered(history)
    path = place / "report.html"
    path.write_text(report_page(told, title="<script>alert(0)</script>"), encoding="utf-8")
    return path
