"""Pages that are left while they are made, and pages that cannot be made."""

import pytest
from playwright.sync_api import expect
from tests.dashboard.looking import complaints, faulty
from tests.node.running import until

pytestmark = pytest.mark.timeout(120)
PAGES = (
    "/flows",
    "/topology",
    "/losses",
    "/topology?live=1&node=shop",
    "/topology?live=1&sender=shop&receiver=stock",
)


@pytest.fixture
def held(tmp_path):
    """A dashboard whose lake does not answer yet; yields its address, its process and where to let it answer."""
    with faulty("held", tmp_path) as (address, running):
        yield address, running, tmp_path


@pytest.mark.parametrize("path", PAGES)
def test_a_page_that_is_left_while_it_is_made_leaves_nothing_behind(browser, held, path):
    address, running, gate = held
    window = browser.new_context()
    page = window.new_page()
    page.goto(address + path)
    expect(page.locator(".fw-loading").first).to_be_visible()
    page.goto("about:blank")
    (gate / "left").touch()
    until((gate / "answered").exists)
    (gate / "open").touch()
    page.goto(f"{address}/flows")
    expect(page.get_by_role("table", name="Flows")).to_be_visible()
    window.close()
    assert not complaints(running)


@pytest.fixture
def broken(tmp_path):
    with faulty("broken", tmp_path) as (address, running):
        yield address, running


def test_a_page_that_cannot_be_made_says_whose_fault_it_is_and_leads_on(open_page, broken):
    address, running = broken
    page = open_page(f"{address}/cluster").page
    expect(page.get_by_role("heading", level=1)).to_have_text("This page could not be made")
    told = page.get_by_role("alert")
    expect(told).to_contain_text("RuntimeError")
    expect(told).to_contain_text("<b>a fault</b> that a test has put here")
    expect(told).to_contain_text("Please report it")
    assert page.request.get(f"{address}/cluster").status == 500
    assert "a fault</b> that a test has put here" in running.said
    page.get_by_role("link", name="Flows", exact=True).click()
    expect(page.get_by_role("table", name="Flows")).to_be_visible()
