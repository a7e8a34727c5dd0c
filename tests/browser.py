"""A real browser for tests of what people look at: Debian's Chromium, driven by Playwright.

Import ``browser`` and ``open_page`` into a folder's conftest. A browser lives as long as a module of tests: while
Playwright is there, its thread cannot run another event loop.
"""

import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Error, Page, sync_playwright

__all__ = ["Looked", "browser", "chromium", "open_page"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"]
WIDE, NARROW = 1280, 390


def chromium():
    """The path of a Chromium, installed if need be; a test without one fails, because then nobody has looked."""
    found = _found() or (_installed() and _found())
    assert found, (
        "these tests look at pages in a real browser: install Debian's chromium (apt-get install chromium)"
    )
    return found


def _found():
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def _installed():
    """Whether Debian's package could be installed; only root may."""
    packages = shutil.which("apt-get")
    if packages is None or os.geteuid() != 0:
        return False
    wanted = ["chromium", "fonts-dejavu-core"]
    for command in (["update"], ["install", "--yes", *wanted]):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run([packages, *command], env=environment, capture_output=True, check=False)
    return done.returncode == 0


@dataclass
class Looked:
    """A page, with all that went wrong on it and all that it asked for."""

    page: Page
    problems: list[str] = field(default_factory=list)
    """Errors and warnings of the console, exceptions of scripts, dialogs, and requests that failed."""
    requests: list[str] = field(default_factory=list)

    def elsewhere(self, *allowed):
        """Requests that left this machine, or went to another part of it than is allowed."""
        local = ("data", "blob", "about")
        return [
            url
            for url in self.requests
            if urlsplit(url).scheme not in local and not url.startswith(tuple(allowed) or "file:")
        ]

    def overflow(self):
        """By how many pixels the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.fixture(scope="module")
def browser():
    """A Chromium, started once for a module."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=_ARGUMENTS)
        try:
            yield started
        finally:
            started.close()


@pytest.fixture
def open_page(browser):
    """Opens addresses in windows of a width, dark or light; each window is closed with the test."""
    windows = []

    def opened(url, *, width=WIDE, height=900, dark=False, **options):
        window = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", **options
        )
        windows.append(window)
        looked = Looked(window.new_page())
        _watch(looked)
        looked.page.goto(url)
        return looked

    yield opened
    for window in windows:
        with _closing():
            window.close()


def _watch(looked):
    page = looked.page
    page.on("request", lambda request: looked.requests.append(request.url))
    page.on("requestfailed", lambda request: looked.problems.append(f"failed: {request.url} {request.failure}"))
    page.on("dialog", lambda dialog: (looked.problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("pageerror", lambda problem: looked.problems.append(f"raised: {problem}"))
    page.on(
        "console",
        lambda told: (
            looked.problems.append(f"{told.type}: {told.text}") if told.type in ("error", "warning") else None
        ),
    )


@contextmanager
def _closing():
    """A window that the browser has closed already is closed."""
    try:
        yield
    except Error as problem:
        if "closed" not in str(problem):
            raise
