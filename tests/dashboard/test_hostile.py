"""What captures hold is text, whatever it looks like: markup, scripts, a megabyte, bytes that are none."""

import re
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.cluster.clustering import rendezvous
from tests.dashboard.looking import dashboard
from tests.history.known import HOSTILE, _flow, _hops, _message, after, began, make_hostile_lake, write_lake
from tests.operation.programs import program, write
from tests.spark.lake_rows import flow_id, message_id

import framewire.dashboard
from framewire.dashboard.csv_export import csv_lines

pytestmark = pytest.mark.timeout(180)
SHORT = "<img src=x onerror=alert(3)>/../?#%00"
BROWSER = Path(framewire.dashboard.__file__).parent
SHOUT = """
    import msgspec, framewire as fw

    @fw.message("<script>alert(4)</script>")
    class Shout(msgspec.Struct):
        pass

    class Loud(fw.Actor):
        @fw.handles(Shout)
        async def shout(self, _):
            pass
"""


def make_lake(directory):
    """The hostile lake of the history's tests, and a flow whose id is markup but short enough for an address."""
    make_hostile_lake(directory)
    at = began(2, 3) + 90_000
    common, message = flow_id(SHORT), message_id(b"<b>bold</b>")
    row = _message(common, "shop", message, after(at))
    sent = {
        **row,
        "direction": "sent",
        "peer": b"stock",
        "body": HOSTILE.encode(),
        "domain": "<i>",
        "signature_state": "invalid",
    }
    long = {**sent, "direction": "dead", "reason": "x" * 1_000_000, "body": b"<script>" * 130_000}
    return write_lake(
        directory,
        flows=[{**_flow(common, "failed", at, 3, after(at)), **message}],
        hops=[{**_hops(common, "failed", at, 4, after(at))[0], **message}],
        messages=[sent, long],
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    directory = tmp_path_factory.mktemp("hostile")
    make_lake(directory / "lake")
    write(directory, "loud.py", SHOUT)
    with rendezvous() as server:
        options = [f"--rendezvous={server.uri}", "--identity=<img src=x onerror=alert(5)>"]
        with program(directory, "node", "--app=loud:Loud", *options) as node:
            node.says("is ready")
            with dashboard(directory, "--lake=lake", f"--rendezvous={server.uri}") as where:
                yield where


@pytest.fixture
def harmless(visit):
    """A page on which no script of a capture may run, and no element may come of one."""
    asked = []
    page = visit("about:blank")
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    yield page
    assert asked == []


def check(page):
    assert page.locator("img, b, [onerror]").count() == 0
    assert page.locator("script", has_text="alert(").count() == 0


@pytest.mark.parametrize(
    ("path", "waits"),
    [
        ("/flows", "Flows"),
        ("/losses", "Losses"),
        ("/dead-letters", "Dead letters"),
        ("/quarantine", "Quarantine"),
        ("/audit", "Audit"),
        ("/adoption", "Adoption"),
        ("/topology", "Edges"),
    ],
)
def test_markup_in_names_is_shown_as_text(harmless, address, path, waits):
    harmless.goto(address + path)
    expect(harmless.get_by_role("table", name=waits, exact=True)).to_contain_text("<script>alert(1)")
    check(harmless)


def test_a_flow_whose_id_is_markup_has_an_address_and_shows_its_body_as_text(harmless, address):
    harmless.goto(f"{address}/flows?message=bold")
    harmless.get_by_role("table", name="Flows").get_by_role("link").click()
    expect(harmless.get_by_role("heading", level=1)).to_have_text(SHORT)
    expect(harmless.get_by_role("article", name="sent by shop")).to_contain_text("<script>alert(1)</script>")
    harmless.locator(".fw-waterfall button").first.click()
    check(harmless)


def test_a_megabyte_and_bytes_that_are_no_text_are_cut_before_they_are_sent(harmless, address):
    harmless.goto(f"{address}/dead-letters")
    expect(harmless.get_by_role("table", name="Dead letters")).to_contain_text("xxx…")
    harmless.goto(f"{address}/quarantine")
    harmless.get_by_role("table", name="Quarantine").get_by_role("link").first.click()
    expect(harmless.get_by_role("article")).to_contain_text("0xffffff")
    assert len(harmless.content()) < 1_000_000


def test_names_of_live_nodes_and_messages_are_text(harmless, address):
    harmless.goto(f"{address}/cluster")
    expect(harmless.get_by_role("table", name="Nodes")).to_contain_text("<img src=x onerror=alert(5)>")
    expect(harmless.get_by_role("table", name="Handlers")).to_contain_text("<script>alert(4)</script>")
    check(harmless)
    harmless.goto(f"{address}/topology?live=1")
    harmless.get_by_role("link", name=re.compile("^<img src….*handles")).press("Enter")
    expect(harmless.get_by_role("heading", level=2).first).to_have_attribute(
        "title", "<img src=x onerror=alert(5)>"
    )
    expect(harmless.get_by_role("table", name="Handlers of this node").first).to_contain_text("<script>alert(4)")
    check(harmless)


def test_names_of_nodes_that_an_address_makes_up_are_text(harmless, address):
    ends = "sender=%3Cscript%3Ealert(7)%3C/script%3E&receiver=%3Cimg%20src=x%20onerror=alert(8)%3E"
    harmless.goto(f"{address}/topology?live=1&{ends}")
    expect(harmless.get_by_text("is not there now").first).to_contain_text("<script>")
    check(harmless)


def test_what_is_pasted_is_text(harmless, address):
    harmless.goto(f"{address}/wire")
    harmless.get_by_label("JSON lines").fill(
        '{"name": "<img src=x onerror=alert(6)>", "frames": ["3c736372697074"]}'
    )
    harmless.get_by_role("button", name="Show the frames").click()
    expect(harmless.get_by_role("article")).to_contain_text("<img src=x onerror=alert(6)>")
    check(harmless)


def test_what_an_address_says_is_text(harmless, address):
    harmless.goto(
        f"{address}/flows?%3Cscript%3E=%3Cimg%20src=x%20onerror=alert(7)%3E&message=%3Cscript%3Ealert(8)%3C/script%3E"
    )
    expect(harmless.get_by_role("alert")).to_contain_text("<script>: no such filter")
    check(harmless)


def test_a_spreadsheet_takes_no_cell_for_a_formula():
    lines = "".join(csv_lines(["a", "b"], [("=HYPERLINK(1)", "@x"), ("-1+1", 5), ("plain", -3)])).split("\r\n")
    assert lines == ["a,b", "'=HYPERLINK(1),'@x", "'-1+1,5", "plain,-3", ""]


def test_an_export_holds_names_as_text(address):
    with urllib.request.urlopen(f"{address}/export/audit.csv", timeout=20) as answer:  # noqa: S310 - our own
        assert answer.headers["content-type"].startswith("text/csv")
        assert "<script>alert(1)</script>" in answer.read().decode()


def test_no_part_of_the_dashboard_takes_markup():
    sources = [*BROWSER.rglob("*.py"), *BROWSER.rglob("*.js")]
    assert len(sources) > 20
    for source in sources:
        found = re.findall(
            r"v-html|innerHTML|outerHTML|insertAdjacent|ui\.html|ui\.markdown|sanitize|document\.write",
            source.read_text(),
        )
        assert found == [], source
