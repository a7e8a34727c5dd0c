"""docs/security.md: what it says has tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_sentence_with_a_dash_has_a_test_that_exists():
    page = (ROOT / "docs" / "security.md").read_text().partition("## Domains")[2]
    sentences = re.findall(r"^- (.*?)(?=^- |^#|^$|\Z)", page, re.DOTALL | re.MULTILINE)
    assert len(sentences) > 20
    for sentence in sentences:
        shown_by = re.findall(r"`([\w/]+\.py)::(\w+)`", sentence)
        assert shown_by, sentence
        for file, test in shown_by:
            assert f"def {test}(" in (ROOT / "tests" / file).read_text(), (file, test)
