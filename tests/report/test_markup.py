"""Elements, and that text stays text."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framewire.report.markup import el, written


class Seen(HTMLParser):
    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.text = [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))

    def handle_data(self, data):
        self.text += data


@given(st.text(), st.text())
def test_whatever_is_put_in_as_text_comes_out_as_text(text, value):
    seen = Seen(written(el("p", text, title=value)))
    assert [tag for tag, _ in seen.tags] == ["p"]
    assert [name for name, _ in seen.tags[0][1]] == ["title"]
    assert seen.text.isprintable()


def test_text_is_shown_as_it_is():
    assert Seen(written(el("p", "<b>&amp;\"'"))).text == "<b>&amp;\"'"


def test_what_cannot_be_seen_is_told_by_its_number():
    assert written(el("p", "a\u202eb\x00")) == "<p>a\\u202eb\\x00</p>"


def test_children_may_be_missing_or_lists_of_lists():
    assert written(el("p", None, ["a", [el("b", "c")]], "d")) == "<p>a<b>c</b>d</p>"


def test_attributes_are_named_as_in_html():
    made = el("label", class_="a", aria_label="b", hidden=True, title=None, checked=False, width=1.50)
    assert written(made) == '<label class="a" aria-label="b" hidden width="1.5"></label>'


@pytest.mark.parametrize("tag", ["script", "style", "iframe", "object", "p onclick=x", ""])
def test_elements_that_could_act_are_refused(tag):
    with pytest.raises(ValueError, match="is no element of a report"):
        el(tag)


@pytest.mark.parametrize("attribute", ["onclick", "onLoad", "style", "a b"])
def test_attributes_that_could_act_are_refused(attribute):
    with pytest.raises(ValueError, match="is no attribute of a report"):
        el("p", **{attribute: "x"})


@pytest.mark.parametrize(
    "target", ["https://example.org", "javascript:alert(1)", "//example.org", "data:text/html,x"]
)
def test_nothing_leads_out_of_a_report(target):
    with pytest.raises(ValueError, match="leads nowhere but to its own parts"):
        el("a", "x", href=target)
