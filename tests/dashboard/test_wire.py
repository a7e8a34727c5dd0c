"""The wire page: what is pasted, frame by frame."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.dashboard.looking import rows

pytestmark = pytest.mark.timeout(120)
VECTORS = Path(__file__).parents[1] / "data" / "vectors"


def paste(page, known, content):
    page.goto(f"{known}/wire")
    page.get_by_label("JSON lines").fill(content)
    page.get_by_role("button", name="Show the frames").click()


def vector(name):
    return next(line for line in (VECTORS / "v5.jsonl").read_text().splitlines() if f'"{name}"' in line)


def test_a_message_is_shown_frame_by_frame_from_the_end(page, known):
    paste(page, known, vector("body_simple"))
    article = page.get_by_role("article", name="Message body_simple")
    expect(article).to_contain_text("V5 · TEST.MESSAGE v1 · unicast")
    found = rows(page, "Frames of body_simple, from the end")
    assert [row[1] for row in found[:2]] == ["n-1", "n-2"]
    assert "→" in [row[0] for row in found]
    assert any(row[2] == "identity" and row[5] == "TEST.MESSAGE" for row in found)
    assert any(row[2].startswith("body") and row[5] == "hello" for row in found)


def test_a_malformed_frame_is_marked(page, known):
    frames = json.loads(vector("body_simple"))["frames"]
    paste(page, known, json.dumps([*frames[:-5], "0102030405", *frames[-4:]]))
    expect(page.get_by_text("malformed").first).to_be_visible()
    wrong = [row for row in rows(page, "Frames of line 1, from the end") if row[0] == "✗"]
    assert [row[1] for row in wrong] == ["n-5"]


def test_several_messages_and_what_is_none_are_told_apart(page, known):
    paste(page, known, vector("body_simple") + "\nbroken\n" + vector("default_empty"))
    expect(page.get_by_role("article")).to_have_count(2)
    expect(page.get_by_role("alert")).to_contain_text("line 2 holds no message")


def test_control_and_enter_show_the_frames_too(page, known):
    page.goto(f"{known}/wire")
    page.get_by_label("JSON lines").fill(vector("body_simple"))
    page.get_by_label("JSON lines").press("Control+Enter")
    expect(page.get_by_role("article")).to_be_visible()


def test_nothing_pasted_says_what_can_be(page, known):
    paste(page, known, "")
    expect(page.get_by_role("status")).to_contain_text("a frame a line")


def test_a_message_is_picked_from_a_flow_of_the_lake(page, known):
    page.goto(f"{known}/wire")
    page.get_by_role("table", name="Newest flows").get_by_role("link").first.click()
    table = page.get_by_role("table", name="Messages of the flow")
    expect(table.locator("tbody tr")).to_have_count(3)
    table.get_by_role("link").nth(1).click()
    page.wait_for_url("**/wire?flow=*&row=1")
    expect(page.get_by_role("article", name="Message stock.reserve v1")).to_contain_text("4 frames")


def test_without_bodies_a_pasted_body_is_hidden_too(page, secretive):
    paste(page, secretive, vector("body_simple"))
    expect(page.get_by_text("--no-bodies").first).to_be_visible()
    expect(page.get_by_role("article").get_by_text("hello", exact=True)).to_have_count(0)
