"""README, docs and examples are code: they run here."""

import ast
import asyncio
import inspect
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.docs import documented

import framewire

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = {
    "hello.py": "Welcome, Ada",
    "pipeline.py": "2x be",
    "gather.py": "3 offers; the best is Bob's: 3.99",
    "script.py": "squares: 0 1 4 9 16 25 36 49 64 81",
}


def snippets(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


async def execute(code, page):
    """One page's snippets share a namespace and an event loop, as a reader would type them."""
    scope = {"__name__": "documentation"}
    for number, snippet in enumerate(code, 1):
        compiled = compile(snippet, f"{page.name} #{number}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(compiled, scope)  # noqa: S307 - our own pages
        if inspect.iscoroutine(result):
            await result


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_on_the_page_runs(page, capsys):
    code = snippets(page)
    if any(re.search(r"\b(asyncio|fw)\.run\(", snippet) for snippet in code):
        # A whole program, which brings its own event loop.
        for snippet in code:
            exec(compile(snippet, page.name, "exec"), {"__name__": "__main__"})  # noqa: S102 - our own pages
    else:
        asyncio.run(asyncio.wait_for(execute(code, page), 30))
    assert "Traceback" not in capsys.readouterr().out


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_says_what_it_should(name):
    example = [sys.executable, "-W", "error", str(ROOT / "examples" / name)]
    done = subprocess.run(example, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert EXAMPLES[name] in done.stdout


def test_every_example_is_run():
    by_others = {"demo.py"}  # tests/examples
    assert {path.name for path in (ROOT / "examples").glob("*.py")} - by_others == set(EXAMPLES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_repository_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#]+)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_command_line_takes_the_commands_on_the_page(page):
    for line in documented.shown_in(page.read_text()):
        documented.understood(line)
    for mention in documented.mentioned_in(page.read_text()):
        documented.known(mention)


@pytest.mark.parametrize(
    "line",
    [
        "framewire inspekt x",
        "framewire query 'select 1' --lak lake/",
        "framewire query 'select 1' --lake lake/ | framewire inspect --brif",
        "framewire pipeline run --lake lake/",
        "framewire node --log-format yaml",
        "framewire new a b",
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line):
    with pytest.raises((AssertionError, click.UsageError)):
        documented.understood(line)


def test_every_guarantee_has_a_test_that_exists():
    page = (ROOT / "docs" / "guarantees.md").read_text()
    promised = page.partition("## What is not promised")[0]
    for sentence in re.findall(r"^- (.*?)(?=^- |^#|\Z)", promised, re.DOTALL | re.MULTILINE):
        shown_by = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", sentence)
        assert shown_by, sentence
        for file, test in shown_by:
            assert f"def {test}" in (ROOT / "tests" / file).read_text(), (file, test)


def test_every_attack_of_the_threat_model_has_tests_that_exist():
    page = (ROOT / "docs" / "security.md").read_text()
    table = page.partition("## Attacks")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert rows
    for attack, *outcomes, shown_by in rows:
        assert len(outcomes) == 3, attack
        tests = re.findall(r"`([\w/]+\.py)::(\w+)`", shown_by)
        assert tests, attack
        for file, test in tests:
            assert f"def {test}(" in (ROOT / "tests" / file).read_text(), (file, test)


def test_every_attack_of_the_threat_model_is_tried_without_keys_in_a_signed_domain_and_with_curve():
    page = (ROOT / "docs" / "security.md").read_text()
    table = page.partition("## Attacks")[2].partition("\n## ")[0]
    rows = [re.findall(r"`([\w/]+\.py)::(\w+)`", line) for line in table.splitlines() if line.startswith("| ")][1:]
    files = sorted({f"tests/{file}" for row in rows for file, _ in row})
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(collect, capture_output=True, text=True, timeout=100, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    tried = {}
    for collected in done.stdout.splitlines():
        name, _, variant = collected.partition("[")
        tried.setdefault(name, set()).update(variant.removesuffix("]").split("-"))
    for row in rows:
        variants = set().union(*(tried[f"tests/{file}::{test}"] for file, test in row))
        assert variants >= {"open", "signed", "curve"}, row


def test_the_public_names_are_there_and_what_type_checkers_see():
    assert framewire.__all__ == sorted(framewire.__all__)
    assert all(hasattr(framewire, name) for name in framewire.__all__)
    source = ast.parse((ROOT / "src" / "framewire" / "__init__.py").read_text())
    (checked,) = [node for node in source.body if isinstance(node, ast.If)]
    seen = {alias.name for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen | {"__version__"} == set(framewire.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Broker'"):
        framewire.Broker  # noqa: B018 - looking is the test


def test_importing_framewire_imports_nothing_heavy():
    code = (
        "import framewire, sys; print([m for m in ('pyspark', 'pyarrow', 'nicegui', 'duckdb') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
