"""Messages of the library speak to people who write Python; the command line translates."""

import ast
import re
from pathlib import Path

import pytest

import rfmdp
from rfmdp.cli.terminal import OPTIONS, as_options

PACKAGE = Path(rfmdp.__file__).parent
LIBRARY = [
    path for path in sorted(PACKAGE.rglob("*.py"))
    if "cli" not in path.parts and path.name != "__main__.py"
]  # fmt: skip
OPTION = re.compile(r"(?<![\w-])--[a-z]")
BOTH = "on the command line"  # a message that says which words are whose


def texts(tree: ast.AST) -> list[str]:
    """Return all strings of a module that are no docstrings."""
    pages = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [node.value for node in nodes if isinstance(node.value, str) and id(node) not in pages]


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_library_advises_no_options(path):
    """`--option` means nothing to somebody who calls a function."""
    found = [text for text in texts(ast.parse(path.read_text())) if OPTION.search(text)]
    assert [text for text in found if BOTH not in text] == []


@pytest.mark.parametrize("words", OPTIONS)
def test_the_command_line_has_a_word_for_each_advice(words):
    """What the library advises by its own words is advised by an option."""
    assert OPTIONS[words] in as_options(f"Try it ({words}).")


def test_constants_are_given_by_an_option():
    """One option for all constants that are missing."""
    assert as_options('Give `constants={"N": ..., "p": ...}`.') == "Give --const N=...,p=...."


def test_columns_are_named_by_an_option():
    """Any column of a log can be named."""
    assert "--column x'=NAME" in as_options('Say (`columns={"x\'": NAME}`).')
