"""What is shown where there is nothing, where the lake is broken, and to whom: each says what to do next."""

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import expect
from tests.cluster.processes import line_of
from tests.dashboard.looking import dashboard
from tests.history.known import make_known_lake
from tests.operation.programs import program

pytestmark = pytest.mark.timeout(180)
PAGES = ("/topology", "/flows", "/losses", "/dead-letters", "/quarantine", "/audit", "/adoption")
TOKEN = "a-token-that-is-long-enough"


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A dashboard of a lake that has no rows yet."""
    directory = tmp_path_factory.mktemp("empty")
    (directory / "lake" / "flows").mkdir(parents=True)
    with dashboard(directory, "--lake=lake") as address:
        yield address


def test_an_empty_lake_says_on_every_page_what_to_do(page, empty):
    for path in PAGES:
        page.goto(empty + path)
        expect(page.get_by_role("status").last).to_contain_text("framewire pipeline")
    page.goto(f"{empty}/flow/some-flow")
    expect(page.get_by_role("status")).to_contain_text("There is no such flow")


def test_a_broken_lake_says_on_every_page_what_is_wrong_and_mended_it_is_shown(page, tmp_path):
    lake = make_known_lake(tmp_path / "lake")
    broken = {file: file.read_bytes() for file in lake.rglob("*.parquet")}
    for file in broken:
        file.write_bytes(b"this is no Parquet")
    with dashboard(tmp_path, "--lake=lake") as address:
        for path in (*PAGES, "/flow/some-flow"):
            page.goto(address + path)
            expect(page.get_by_role("alert").last).to_contain_text("the lake lake cannot be read")
            expect(page.get_by_role("alert").last).to_contain_text("framewire pipeline run")
        for file, content in broken.items():
            file.write_bytes(content)
        page.goto(f"{address}/losses")
        expect(page.get_by_role("table", name="Losses")).to_be_visible()


@pytest.fixture(scope="module")
def nothing(tmp_path_factory):
    """A dashboard of a lake and a cluster that are not there; yields its address and where the lake would be."""
    directory = tmp_path_factory.mktemp("nothing")
    with dashboard(directory, "--lake=lake", "--rendezvous=tcp://127.0.0.1:1") as address:
        yield address, directory / "lake"


def test_a_cluster_that_is_not_there_is_told_with_where_it_was_looked_for(page, nothing):
    page.goto(nothing[0])
    page.wait_for_url("**/cluster")
    expect(page.get_by_role("alert")).to_contain_text("tcp://127.0.0.1:1")


def test_a_lake_that_is_not_there_yet_is_told_and_looked_for_again(page, nothing):
    address, lake = nothing
    page.goto(f"{address}/flows")
    expect(page.get_by_role("alert").last).to_contain_text(
        "does not exist; make a lake with: framewire pipeline run"
    )
    make_known_lake(lake)
    page.goto(f"{address}/flows")
    expect(page.get_by_role("table", name="Flows")).to_be_visible()


def test_a_page_that_does_not_exist_says_so_and_leads_back(open_page, empty):
    page = open_page(f"{empty}/no-such-page").page
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no such page")
    expect(page.get_by_role("link", name="Flows", exact=True)).to_be_visible()
    assert page.request.get(f"{empty}/no-such-page").status == 404


def test_with_a_token_the_address_lets_in_once_and_the_cookie_from_then_on(browser, tmp_path):
    make_known_lake(tmp_path / "lake")
    with dashboard(tmp_path, "--lake=lake", f"--token={TOKEN}") as address:
        where = address.partition("?")[0].rstrip("/")
        assert address.endswith(f"?token={TOKEN}")
        for path in (
            "/flows",
            "/export/losses.csv",
            "/_framewire/style.css",
            "/_nicegui_ws/socket.io/?EIO=4&transport=polling",
        ):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(where + path, timeout=20)  # noqa: S310 - our own address
        window = browser.new_context()
        page = window.new_page()
        page.goto(f"{where}/losses?token={TOKEN}")
        expect(page.get_by_role("table", name="Losses")).to_be_visible()
        assert page.url == f"{where}/losses"
        page.goto(f"{where}/wire")
        page.get_by_role("button", name="Show the frames").click()
        expect(page.get_by_role("status")).to_contain_text("Nothing to show")
        assert page.evaluate("document.cookie") == ""
        window.close()


def test_elsewhere_a_token_is_made_and_printed_and_never_logged(tmp_path):
    (tmp_path / "lake" / "flows").mkdir(parents=True)
    with dashboard(tmp_path, "--lake=lake", "--host=0.0.0.0") as address:
        place, _, token = address.partition("?token=")
        assert place.startswith("http://localhost:")
        assert len(token) >= 30
        request = urllib.request.Request(f"{place}flows", headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - our own
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - same
            assert answer.status == 200
    assert all(token not in said.read_text() for said in tmp_path.glob("stderr-*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_it_ends_well_when_it_is_stopped(tmp_path, number):
    (tmp_path / "lake" / "flows").mkdir(parents=True)
    with program(tmp_path, "dashboard", "--lake=lake", "--no-open", "--port=0") as running:
        address = re.search(r"http://\S+", line_of(running.process.stdout))[0]
        urllib.request.urlopen(f"{address}flows", timeout=30).close()  # noqa: S310 - our own address
        assert running.stop(number) == 0
        assert "Traceback" not in running.said
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("stderr-")) == ["lake"]


def run(*arguments):
    command = [sys.executable, "-m", "framewire", "dashboard", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_command_line_that_makes_no_sense_is_told():
    nothing = run()
    assert (nothing.returncode, "Say what to look at: --lake" in nothing.stderr) == (2, True)
    short = run("--lake=lake", "--token=short")
    assert (short.returncode, "at least 16 characters" in short.stderr) == (2, True)


def test_an_address_that_is_taken_is_told_with_what_to_do(empty):
    taken = run("--lake=lake", "--no-open", f"--port={empty.rpartition(':')[2]}")
    assert taken.returncode == 4
    assert "--port 0" in taken.stderr
