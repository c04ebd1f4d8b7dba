"""Expansion of what a model says once and means in many places: formulas and renamed modules.

As in PRISM, formulas are expanded before modules are renamed, so that a renaming reaches the names
inside a formula. Labels are expanded later, so that a renaming does not reach into them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from rfmdp.language import ast as tree
from rfmdp.language.expressions import Call, Expr, Label, Name, Node, nodes, rewrite
from rfmdp.language.source import Position, SourceText


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


def dependency_order(
    graph: Mapping[str, Iterable[str]],
    places: Mapping[str, tuple[str, Position]],
    source: SourceText,
) -> list[str]:
    """Return the keys of `graph` so that each comes after those it needs, or raise a cycle.

    places : what every key is, and where
    """
    needs = {name: [n for n in sorted(needed) if n in graph] for name, needed in graph.items()}
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        cycle: list[str] = error.args[1][::-1]
        first = min(range(len(cycle) - 1), key=lambda k: places[cycle[k]][1])
        cycle = [*cycle[first:-1], *cycle[: first + 1]]
        kind, position = places[cycle[0]]
        names = " -> ".join(name.strip('"') for name in cycle)
        reason = f"a {kind} must not depend on itself, found {names}"
        raise source.error(position, reason) from None


def all_modules(model: tree.ModelFile, formulas: Mapping[str, Expr]) -> list[tree.Module]:
    """Return the modules in the order of the text, formulas expanded, renamings carried out."""
    source = model.source
    by_name = {module.name: module for module in model.modules}
    graph = {m.name: {m.base} if isinstance(m, tree.RenamedModule) else () for m in model.modules}
    places = {module.name: ("renamed module", module.position) for module in model.modules}
    modules: dict[str, tree.Module] = {}
    for name in dependency_order(graph, places, source):
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
    new: dict[str, tree.Renaming] = {}
    for renaming in renamed.renamings:
        if renaming.old in new:
            reason = f"'{renaming.old}' must be renamed only once"
            raise source.error(renaming.position, reason)
        new[renaming.old] = renaming
    for variable in base.variables:
        if variable.name not in new:
            reason = (
                f"module '{renamed.name}' must rename every variable of '{base.name}', "
                f"found none for '{variable.name}'"
            )
            raise source.error(renamed.position, reason)
    names = {old: renaming.new for old, renaming in new.items()}
    variables, commands = _rename((base.variables, base.commands), names)
    return tree.Module(renamed.name, variables, commands, position=renamed.position)


def _rename(part: Any, names: Mapping[str, str]) -> Any:
    """Return a part of a module with other names; operators are none, and labels keep theirs."""
    match part:
        case str():
            return names.get(part, part)
        case tuple():
            return tuple(_rename(entry, names) for entry in part)
        case Expr():
            return rewrite(part, lambda node: _rename_leaf(node, names))
        case Node():
            parts = {name: _rename(getattr(part, name), names) for name in part.compared}
            if isinstance(part, tree.Assignment):
                # a formula keeps its name, not its meaning, when what is in it is renamed
                parts["written"] = None
            return replace(part, **parts)
    return part


def _rename_leaf(node: Expr, names: Mapping[str, str]) -> Expr:
    match node:
        case Name(name) if name in names:
            return replace(node, name=names[name])
        case Call(function) if function in names:
            return replace(node, function=names[function])
    return node
