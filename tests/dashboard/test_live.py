"""The live cluster in a browser: what is there, and what changes while one looks."""

import re

import pytest
from playwright.sync_api import expect
from tests.cluster.clustering import rendezvous
from tests.dashboard.looking import QUICK, dashboard, killed, rows, shops
from tests.operation.programs import client
from tests.operation.shop import Order, Ordered

import framewire as fw

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A rendezvous server and two nodes, one of which a test may kill."""
    directory = tmp_path_factory.mktemp("cluster")
    with rendezvous() as server, shops(directory, server, "shop-1", "shop-2") as nodes:
        yield server, directory, nodes


@pytest.fixture(scope="module")
def live(cluster):
    server, directory, _ = cluster
    with dashboard(directory, f"--rendezvous={server.uri}", *QUICK) as address:
        yield address


def test_nodes_and_their_handlers_are_shown(page, live):
    page.goto(f"{live}/cluster")
    nodes = page.get_by_role("table", name="Nodes")
    for name in ("shop-1", "shop-2"):
        expect(nodes.get_by_role("row", name=re.compile(f"{name} up"))).to_be_visible()
    expect(page.get_by_role("group", name="Nodes")).to_contain_text("2")
    expect(page.get_by_role("table", name="Handlers")).to_contain_text("Shop.order")
    expect(page.get_by_text("FRAMEWIRE.NODEINFO")).to_have_count(0)


def test_an_open_ask_appears_with_its_age_and_target_and_goes_when_it_is_answered(page, live, cluster):
    server, _, _ = cluster
    page.goto(f"{live}/cluster")
    expect(page.get_by_text("Nobody waits for an answer.")).to_be_visible()
    with client(server, identity="waiting") as hub:
        promise = hub.start(Order("tea", 6), Ordered, correlation_id=b"my-flow")
        row = page.get_by_role("table", name="Open asks").get_by_role("row", name=re.compile("my-flow"))
        expect(row).to_contain_text("shop.order v2")
        expect(row).to_contain_text(re.compile(r"shop-[12]"))
        promise.result(30)
        expect(row).to_have_count(0)


def test_failures_and_dead_letters_are_counted_by_reason(page, live, cluster):
    server, _, _ = cluster
    page.goto(f"{live}/cluster")
    with client(server, identity="unlucky", route_grace=0.2) as hub:
        with pytest.raises(fw.RemoteError):
            hub.ask(Order("nothing"), Ordered)
        with pytest.raises(fw.NoRoute):
            hub.ask(fw.NodeInfo(), Ordered, to_node=b"nobody-is-called-this")
        reasons = page.get_by_role("table", name="Dead letters by reason")
        expect(reasons.get_by_role("row", name=re.compile("no_route|unreachable"))).to_be_visible()
        expect(page.get_by_role("table", name="Handlers").locator('td.bad[data-label="failed"]')).to_have_text("1")


def test_a_heading_sorts_its_table_by_mouse_and_by_keyboard(page, live):
    page.goto(f"{live}/cluster")
    table = page.get_by_role("table", name="Nodes")
    expect(table.get_by_role("row", name=re.compile("shop-2"))).to_be_visible()
    heading = table.get_by_role("columnheader", name="node", exact=True)
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    heading.get_by_role("button").press("Enter")
    expect(heading).to_have_attribute("aria-sort", "descending")
    names = [row[0] for row in rows(page, "Nodes")]
    assert len(names) >= 2
    assert names == sorted(names, reverse=True)


def test_two_people_see_the_same(browser, live):
    contexts = [browser.new_context(), browser.new_context()]
    pages = [context.new_page() for context in contexts]
    for each in pages:
        each.goto(f"{live}/cluster")
    for each in pages:
        expect(each.get_by_role("table", name="Nodes")).to_contain_text("shop-1")
    for context in contexts:
        context.close()


def test_a_node_that_is_killed_is_shown_as_gone_while_one_looks(page, live, cluster):
    page.goto(f"{live}/cluster")
    nodes = page.get_by_role("table", name="Nodes")
    expect(nodes.get_by_role("row", name=re.compile("shop-2 up"))).to_be_visible()
    killed(cluster[2]["shop-2"])
    expect(nodes.get_by_role("row", name=re.compile("shop-2 gone gone; last seen"))).to_be_visible()
    expect(page.get_by_role("group", name="Nodes")).to_contain_text(re.compile(r"\d gone"))
    expect(nodes.get_by_role("row", name=re.compile("shop-1 up"))).to_be_visible()


def test_without_a_cluster_the_pages_say_how_to_get_one(page, known):
    for path in ("/cluster", "/topology?live=1"):
        page.goto(known + path)
        expect(page.get_by_role("status")).to_contain_text("framewire dashboard --rendezvous")
