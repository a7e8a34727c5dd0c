"""Reports looked at in a real browser: dark and light, wide and narrow, and on paper."""

import pytest
from tests.browser import NARROW, WIDE
from tests.history.known import HOSTILE

from framewire.report.palette import DARK, LIGHT


def ground(page):
    """The colour behind the text, as #rrggbb."""
    told = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return "#" + "".join(f"{int(part):02x}" for part in told[4:-1].split(","))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_report_looks_right_and_asks_for_nothing(open_page, page_file, width, dark):
    looked = open_page(page_file.as_uri(), width=width, dark=dark)
    assert looked.problems == []
    assert looked.requests == [page_file.as_uri()]
    assert looked.overflow() == 0
    assert ground(looked.page) == (DARK if dark else LIGHT)["paper"]
    for picture in looked.page.locator("svg").all():
        box = picture.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 30


def test_light_and_dark_can_be_chosen_against_the_system(open_page, page_file):
    looked = open_page(page_file.as_uri(), dark=True)
    looked.page.get_by_label("Light").check()
    assert ground(looked.page) == LIGHT["paper"]
    looked.page.get_by_label("Dark").check()
    assert ground(looked.page) == DARK["paper"]
    assert looked.problems == []


def test_the_switch_can_be_used_with_the_keyboard(open_page, page_file):
    page = open_page(page_file.as_uri()).page
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert ground(page) == DARK["paper"]


def test_a_report_is_printed_in_light_even_if_it_is_read_in_dark(open_page, page_file):
    page = open_page(page_file.as_uri(), dark=True).page
    page.get_by_label("Dark").check()
    page.emulate_media(media="print")
    assert ground(page) == LIGHT["paper"]
    assert not page.get_by_role("group", name="Colours").is_visible()
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_links_lead_to_the_parts(open_page, page_file):
    page = open_page(page_file.as_uri()).page
    page.get_by_role("link", name="Signatures").click()
    assert page.url.endswith("#audit")
    assert page.locator("#audit").bounding_box()["y"] < 900


@pytest.mark.parametrize("width", [WIDE, NARROW], ids=["wide", "narrow"])
def test_hostile_text_is_shown_as_text(open_page, hostile_file, width):
    looked = open_page(hostile_file.as_uri(), width=width)
    assert looked.problems == []
    assert looked.requests == [hostile_file.as_uri()]
    assert looked.overflow() == 0
    assert looked.page.locator("script, img").count() == 0
    assert looked.page.get_by_role("heading", level=1).inner_text() == "<script>alert(0)</script>"
    assert HOSTILE[:25] in looked.page.locator("#dead").inner_text()


def test_even_markup_that_got_in_could_do_nothing(open_page, page_file, tmp_path):
    """The policy of the page is a second wall, behind the escaping of all text."""
    text = page_file.read_text(encoding="utf-8")
    evil = (
        "<script>document.title = 'owned'</script><img src='https://example.org/x.png' onerror='document.title=1'>"
    )
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace("<h1>", evil + "<h1>"), encoding="utf-8")
    looked = open_page(broken.as_uri())
    assert looked.page.title() == "Three hours of a shop"
    assert any("Content Security Policy" in problem for problem in looked.problems)
