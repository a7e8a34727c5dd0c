"""The built site in a real browser, served as it would be: nothing goes wrong, nothing comes from elsewhere."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["index", "tutorial", "tables", "cli", "api/framewire"])
def test_a_page_is_shown_without_trouble_and_fits(address, open_page, name, width, dark):
    looked = open_page(f"{address}{name}.html", width=width, dark=dark)
    looked.page.wait_for_load_state("networkidle")
    assert looked.page.locator("h1").is_visible()
    assert looked.problems == []
    assert looked.elsewhere(address) == []
    assert looked.overflow() == 0
    assert looked.page.locator("body").get_attribute("data-md-color-scheme") == ("slate" if dark else "default")


def test_the_search_finds_what_is_written(address, open_page):
    looked = open_page(f"{address}index.html")
    # Keys, one by one: the theme listens to keys, and text that appears without any is seen only by chance.
    looked.page.locator("input.md-search__input").press_sequentially("NoRoute")
    found = looked.page.locator(".md-search-result__item a").first
    found.wait_for()
    assert "NoRoute" in looked.page.locator(".md-search-result__list").inner_text()
    assert looked.problems == []
    assert looked.elsewhere(address) == []
