"""What names stand for: values of constants, from the text and from the user; formulas, labels."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.language import ast as tree
from rfmdp.language.evaluate import Value, evaluate
from rfmdp.language.expand import dependency_order, references, substitute
from rfmdp.language.expressions import Expr, Literal, Type
from rfmdp.language.source import NOWHERE, Position, PrismSourceError, SourceText
from rfmdp.language.types import can_assign, require, type_of

Constants: TypeAlias = Mapping[str, bool | int | float | str]


class Definition(NamedTuple):
    """What a name stands for in a text; the value of an open constant is None."""

    kind: str  # "constant", "formula", "label" or "property"
    value: Expr | None
    position: Position
    type: Type | None = None  # of a constant


def definitions(
    kind: str, nodes: Iterable[tree.Formula | tree.LabelDefinition]
) -> dict[str, Definition]:
    """Return the definitions of formulas, or of labels."""
    sign = '"' if kind == "label" else ""
    return {f"{sign}{x.name}{sign}": Definition(kind, x.value, x.position) for x in nodes}


def constant_definitions(
    constants: Iterable[tree.Constant], inputs: Constants, source: SourceText
) -> dict[str, Definition]:
    """Return the definitions of constants; values of the user come first."""
    texts = {}
    for c in constants:
        value = _input(c, inputs[c.name], source) if c.name in inputs else c.value
        texts[c.name] = Definition("constant", value, c.position, c.type)
    return texts


def meanings(
    texts: Mapping[str, Definition],
    types: Mapping[str, Type],
    source: SourceText,
    first: Iterable[str] | None = None,
) -> dict[str, Expr]:
    """Return what names stand for, with the names inside of that replaced.

    A constant stands for a `Literal`, unless it is open or needs one that is.

    texts : definitions by name; labels and properties by their name in quotes
    types : of all names, so that an error tells a variable from an unknown name
    first : the names that matter, with all that they need; all of them by default
    """
    graph: dict[str, set[str]] = {}
    pending = [*(texts if first is None else first)]
    while pending:
        name = pending.pop()
        if name in texts and name not in graph:
            value = texts[name].value
            graph[name] = set() if value is None else references(value) & texts.keys()
            pending += graph[name]
    places = {name: (texts[name].kind, texts[name].position) for name in graph}
    open_ = {name for name in graph if texts[name].value is None}
    values: dict[str, Expr] = {}
    for name in dependency_order(graph, places, source):
        kind, value, position, type_ = texts[name]
        if value is None:
            continue
        values[name] = substitute(value, values)
        if type_ is not None:
            require(value, type_, type_of(values[name], types, source), f"{kind} '{name}'", source)
            if not references(values[name]) & open_:
                number = evaluate(values[name], {}, source)
                number = float(number) if type_ is Type.DOUBLE else number
                values[name] = Literal(number, position=position)
    return values


def require_values(
    texts: Iterable[Expr], open_: Mapping[str, Position], source: SourceText
) -> None:
    """Raise if texts use constants without a value, which are defined at some places."""
    used = {name for text in texts for name in references(text)} if open_ else set()
    missing = [name for name in open_ if name in used]
    if missing:
        reason = f"every constant must have a value, found none for {', '.join(missing)}"
        raise source.error(open_[missing[0]], f"{reason}; give {constants_hint(missing)}")


def constants_hint(names: Iterable[str]) -> str:
    """Return how to give values for constants in Python.

    >>> constants_hint(["N", "p"])
    '`constants={"N": ..., "p": ...}`'
    """
    listed = ", ".join(f'"{name}": ...' for name in names)
    return f"`constants={{{listed}}}`"


def plain_values(constants: Constants | None) -> dict[str, bool | int | float | str]:
    """Return values of constants by name; NumPy's numbers become Python's."""
    if not isinstance(constants, Mapping | None):
        raise ModelError(
            f'constants: must be a mapping such as {{"N": 16}}, got {constants!r:.60}.'
        )
    values = {}
    for name, value in (constants or {}).items():
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(plain, bool | int | float | str):
            raise ModelError(
                f"constants: {name} must be a number, a truth value or a text, got {value!r:.60}."
            )
        values[name] = plain
    return values


def check_inputs(
    inputs: Constants,
    constants: Iterable[tree.Constant],
    also_known: Collection[str],
    source: SourceText,
) -> None:
    """Raise if a value is given for something that is no constant or that has a value."""
    by_name = {constant.name: constant for constant in constants}
    for name in inputs:
        constant = by_name.get(name)
        if constant is not None and constant.value is not None:
            reason = (
                f"constant '{name}' has a value in the text and must not be given another; "
                "remove that value there to leave it open"
            )
            raise source.error(constant.position, reason)
        if constant is None and name not in also_known:
            listed = ", ".join(c.name for c in by_name.values() if c.value is None) or "none"
            reason = (
                f"constant '{name}' is given a value, but the text has no such constant; "
                f"constants without a value: {listed}"
            )
            raise source.error(NOWHERE, reason)


def _input(constant: tree.Constant, entry: bool | int | float | str, source: SourceText) -> Literal:
    value = _read(constant, entry, source) if isinstance(entry, str) else entry
    if not can_assign(constant.type, Literal(value).type):
        reason = (
            f"constant '{constant.name}' must be of type {constant.type.value}, "
            f"the value given is {entry}"
        )
        raise source.error(constant.position, reason)
    return Literal(float(value) if constant.type is Type.DOUBLE else value)


def _read(constant: tree.Constant, text: str, source: SourceText) -> Value:
    # imported here: only texts need the parser
    from rfmdp.language.parse import parse_expression

    if text.strip() in ("inf", "Infinity"):
        return math.inf
    named = SourceText(text, f"value of constant '{constant.name}'")
    try:
        expr = parse_expression(named.text, named.filename)
        type_of(expr, {}, named)
        return evaluate(expr, {}, named)
    except PrismSourceError as error:
        reason = f"the value given for '{constant.name}' must be a number or a truth value"
        why = error.reason
        if constant.type is Type.INT:  # a double would not do
            why = why.partition("; write")[0]
        raise source.error(constant.position, f"{reason}, found '{text}': {why}") from None
