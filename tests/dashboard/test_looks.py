"""The style sheet: outcomes have the colours of the report, and text can be read on what it stands on."""

import re
from pathlib import Path

import pytest

import framewire.dashboard
from framewire.report import DARK, LIGHT

SHEET = (Path(framewire.dashboard.__file__).parent / "browser" / "style.css").read_text()


def colours(selector):
    block = SHEET[SHEET.index(selector) :]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block[: block.index("}")]))


THEMES = {":root {": LIGHT, ':root[data-theme="dark"] {': DARK, ':root:not([data-theme="light"]) {': DARK}


@pytest.mark.parametrize("selector", THEMES)
def test_outcomes_and_bars_have_the_colours_of_the_report(selector):
    found = colours(selector)
    for name in ("completed", "failed", "expired", "dead", "open", "calm", "way", "wait", "work", "accent"):
        assert found[name] == THEMES[selector][name], name


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("selector", THEMES)
@pytest.mark.parametrize("ground", ["page", "panel", "raised"])
def test_text_stands_out_enough_to_be_read(selector, ground):
    found = colours(selector)
    for name in ("ink", "soft", "accent", "good", "bad", "warn", "dead-text"):
        light, dark = sorted((luminance(found[name]), luminance(found[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, ground)
