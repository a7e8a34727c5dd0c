"""What pages show besides programs and commands: configurations, key files, questions in SQL, pieces of Python."""

import ast
import base64
import os
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import yaml

import framewire as fw
from framewire.config import OPTIONS, load
from framewire.spark.asking import asked_of, open_lake
from framewire.spark.tables import TABLES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SECTIONS = {option.table for option in OPTIONS}
SHOWN = {"sh", "text", "python", "py", "toml", "sql", "yaml", "json", "console", "dockerfile", ""}


def blocks(*languages):
    """All blocks in a language, each named after its page and its place there."""
    for page in PAGES:
        found = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        for number, (language, text) in enumerate(found, 1):
            if language in languages:
                yield pytest.param(text, id=f"{page.name}-{number}")


@pytest.mark.parametrize("text", [*blocks("toml")])
def test_a_configuration_or_key_file_on_a_page_is_right(text, tmp_path):
    told = tomllib.loads(text)
    file = tmp_path / "shown.toml"
    if told.keys() <= SECTIONS:
        file.write_text(text)
        load(file=file, environ={})
        return
    # Keys come from variables, which a page names and never holds.
    names = re.findall(r'env = "(\w+)"', text)
    made = {name: f"base64:{base64.b64encode(os.urandom(32)).decode()}" for name in names}
    ring = fw.KeyRing.from_env("KEYS", {"KEYS": text, **made})
    assert set(told) == ring.domains


@pytest.mark.parametrize("text", [*blocks("sql")])
def test_a_question_on_a_page_can_be_asked(text, tmp_path):
    for table in TABLES:
        (tmp_path / table).mkdir()
    questions = [question for question in re.split(r"\n\s*\n", text) if question.strip()]
    assert questions
    for question in questions:
        with open_lake(str(tmp_path)) as connection:
            assert [*asked_of(connection, question).rows] == []


@pytest.mark.parametrize("text", [*blocks("py")])
def test_a_piece_of_a_program_on_a_page_is_python_and_what_it_imports_is_there(text):
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("framewire"):
            module = import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "fw":
            assert node.attr in fw.__all__


@pytest.mark.parametrize("text", [*blocks("yaml")])
def test_yaml_on_a_page_is_yaml(text):
    assert isinstance(yaml.safe_load(text), dict)


def test_there_are_no_blocks_that_no_test_knows_of():
    for page in PAGES:
        assert set(re.findall(r"^```(\w+)", page.read_text(), re.MULTILINE)) <= SHOWN, page
