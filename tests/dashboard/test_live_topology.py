"""The live topology in a browser: what is sent is what is shown, and so is what is dropped, and who is gone."""

import re
import time

import pytest
from playwright.sync_api import expect
from tests.cluster.clustering import rendezvous
from tests.dashboard.looking import QUICK, dashboard, killed, shops
from tests.history.known import make_known_lake
from tests.operation.programs import client
from tests.operation.shop import Order, Ordered

import framewire as fw

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two nodes named as in the known lake, and a dashboard; a client named as the third makes the traffic."""
    directory = tmp_path_factory.mktemp("cluster")
    make_known_lake(directory / "lake")
    with (
        rendezvous() as server,
        shops(directory, server, "stock", "till") as nodes,
        dashboard(directory, f"--rendezvous={server.uri}", *QUICK, "--lake=lake") as address,
    ):
        yield server, nodes, f"{address}/topology?live=1"


@pytest.fixture(scope="module")
def shop(cluster):
    with client(cluster[0], identity="shop", max_message_bytes=8192) as hub:
        yield hub


def way(page, sender, receiver):
    return page.get_by_role("link", name=re.compile(f"^{sender} → {receiver}: "))


def sent(hub, receiver):
    told = hub.stats().traffic.get(receiver)
    return 0 if told is None else told.sent


def until_shown(page, ask, seen):
    """Ask again and again, for what is shown of a second is gone in the next; until it is there."""
    deadline = time.monotonic() + 60
    while not seen():
        assert time.monotonic() < deadline, page.locator(".fw-graph").aria_snapshot()
        ask()


def test_the_traffic_that_is_shown_is_what_was_sent(page, cluster, shop):
    page.goto(cluster[2])
    expect(page.get_by_role("link", name=re.compile("^stock: handles"))).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("^shop: handles"))).to_be_visible()
    before = sent(shop, "stock")
    for number in range(40):
        shop.ask(Order(f"tea {number}"), Ordered, to_node=b"stock")
    assert sent(shop, "stock") == before + 40
    arrow = way(page, "shop", "stock")
    expect(arrow).to_have_accessible_name(re.compile(f" a second, {before + 40:,} sent in all, 0 dropped"))
    expect(way(page, "stock", "shop")).to_have_count(1)
    expect(way(page, "shop", "till")).to_have_count(0)


def test_what_is_sent_a_second_is_shown_while_it_is(page, cluster, shop):
    page.goto(cluster[2])
    arrow = way(page, "shop", "stock")
    until_shown(
        page,
        lambda: shop.ask(Order("tea"), Ordered, to_node=b"stock"),
        lambda: arrow.count() and re.search(r": [1-9][0-9.,]* a second", arrow.get_attribute("aria-label")),
    )
    expect(arrow).to_have_accessible_name(re.compile(": 0.0 a second, "))


def test_what_is_told_of_an_arrow_that_is_pointed_at_is_what_is_sent_meanwhile(page, cluster, shop):
    page.goto(cluster[2])
    shop.ask(Order("tea"), Ordered, to_node=b"stock")
    way(page, "shop", "stock").focus()
    told = page.locator(".fw-graph .said")
    expect(told).to_contain_text(f"{sent(shop, 'stock'):,} sent in all")
    shop.ask(Order("tea"), Ordered, to_node=b"stock")
    expect(told).to_contain_text(f"{sent(shop, 'stock'):,} sent in all")


def test_more_traffic_makes_a_wider_arrow(page, cluster, shop):
    page.goto(cluster[2])

    def ask():
        for number in range(60):
            shop.ask(Order("tea"), Ordered, to_node=b"stock" if number % 20 else b"till")

    def width(receiver, otherwise):
        line = way(page, "shop", receiver).locator(".line")
        return float(line.get_attribute("stroke-width")) if line.count() else otherwise

    until_shown(page, ask, lambda: width("stock", 0.0) > 3 * width("till", 99.0))


def test_an_arrow_opens_what_goes_along_it_now_and_what_the_lake_tells_of_it(page, cluster, shop):
    page.goto(cluster[2])
    promise = shop.start(Order("tea", 8), Ordered, to_node=b"stock", correlation_id=b"my-flow")
    arrow = way(page, "shop", "stock")
    expect(arrow).to_have_accessible_name(re.compile("1 open ask, the oldest shop.order v2 for .*; recorded: p50 "))
    expect(arrow).to_have_accessible_name(re.compile("stock.reserve v1 p50 "))
    arrow.press("Enter")
    expect(page).to_have_url(re.compile(r"live=1&sender=shop&receiver=stock$"))
    expect(page.get_by_role("heading", name="shop → stock")).to_be_visible()
    expect(page.get_by_role("group", name="Sent in all")).to_contain_text(f"{sent(shop, 'stock'):,}")
    expect(page.get_by_role("table", name="Open asks this way")).to_contain_text("my-flow")
    expect(page.get_by_role("table", name="Handlers of the receiver")).to_contain_text("shop.order v2")
    promise.result(30)
    expect(page.get_by_text("Nobody waits for an answer.")).to_be_visible()
    messages = page.get_by_role("table", name="Messages this way")
    expect(messages.get_by_role("row", name=re.compile("^shop.order v2 .* [mµ]?s$"))).to_be_visible()
    expect(page.get_by_role("table", name="Messages of this edge")).to_contain_text("stock.reserve v1")
    expect(page.get_by_role("region", name="Latency over time")).to_be_visible()
    expect(page.get_by_role("table", name="Slowest flows")).to_be_visible()


def test_a_node_opens_what_it_does_and_with_whom(page, cluster, shop):
    page.goto(cluster[2])
    shop.ask(Order("tea"), Ordered, to_node=b"stock")
    node = page.get_by_role("link", name=re.compile("^stock: handles"))
    node.press("Enter")
    expect(page.get_by_role("heading", name="stock", exact=True)).to_be_visible()
    row = page.get_by_role("table", name="Gets from").get_by_role("row", name=re.compile("^shop"))
    expect(row).to_contain_text(f"{sent(shop, 'stock'):,}")
    expect(page.get_by_role("table", name="Handlers of this node").first).to_contain_text("shop.order v2")
    page.get_by_role("table", name="Gets from").get_by_role("link", name="shop").click()
    expect(page.get_by_role("heading", name="shop → stock")).to_be_visible()


def test_an_arrow_whose_messages_are_dropped_is_marked_and_tells_how_many(page, cluster):
    page.goto(cluster[2])
    with client(cluster[0], identity="clumsy", max_message_bytes=8192) as hub:
        hub.ask(Order("tea"), Ordered, to_node=b"till")
        expect(page.get_by_role("link", name=re.compile("^clumsy: handles"))).to_be_visible()
        for _ in range(5):
            with pytest.raises(fw.BadBody):
                hub.ask(Order("x" * 9000), Ordered, to_node=b"till")
        arrow = way(page, "clumsy", "till")
        expect(arrow).to_have_accessible_name(re.compile("5 dropped"))
        expect(arrow).to_have_class(re.compile(r"\bbad\b"))


def test_a_node_that_is_killed_is_drawn_as_gone_while_one_looks(page, cluster, shop):
    shop.ask(Order("tea"), Ordered, to_node=b"till")
    page.goto(f"{cluster[2]}&node=till")
    expect(page.get_by_role("link", name=re.compile("^till: handles"))).to_be_visible()
    killed(cluster[1]["till"])
    gone = page.get_by_role("link", name=re.compile("^till: gone; last seen"))
    expect(gone).to_have_class(re.compile(r"\bgone\b"))
    expect(page.get_by_text(re.compile("till is gone; it was last seen at"))).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("^stock: handles"))).to_be_visible()
