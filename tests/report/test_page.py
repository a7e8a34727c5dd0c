"""What a report says, and that it is one file of a bounded size."""

import re
from html import unescape

import pytest
from tests.history.known import HOSTILE, flow_name

from framewire.history import History
from framewire.report import gathered, report_page
from framewire.report.findings import findings

FIVE_MB = 5_000_000


@pytest.fixture(scope="module")
def text(page_file):
    return page_file.read_text(encoding="utf-8")


def headings(text):
    return re.findall(r"<h2[^>]*>([^<]+)</h2>", text)


def test_a_report_has_all_its_parts(text):
    assert headings(text) == [
        "Topology", "Latency", "Flows", "Slowest flows", "Flows that went wrong", "Handlers", "Losses",
        "Dead letters", "Quarantine", "Signatures", "Versions",
    ]  # fmt: skip


def test_the_top_tells_title_time_and_figures(text):
    assert "<h1>Three hours of a shop</h1>" in text
    assert "1 March 2026, 08:05:00 to 10:50:00 UTC · 2 h 45 min · 3 nodes" in text
    figures = dict(re.findall(r'<dt>([^<]+)</dt><dd class="big">([^<]+)</dd>', text))
    assert figures == {
        "Flows": "12",
        "Completed": "66.7 %",
        "Went wrong": "3",
        "Half of them within": "13.0 ms",
        "Messages recorded": "43",
        "Lost": "1",
        "Dead letters": "1",
        "Wrong signatures": "1",
    }


def test_what_stands_out_is_said_first(facts):
    told = findings(facts)
    assert [finding.wrong for finding in told] == sorted((finding.wrong for finding in told), reverse=True)
    said = " ".join(finding.text for finding in told)
    assert "3 flows of 12 (25.0 %) went wrong: 1 failed, 1 expired, 1 dead." in said
    assert "1 of 22 messages between nodes was lost, from stock to shop (1); that is 4.5 %." in said
    assert "stock.reserve v1 on stock most often: 1 of 12" in said
    assert "1 recorded message has a wrong signature" in said
    assert "1 recorded row is no message (too_few_frames)." in said
    assert "20.0 % of what was recorded is in an older wire format" in said


def test_each_flow_that_went_wrong_has_its_waterfall(text):
    wrong = text[text.index('id="wrong"') : text.index('id="handlers"')]
    assert wrong.count("<article") == wrong.count("<svg") == 3
    for place in ((1, 3), (2, 1), (2, 2)):
        assert flow_name(*place) in wrong
    assert "shop.OutOfStock: nothing left of it" in wrong


def test_every_picture_has_a_title_and_a_description(text):
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) >= 6
    for picture in pictures:
        labelled = re.search(r'aria-labelledby="([^"]+)"', picture)[1].split()
        assert len(labelled) == 2
        assert all(f'id="{name}"' in picture for name in labelled)


def test_no_id_occurs_twice(text):
    # Charts that are drawn once on a page share the ids of their patterns with no other.
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_every_table_has_a_caption(text):
    assert text.count("<table>") == text.count("<caption>") > 8


def test_nothing_is_fetched_and_nothing_runs(text):
    assert "<script" not in text
    assert "default-src 'none'" in unescape(text)
    assert not re.search(r'(?:src|href|action)="(?!#)', text)
    assert re.findall(r"https?://[^\s\"<]+", text) == ["http://www.w3.org/2000/svg"] * text.count("<svg")


def test_a_hostile_lake_makes_no_large_report_and_no_markup(hostile_file):
    text = hostile_file.read_text(encoding="utf-8")
    assert len(text.encode()) < FIVE_MB / 10
    assert "<script" not in text
    assert "<img" not in text
    assert "\u202e" not in text
    assert HOSTILE[:10] not in text


def test_a_report_of_some_time_tells_only_of_it(reported_lake):
    with History(str(reported_lake)) as history:
        period = history.period()
        window = type(period)(period.since, history.flow(flow_name(1, 0)).started_at)
        text = report_page(gathered(history, window), title="An hour")
    assert "No flow failed, expired or died." in text
    assert "Nothing was lost." in text


def test_a_report_on_an_empty_lake_says_that_there_is_nothing(tmp_path):
    (tmp_path / "lake" / "messages").mkdir(parents=True)
    with History(str(tmp_path / "lake")) as history:
        text = report_page(gathered(history), title="Nothing")
    assert "Nothing is known of this time." in text
    assert "No message went from one node to another." in text
