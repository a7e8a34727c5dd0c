"""docs/wire-statements.md: every statement has code and tests that exist, and no frame of a format is left out."""

import ast
import re
from pathlib import Path

import pytest

from framewire.wire.layout import V1, V5

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "wire-statements.md").read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))


def rows(text):
    found = [line.strip("|").split("|") for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    return [[cell.strip() for cell in row] for row in found]


STATEMENTS = rows(PAGE)


def names(path):
    """Every function, class and constant of a module, those of classes after the name of the class."""

    def named(body, prefix=""):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield prefix + node.name
                if isinstance(node, ast.ClassDef):
                    yield from named(node.body, f"{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))

    return set(named(ast.parse(path.read_text()).body))


def references(cell):
    found = re.findall(r"`([\w/]+\.py)(?:::([\w.]+))?`", cell)
    assert found, cell
    assert len(found) == cell.count("`") // 2, f"not all of it is a reference: {cell}"
    return found


def test_the_statements_are_numbered_and_told_once():
    assert [int(row[0]) for row in STATEMENTS] == list(range(1, len(STATEMENTS) + 1))
    assert len({row[1] for row in STATEMENTS}) == len(STATEMENTS) >= 42
    assert sum(len(rows(body)) for body in SECTIONS.values()) == len(STATEMENTS)


@pytest.mark.parametrize("row", STATEMENTS, ids=lambda row: row[0])
def test_the_code_and_the_tests_of_a_statement_exist(row):
    _, statement, code, shown_by = row
    for file, name in references(code):
        assert name in names(ROOT / "src" / "framewire" / file), (statement, file, name)
    for file, name in references(shown_by):
        found = names(ROOT / "tests" / file)
        assert name in found if name else any(each.startswith("test_") for each in found), (statement, file, name)
        assert not name or name.startswith("test_")


@pytest.mark.parametrize(("layout", "title"), [(V5, "V5 and V4"), (V1, "V1")], ids=["V5 and V4", "V1"])
def test_every_frame_of_a_format_is_in_a_statement(layout, title):
    told = "".join(
        row[1] for name, body in SECTIONS.items() if name.partition(":")[0] == title for row in rows(body)
    )
    assert set(map(int, re.findall(r"n-(\d+)", told))) == {field.frame for field in layout.fields}
