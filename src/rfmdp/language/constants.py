"""Values of constants, from the text and from the user."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.language.ast import Constant, Expr, Type, type_of_value
from rfmdp.language.evaluate import Value, evaluate
from rfmdp.language.expand import dependencies, dependency_order, references, substitute
from rfmdp.language.source import NOWHERE, PrismSourceError, SourceText
from rfmdp.language.types import can_assign, require, type_of

Constants: TypeAlias = Mapping[str, bool | int | float | str]


def constant_values(
    constants: Sequence[Constant],
    inputs: Constants,
    names: Mapping[str, Type],
    formulas: Mapping[str, Expr],
    source: SourceText,
    outer: Mapping[str, Value] | None = None,
) -> dict[str, Value]:
    """Return the value of every constant.

    inputs : of the user, for constants without a value; a string is read as an expression
    names : types of all names, so that an error tells a variable from an unknown name
    formulas : expanded ones that definitions may use
    outer : values that are known already (of the model, for constants of a property file)
    """
    missing = [c for c in constants if c.value is None and c.name not in inputs]
    if missing:
        listed = ", ".join(constant.name for constant in missing)
        reason = f"every constant must have a value, found none for {listed}; give "
        reason += constants_hint([constant.name for constant in missing])
        raise source.error(missing[0].position, reason)
    by_name = {constant.name: constant for constant in constants}
    texts = {c.name: substitute(c.value, formulas) for c in constants if c.value is not None}
    graph = {name: references(texts[name]) if name in texts else set() for name in by_name}
    places = {constant.name: constant.position for constant in constants}
    values: dict[str, Value] = dict(outer or {})
    for name in dependency_order(graph, "constant", places, source):
        constant = by_name[name]
        if name in inputs:
            values[name] = _typed_value(constant, inputs[name], source)
            continue
        what = f"constant '{name}'"
        require(texts[name], constant.type, type_of(texts[name], names, source), what, source)
        values[name] = _promoted(evaluate(texts[name], values, source), constant.type)
    return {name: values[name] for name in by_name}


def constants_hint(names: Iterable[str]) -> str:
    """Return how to give values for constants in Python.

    >>> constants_hint(["N", "p"])
    '`constants={"N": ..., "p": ...}`'
    """
    listed = ", ".join(f'"{name}": ...' for name in names)
    return f"`constants={{{listed}}}`"


def needed(
    texts: Iterable[Expr], constants: Sequence[Constant], formulas: Mapping[str, Expr]
) -> set[str]:
    """Return the constants that some texts use, directly or by way of others."""
    values = {constant.name: constant.value for constant in constants}

    def used(text: Expr | None) -> set[str]:
        return set() if text is None else references(substitute(text, formulas)) & values.keys()

    first = [name for text in texts for name in used(text)]
    return set(dependencies(first, lambda name: used(values[name])))


def plain_values(constants: Constants | None) -> dict[str, bool | int | float | str]:
    """Return values of constants by name; NumPy's numbers become Python's."""
    if constants is None:
        return {}
    if not isinstance(constants, Mapping):
        raise ModelError(
            f'constants: must be a mapping such as {{"N": 16}}, got {constants!r:.60}.'
        )
    values = {}
    for name, value in constants.items():
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(plain, bool | int | float | str):
            raise ModelError(
                f"constants: {name} must be a number, a truth value or a text, got {value!r:.60}."
            )
        values[name] = plain
    return values


def check_inputs(
    inputs: Constants,
    constants: Sequence[Constant],
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
            open_names = [c.name for c in constants if c.value is None]
            listed = ", ".join(open_names) if open_names else "none"
            reason = (
                f"constant '{name}' is given a value, but the text has no such constant; "
                f"constants without a value: {listed}"
            )
            raise source.error(NOWHERE, reason)


def _typed_value(constant: Constant, entry: bool | int | float | str, source: SourceText) -> Value:
    value = _read(constant, entry, source) if isinstance(entry, str) else entry
    if not can_assign(constant.type, type_of_value(value)):
        reason = (
            f"constant '{constant.name}' must be of type {constant.type.value}, "
            f"the value given is {entry}"
        )
        raise source.error(constant.position, reason)
    return _promoted(value, constant.type)


def _read(constant: Constant, text: str, source: SourceText) -> Value:
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


def _promoted(value: Value, type_: Type) -> Value:
    return float(value) if type_ is Type.DOUBLE else value
