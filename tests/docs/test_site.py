"""The documentation as a site: built as CI builds it, every warning an error, and looked at as a reader would."""

import re
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import click
import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from tests.docs import documented

import framewire as fw
from framewire.operation.exits import Exit

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "errors": "framewire.errors",
    "testing": "framewire.testing",
    "security": "framewire.security",
    "wire": "framewire.wire",
    "capture": "framewire.capture",
    "spark": "framewire.spark",
}
ELSEWHERE = {"Capture", "KeyRing", "DomainKey", "Curve", *import_module("framewire.errors").__all__, "__version__"}
"""Names of framewire that are told of on the pages of the packages that they come from."""


class Page(HTMLParser):
    """What a browser would fetch to show a page, where its links lead, and which places it has."""

    def __init__(self, path):
        super().__init__()
        self.fetched, self.places = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        self.places.add(told.get("id"))
        if tag in ("script", "img", "iframe", "source"):
            self.fetched.append(told.get("src") or "")
        if tag == "link" and told.get("rel") != "canonical":
            self.fetched.append(told.get("href") or "")


def test_nothing_is_fetched_from_anywhere_else(site):
    pages = [*site.rglob("*.html")]
    assert len(pages) > 20
    for page in pages:
        assert not [source for source in Page(page).fetched if "//" in source], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"@import|url\(['\"]?(https?:)?//", sheet.read_text()), sheet


def test_the_search_knows_the_pages(site):
    index = (site / "search" / "search_index.json").read_text()
    assert '"location":"guarantees.html' in index
    assert "framewire pipeline run" in index


def test_the_command_line_reference_has_every_command_and_its_options(site):
    text = (site / "cli.html").read_text()
    places = Page(site / "cli.html").places
    for path, command in documented.every_command():
        assert path == ("framewire",) or "-".join(path) in places, path
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.opts[-1] in text, (path, option.opts)


def test_the_command_line_reference_has_every_status(site):
    text = (site / "cli.html").read_text()
    for status in Exit:
        assert re.search(rf"<td>{status.value}</td>\s*<td>{re.escape(status.meaning)}</td>", text), status


@pytest.mark.parametrize("page", PACKAGES)
def test_the_api_reference_has_every_public_name(site, page):
    places = Page(site / "api" / f"{page}.html").places
    package = import_module(PACKAGES[page])
    missing = [name for name in package.__all__ if not any((each or "").endswith(f".{name}") for each in places)]
    assert missing in ([], ["layout"])  # the tables of the formats are a module, and wire.md is about them


def test_the_api_reference_has_every_name_of_framewire_itself(site):
    places = Page(site / "api" / "framewire.html").places
    for name in set(fw.__all__) - ELSEWHERE:
        assert f"framewire.{name}" in places, name


def configured(tmp_path, nav, **pages):
    """Our settings, and pages that are not ours."""
    (tmp_path / "docs").mkdir(exist_ok=True)
    for name, text in pages.items():
        (tmp_path / "docs" / f"{name}.md").write_text(text)
    changed = {"docs_dir": str(tmp_path / "docs"), "site_dir": str(tmp_path / "site"), "nav": nav}
    return load_config(str(ROOT / "mkdocs.yml"), strict=True, plugins=[], hooks=[], extra_css=[], **changed)


@pytest.mark.parametrize(
    "wrong", ["[x](nowhere.md)", "[x](other.md#nowhere)", "[x](#nowhere)", "[x](/other.md)", "![x](nowhere.svg)"]
)
def test_a_link_that_leads_nowhere_is_an_error(tmp_path, wrong):
    nav = ["index.md", "other.md"]
    build(configured(tmp_path, nav, index="# One\n[x](other.md#other)\n", other="# Other\n"))
    with pytest.raises(Abort):
        build(configured(tmp_path, nav, index=f"# One\n{wrong}\n"))


def test_a_page_that_nobody_finds_is_an_error(tmp_path):
    build(configured(tmp_path, ["index.md", "lost.md"], index="# One\n", lost="# Lost\n"))
    with pytest.raises(Abort):
        build(configured(tmp_path, ["index.md"]))


def unmarked(text):
    """Lines that begin a list or a table right below a paragraph: GitHub shows them as one, the site does not."""
    fenced, above = False, ""
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith("```")
        paragraph = above.strip() and not re.match(r"[-*+|#]|\d+\. | ", above)
        if not fenced and paragraph and re.match(r"[-*+] |\d+\. |\|", line):
            yield line
        above = line


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_lists_and_tables_are_set_apart_so_that_they_are_shown_as_such(page):
    assert not [*unmarked(page.read_text())]
