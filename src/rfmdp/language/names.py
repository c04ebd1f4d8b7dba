"""What names stand for: constants (from the text and from the user), formulas, labels, modules.

As in PRISM, formulas are expanded before modules are renamed, so that a renaming reaches the names
inside a formula. Labels are expanded later, so that a renaming does not reach into them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.language import ast as tree
from rfmdp.language.ast import Call, Definition, Expr, Label, Literal, Name, Node, Type
from rfmdp.language.evaluate import Value, evaluate
from rfmdp.language.expressions import nodes, require, rewrite, type_of, write_expression
from rfmdp.language.source import NOWHERE, PrismSourceError, SourceText

Constants: TypeAlias = Mapping[str, bool | int | float | str]
Texts: TypeAlias = Mapping[str, Definition]  # by their keys
Types: TypeAlias = Mapping[str, Type]


def with_inputs(
    definitions: Iterable[Definition], inputs: Constants, source: SourceText
) -> dict[str, Definition]:
    """Return definitions by their keys; constants have the values that the user gives."""
    texts = {d.key: d for d in definitions}
    for name, entry in inputs.items():
        if name in texts and texts[name].kind == "constant":
            value = _read(texts[name], entry, source) if isinstance(entry, str) else entry
            texts[name] = replace(texts[name], value=Literal(value, position=texts[name].position))
    return texts


def meanings(
    texts: Texts, types: Types, source: SourceText, wanted: Iterable[str] | None = None
) -> dict[str, Expr]:
    """Return what names stand for, with the names inside of that replaced.

    A constant stands for a `Literal`, unless it is open or needs one that is.

    types : of all names, so that an error tells a variable from an unknown name
    wanted : the names that matter, with all that they need; all of them by default
    """
    open_ = {name for name, text in texts.items() if text.value is None}
    values: dict[str, Expr] = {}
    for name in in_order(texts, source, wanted):
        text = texts[name]
        value, type_ = text.value, text.type
        if value is None:
            continue
        values[name] = substitute(value, values)
        if type_ is not None:
            what = f"constant '{name}' = {write_expression(value):.60}"
            require(value, type_, type_of(values[name], types, source), what, source)
            if not references(values[name]) & open_:
                number = evaluate(values[name], {}, source)
                number = float(number) if type_ is Type.DOUBLE else number
                values[name] = Literal(number, position=text.position)
    return values


def resolved(expr: Expr, texts: Texts, types: Types, source: SourceText) -> Expr:
    """Return an expression with all names replaced by what they stand for."""
    expr = substitute(expr, meanings(texts, types, source, references(expr)))
    refuse_open([expr], texts, source)
    return expr


def refuse_open(exprs: Iterable[Expr], texts: Texts, source: SourceText) -> None:
    """Raise if expressions use constants that have no value."""
    open_ = {name: text.position for name, text in texts.items() if text.value is None}
    used = {name for expr in exprs for name in references(expr)} if open_ else set()
    missing = [name for name in open_ if name in used]
    if missing:
        reason = f"every constant must have a value, found none for {', '.join(missing)}"
        hint = ", ".join(f'"{name}": ...' for name in missing)
        raise source.error(open_[missing[0]], f"{reason}; give `constants={{{hint}}}`")


def plain_values(constants: Constants | None) -> dict[str, bool | int | float | str]:
    """Return values of constants by name; NumPy's numbers become Python's."""
    if not isinstance(constants, Mapping | None):
        reason = 'must be a mapping such as {"N": 16}'
        raise ModelError(f"constants: {reason}, got {constants!r:.60}.")
    values = {}
    for name, value in (constants or {}).items():
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(plain, bool | int | float | str):
            reason = f"{name} must be a number, a truth value or a text"
            raise ModelError(f"constants: {reason}, got {value!r:.60}.")
        values[name] = plain
    return values


def texts_of(
    model: tree.ModelFile, constants: Constants | None, also_known: Collection[str]
) -> dict[str, Definition]:
    """Return the definitions of a model by their keys, with the constants that the user gives.

    Or raise if one of these is no constant, or has a value in the text.
    """
    inputs = plain_values(constants)
    places = {d.name: d.position for d in model.definitions if d.kind == "constant"}
    for name in inputs:
        if name not in model.open and (name in places or name not in also_known):
            listed = ", ".join(c for c in places if c in model.open) or "none"
            reason = f"the text has no constant '{name}' without a value; such constants: {listed}"
            raise model.source.error(places.get(name, NOWHERE), reason)
    return with_inputs(model.definitions, inputs, model.source)


def _read(constant: Definition, text: str, source: SourceText) -> Value:
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


def references(expr: Expr) -> set[str]:
    """Return the names in an expression; those of labels and properties in quotes."""
    return {_name(node) for node in nodes(expr) if isinstance(node, Name | Label)}


def _name(node: Name | Label) -> str:
    return node.name if isinstance(node, Name) else f'"{node.name}"'


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace names and labels by expressions; a leaf takes the place of what it replaces."""

    def change(node: Expr) -> Expr:
        value = values.get(_name(node)) if isinstance(node, Name | Label) else None
        if value is None:
            return node
        return value if value.children() else replace(value, position=node.position)

    return rewrite(expr, change) if values else expr


def in_order(texts: Texts, source: SourceText, wanted: Iterable[str] | None = None) -> list[str]:
    """Return some names (by default all) and those they need before them, or raise a cycle."""
    graph: dict[str, list[str]] = {}
    pending = [*(texts if wanted is None else wanted)]
    while pending:
        name = pending.pop()
        if name in texts and name not in graph:
            value = texts[name].value
            graph[name] = [] if value is None else sorted(references(value) & texts.keys())
            pending += graph[name]
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        cycle: list[str] = error.args[1][::-1]
        first = min(range(len(cycle) - 1), key=lambda k: texts[cycle[k]].position)
        cycle = [*cycle[first:-1], *cycle[: first + 1]]
        text = texts[cycle[0]]
        names = " -> ".join(name.strip('"') for name in cycle)
        reason = f"a {text.kind} must not depend on itself, found {names}"
        raise source.error(text.position, reason) from None


def modules_of(model: tree.ModelFile, formulas: Mapping[str, Expr]) -> list[tree.Module]:
    """Return the modules in the order of the text, formulas expanded, renamings carried out."""
    source = model.source
    by_name = {module.name: module for module in model.modules}
    texts = {}
    for m in model.modules:
        base = Name(m.base) if isinstance(m, tree.RenamedModule) else None
        texts[m.name] = Definition("renamed module", m.name, base, position=m.position)
    modules: dict[str, tree.Module] = {}
    for name in in_order(texts, source):
        module = by_name[name]
        if isinstance(module, tree.Module):
            modules[name] = module.rebuilt(substitute(e, formulas) for e in module.children())
        elif module.base not in by_name:
            reason = f"unknown module '{module.base}'; it must be defined in the model"
            raise source.error(module.position, reason)
        else:
            modules[name] = _renamed(modules[module.base], module, source)
    return [modules[module.name] for module in model.modules]


def _renamed(base: tree.Module, renamed: tree.RenamedModule, source: SourceText) -> tree.Module:
    names: dict[str, str] = {}
    for renaming in renamed.renamings:
        if renaming.old in names:
            reason = f"'{renaming.old}' must be renamed only once"
            raise source.error(renaming.position, reason)
        names[renaming.old] = renaming.new
    for variable in base.variables:
        if variable.name not in names:
            reason = f"module '{renamed.name}' must rename every variable of '{base.name}'"
            raise source.error(renamed.position, f"{reason}, found none for '{variable.name}'")
    variables, commands = _rename((base.variables, base.commands), names)
    return tree.Module(renamed.name, variables, commands, position=renamed.position)


def _rename(part: Any, names: Mapping[str, str]) -> Any:
    """Return a part of a module with other names; operators are none, and labels keep theirs."""

    def change(node: Expr) -> Expr:
        match node:
            case Name(name) if name in names:
                return replace(node, name=names[name])
            case Call(function) if function in names:
                return replace(node, function=names[function])
        return node

    match part:
        case str():
            return names.get(part, part)
        case tuple():
            return tuple(_rename(entry, names) for entry in part)
        case Expr():
            return rewrite(part, change)
        case Node():
            parts = {name: _rename(getattr(part, name), names) for name in part.compared}
            if isinstance(part, tree.Assignment):
                # a formula keeps its name, not its meaning, when what is in it is renamed
                parts["written"] = None
            return replace(part, **parts)
    return part
