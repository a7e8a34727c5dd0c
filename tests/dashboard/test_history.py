"""History in a browser, on a lake whose figures are known: what is shown, and where it leads."""

import csv
import io
import re
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import expect
from tests.browser import NARROW
from tests.dashboard.looking import rows
from tests.history.known import flow_name

pytestmark = pytest.mark.timeout(120)
FAILED, EXPIRED, DEAD = flow_name(1, 3), flow_name(2, 1), flow_name(2, 2)


def test_flows_are_found_by_outcome_and_the_address_holds_the_filters(page, known):
    page.goto(f"{known}/flows")
    expect(page.get_by_role("table", name="Flows").locator("tbody tr")).to_have_count(12)
    page.get_by_label("outcome").select_option("failed")
    page.wait_for_url("**/flows?outcome=failed")
    expect(page.get_by_role("table", name="Flows").locator("tbody tr")).to_have_count(1)
    (found,) = rows(page, "Flows")
    assert found[2] == "failed"
    assert "shop.OutOfStock: nothing left of it" in found[-1]
    page.get_by_role("link", name="Clear").click()
    expect(page.get_by_role("table", name="Flows").locator("tbody tr")).to_have_count(12)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("id=13aa&message=reserve&node=stock", 1),
        ("outcome=wrong&since=2026-03-01T10:00&least=400", 2),
        ("sender=stock&receiver=shop", 9),
    ],
)
def test_flows_are_found_by_several_filters_together(page, known, query, count):
    page.goto(f"{known}/flows?{query}")
    expect(page.get_by_role("table", name="Flows").locator("tbody tr")).to_have_count(count)


def test_what_no_flow_is_like_is_told(page, known):
    page.goto(f"{known}/flows?message=nothing.like.this")
    expect(page.get_by_text("No flow is like that")).to_be_visible()


def test_an_address_that_is_wrong_is_told_all_at_once(page, known):
    page.goto(f"{known}/flows?colour=red&least=many&since=yesterday&outcome=great&page=-1")
    told = page.get_by_role("alert")
    for part in (
        "colour: no such filter",
        "least: many is no number",
        "since: yesterday is no time",
        "outcome: great is none of",
        "page: -1",
    ):
        expect(told).to_contain_text(part)
    expect(page.get_by_role("table")).to_have_count(0)


def test_a_failed_flow_leads_to_its_failing_handler(page, known):
    page.goto(f"{known}/flows?outcome=failed")
    page.get_by_role("table", name="Flows").get_by_role("link").first.click()
    page.wait_for_url(f"**/flow/{FAILED}")
    failing = page.get_by_role("button", name=re.compile("its handler raised"))
    expect(failing).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name="The handler of stock.reserve v1 on stock →").click()
    page.wait_for_url("**/topology?node=stock&message=stock.reserve+v1")
    handler = page.get_by_role("table", name="Handlers of this node").get_by_role(
        "row", name=re.compile("stock.reserve v1")
    )
    expect(handler).to_contain_text("▸")
    expect(handler.locator('td[data-label="failed"]')).to_have_text("1")


def test_a_flow_shows_its_facts_and_what_nodes_recorded(page, known):
    page.goto(f"{known}/flow/{flow_name(0, 0)}")
    expect(page.get_by_role("heading", name=flow_name(0, 0))).to_be_visible()
    expect(page.get_by_role("group", name="Took")).to_contain_text("12 ms")
    sent = page.get_by_role("article", name="sent by shop")
    expect(sent).to_contain_text("unsigned")
    expect(sent).to_contain_text("tcp://10.0.0.1:7000 (shop)")
    expect(sent).to_contain_text("30 s")
    expect(sent).to_contain_text("looks like msgpack")
    expect(sent).to_contain_text('"item": "cup"')
    sent.get_by_text("4 frames", exact=True).click()
    expect(sent.get_by_role("table")).to_be_visible()


def test_picking_a_message_shows_it_and_becomes_part_of_the_address(page, known):
    page.goto(f"{known}/flow/{flow_name(0, 0)}")
    expect(page.get_by_role("heading", name="Message 1: stock.reserve v1")).to_be_visible()
    page.get_by_role("button", name=re.compile("stock.reserved v1")).press("Enter")
    expect(page.get_by_role("heading", name="Message 2: stock.reserved v1")).to_be_visible()
    assert page.url.endswith("?leg=2")
    page.reload()
    expect(page.get_by_role("heading", name="Message 2: stock.reserved v1")).to_be_visible()


def test_the_replay_command_and_the_link_are_copied(page, known):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{known}/flow/{FAILED}")
    page.get_by_role("button", name="Copy replay command").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"""framewire replay --lake lake --where 'flow = '"'"'{FAILED}'"'"'' --dry-run"""
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_function(f"async () => (await navigator.clipboard.readText()).endsWith('/flow/{FAILED}')")


def test_the_beginning_of_an_id_leads_to_those_that_have_it_and_nothing_is_told_as_such(page, known):
    page.goto(f"{known}/flow/2")
    expect(page.get_by_role("table", name="Flows").locator("tbody tr")).to_have_count(4)
    page.goto(f"{known}/flow/nothing-like-this")
    expect(page.get_by_text("There is no such flow")).to_be_visible()


def test_the_topology_opens_an_edge_with_its_messages_percentiles_and_slowest_flows(page, known):
    page.goto(f"{known}/topology")
    edge = page.get_by_role("link", name=re.compile("^shop → stock: 12 sent, 1 errors, 0 lost; p50 2.5 ms"))
    edge.focus()
    expect(page.locator(".fw-graph .said")).to_contain_text("p99 4 ms")
    edge.press("Enter")
    page.wait_for_url("**/topology?sender=shop&receiver=stock")
    expect(page.get_by_role("table", name="Messages of this edge")).to_contain_text("stock.reserve v1")
    expect(page.get_by_role("img", name="Time from sending to receiving")).to_be_visible()
    slowest = rows(page, "Slowest flows")
    assert slowest[0][0] == f"{EXPIRED[:13]}…"


def test_the_topology_is_of_the_time_that_the_address_says(page, known):
    page.goto(f"{known}/topology?since=2026-03-01T09:00&until=2026-03-01T10:00")
    expect(page.get_by_role("link", name=re.compile("^shop → stock: 4 sent, 1 errors"))).to_be_visible()
    page.goto(f"{known}/topology?since=2027-01-01T00:00")
    expect(page.get_by_text("No traffic")).to_be_visible()


def test_the_topology_can_be_zoomed_and_panned(page, known):
    page.goto(f"{known}/topology")
    drawing = page.locator(".fw-graph svg")
    expect(drawing).to_have_attribute("viewBox", "0 0 1000 560")
    page.get_by_role("button", name="Zoom in").click()
    expect(drawing).not_to_have_attribute("viewBox", "0 0 1000 560")
    zoomed = drawing.get_attribute("viewBox")
    box = drawing.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 85, box["y"] + 45, steps=4)
    page.mouse.up()
    expect(drawing).not_to_have_attribute("viewBox", zoomed)
    page.get_by_role("button", name="All", exact=True).click()
    expect(drawing).to_have_attribute("viewBox", "0 0 1000 560")


@pytest.mark.parametrize(
    ("name", "title", "told"),
    [
        ("losses", "Losses", ["never received", "stock", "shop", "stock.reserved v1"]),
        ("dead-letters", "Dead letters", ["no_route", "stock", "till.pay v2 [eu]"]),
    ],
)
def test_a_row_leads_to_its_flow(page, known, name, title, told):
    page.goto(f"{known}/{name}")
    expect(page.get_by_role("table", name=title).locator("tbody tr")).to_have_count(1)
    (found,) = rows(page, title)
    for part in told:
        assert part in found
    page.get_by_role("table", name=title).get_by_role("link").click()
    page.wait_for_url(f"**/flow/{EXPIRED if name == 'losses' else DEAD}")
    expect(page.get_by_role("region", name="Messages on a line of time")).to_be_visible()


def test_a_row_of_the_quarantine_opens_its_frames(page, known):
    page.goto(f"{known}/quarantine")
    page.get_by_role("table", name="Quarantine").get_by_role("link").first.click()
    article = page.get_by_role("article", name=re.compile("too_few_frames"))
    expect(article).to_contain_text("malformed")
    expect(article.get_by_role("table")).to_contain_text("0xff00")


def test_the_audit_tells_signatures_and_filters_by_kind(page, known):
    page.goto(f"{known}/audit")
    expect(page.get_by_role("table", name="Audit").locator("tbody tr")).to_have_count(3)
    page.get_by_role("list", name="By kind").get_by_role("link", name="invalid 1").click()
    page.wait_for_url("**/audit?state=invalid")
    assert rows(page, "Audit") == [["payments", "invalid", "till", "1", "2026-03-01 10:00"]]


def test_adoption_tells_formats(page, known):
    page.goto(f"{known}/adoption")
    expect(page.get_by_role("table", name="Adoption").locator("tbody tr")).to_have_count(3)
    assert [(row[0], row[4]) for row in rows(page, "Adoption")] == [("V5", "36"), ("V4", "7"), ("V1", "2")]


def fetched(url):
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310 - our own address
        return answer.headers, list(csv.reader(io.StringIO(answer.read().decode())))


def test_tables_are_exported_with_their_filters(page, known):
    page.goto(f"{known}/losses?node=stock")
    href = page.get_by_role("link", name="Export CSV").get_attribute("href")
    assert href == "/export/losses.csv?node=stock"
    headers, lines = fetched(known + href)
    assert headers["content-disposition"] == 'attachment; filename="losses.csv"'
    assert lines[0] == ["at", "kind", "from", "to", "message", "flow"]
    assert lines[1][1:] == ["not_received", "stock", "shop", "stock.reserved v1", EXPIRED]
    assert fetched(f"{known}/export/losses.csv?node=nobody")[1] == [lines[0]]
    with pytest.raises(urllib.error.HTTPError, match="400"):
        fetched(f"{known}/export/losses.csv?colour=red")


def test_no_page_is_wider_than_a_phone(visit, known):
    page = visit(f"{known}/flows", width=NARROW)
    for path in (
        "/flows",
        f"/flow/{FAILED}",
        "/topology?node=stock",
        "/losses",
        "/quarantine",
        "/audit",
        "/adoption",
        "/dead-letters",
        "/wire",
        "/cluster",
    ):
        page.goto(known + path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, path


def test_light_and_dark_can_be_switched_and_stay_so(visit, known):
    page = visit(f"{known}/wire", dark=False)
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.get_by_role("button", name="Light or dark").click()
    page.wait_for_function(f"{colour} !== '{light}'")
    dark = page.evaluate(colour)
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.evaluate(colour) == dark


def test_the_keyboard_reaches_the_contents_and_every_page(page, known):
    page.goto(f"{known}/flows")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the contents")).to_be_focused()
    names = page.get_by_role("navigation", name="Pages").get_by_role("link").all_inner_texts()
    assert names == [
        "Cluster",
        "Topology",
        "Flows",
        "Losses",
        "Dead letters",
        "Quarantine",
        "Audit",
        "Adoption",
        "Wire",
    ]
    expect(page.get_by_role("link", name="Flows", exact=True)).to_have_attribute("aria-current", "page")


def test_without_bodies_nothing_that_messages_say_is_shown(page, secretive):
    page.goto(f"{secretive}/flow/{FAILED}")
    expect(page.get_by_text("The body is hidden").first).to_be_visible()
    for secret in ("cup", "nothing left of it"):
        assert secret not in page.content()
    page.goto(f"{secretive}/flows?outcome=failed")
    expect(page.get_by_role("table", name="Flows")).to_contain_text("shop.OutOfStock")
    assert "nothing left of it" not in page.content()
