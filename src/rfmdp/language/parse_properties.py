"""Text of PRISM properties to their tree.

A property that rfmdp does not support, or cannot read, does not make a file unreadable: it becomes
an `Unreadable` node, and `require_supported` says so when that property is used.
"""

from __future__ import annotations

import re

from rfmdp.language import ast
from rfmdp.language.ast import Binary, Call, Ite, Label, Literal, Name, Node, Unary
from rfmdp.language.expressions import nodes
from rfmdp.language.parse import all_of, parse_statements
from rfmdp.language.source import Position, PrismSourceError, SourceText

PLAIN = (Literal, Name, Label, Unary, Binary, Ite, Call)
DEFINITION = re.compile(r"(\s|//.*\n)*(const|label|formula|prob|rate)\b")
PIECES = re.compile(r'"[^"\n]*"|//[^\n]*|\n|[^"/\n]|/|"')  # names, comments and single characters


def parse_property_file(text: str, filename: str = "<properties>") -> ast.PropertyFile:
    """Return the tree of a property file; properties end with ';' or where the next begins.

    Single properties that cannot be read, or are not supported, raise when they are checked.

    >>> file = parse_property_file('"a": P=? [ F x=1 ]; Pmaxmin=? [ G !"bad" ]')
    >>> [prop.name for prop in file.properties]
    ['a', None]
    """
    source = SourceText(text.removeprefix("\ufeff"), filename)
    items, unreadable = _readable(source)
    properties = (*all_of(items, ast.PropertyDefinition), *unreadable)
    constants, formulas = all_of(items, ast.Constant), all_of(items, ast.Formula)
    labels = all_of(items, ast.LabelDefinition)
    values = [*(c.value for c in constants), *(f.value for f in formulas)]
    for value in (*values, *(label.value for label in labels)):
        for node in nodes(value) if value is not None else ():
            if not isinstance(node, PLAIN):
                reason = "expected an expression without P, R or path operators"
                raise source.error(node.position, reason)
    in_order = tuple(sorted(properties, key=lambda prop: prop.position))
    return ast.PropertyFile(in_order, constants, formulas, labels, source)


def _readable(source: SourceText) -> tuple[tuple[Node, ...], list[ast.PropertyDefinition]]:
    """Return what can be read of a file, and the properties that cannot."""
    text = source.text
    unreadable: list[ast.PropertyDefinition] = []
    errors: list[PrismSourceError] = []
    while True:
        try:
            items = parse_statements(SourceText(text, source.filename))
        except PrismSourceError as error:
            begin, end = _statement(text, error)
            statement = text[begin:end]
            if not statement.strip() or DEFINITION.match(statement):
                raise
            errors.append(error)
            unreadable.append(_unreadable(source, begin, statement, error))
            text = text[:begin] + re.sub(r"[^\n]", " ", statement) + text[end:]
            continue
        if len(errors) > 1 and not all_of(items, ast.PropertyDefinition):
            raise errors[0]  # this is no file of properties
        return items, unreadable


def _statement(text: str, error: PrismSourceError) -> tuple[int, int]:
    """Return where the statement begins and ends that an error is in, or that it follows.

    A statement ends with a semicolon, or at the end of a line outside of all brackets.
    """
    before = text.split("\n")[: error.line - 1]
    place = sum(len(line) + 1 for line in before) + error.column - 1
    begin = end = depth = 0
    span = (0, 0)
    for piece in PIECES.finditer(text):
        end = piece.end()
        sign = piece[0]
        depth = max(depth + (sign in "([{") - (sign in ")]}"), 0)
        if sign == ";" or (sign == "\n" and depth == 0):
            span = (begin, end) if text[begin:end].strip() else span
            begin = end
            depth = 0
            if end > place and span[1] > span[0]:
                return span
    return (begin, len(text)) if text[begin:].strip() else span


def _unreadable(
    source: SourceText, begin: int, statement: str, error: PrismSourceError
) -> ast.PropertyDefinition:
    """Return a property that cannot be read, with its name if it has one."""
    words = " ".join(re.sub(r"//[^\n]*", "", statement).split()).removesuffix(";").rstrip()
    named = re.match(r'"([^"]*)"\s*:\s*', words)
    name, rest = (named[1], words[named.end() :]) if named else (None, words)
    begin += len(statement) - len(statement.lstrip())
    above = source.text[:begin].split("\n")
    place = Position(error.line, error.column)
    return ast.PropertyDefinition(
        name,
        ast.Unreadable(rest, error.reason, position=place),
        position=Position(len(above), len(above[-1]) + 1),
    )
