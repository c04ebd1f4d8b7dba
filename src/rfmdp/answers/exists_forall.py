"""E and A: what some path does, and what all do, by the graph of possible moves alone.

With E[ a U b ] by backward search and E[ G a ] by cycles within a, the others follow:

    A[ a U b ] = !( E[ !b U (!a & !b) ] | E[ G !b ] )
    E[ !p ] = !A[ p ]        A[ !p ] = !E[ p ]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rfmdp.answers.specification import NextFormula, NowFormula, normal
from rfmdp.language.ast import Expr
from rfmdp.language.property_ast import Quantified
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX
from rfmdp.outer.graph.components import components
from rfmdp.outer.graph.graph import Graph
from rfmdp.types import BoolArray


def paths_hold(
    model: FactoredMDP, node: Quantified, decide: Callable[[Expr], BoolArray]
) -> BoolArray:
    """Return where E or A of a path formula holds, (S,).

    Parameters
    ----------
    decide
        Returns where a state formula holds.
    """
    form = normal(node.path)
    if isinstance(form, NowFormula):
        return decide(form.holds)
    every = node.every is not form.negated
    graph = Graph(model)
    target = decide(form.target)
    if isinstance(form, NextFormula):
        holds = _next_all(graph, target) if every else ~_next_all(graph, ~target)
    elif every:
        fails = _some_until(graph, ~target, ~decide(form.stay) & ~target)
        holds = ~(fails | _some_globally(graph, ~target))
    else:
        holds = _some_until(graph, decide(form.stay), target)
    return ~holds if form.negated else holds


def _next_all(graph: Graph, target: BoolArray) -> BoolArray:
    """Return where every possible move leads to the target."""
    rows = graph.rows_must_stay(target)
    all_: BoolArray = np.logical_and.reduceat(rows, graph.model.row_ptr[:-1])
    return all_


def _some_until(graph: Graph, stay: BoolArray, target: BoolArray) -> BoolArray:
    return graph.positive(target, stay, agent=MAX, nature=MAX)


def _some_globally(graph: Graph, stay: BoolArray) -> BoolArray:
    """Return where a path stays for ever: it comes to a cycle within `stay`."""
    parts = components(graph, stay)
    inside = parts.component >= 0
    cyclic = np.zeros(len(stay), dtype=np.bool_)
    cyclic[inside] = ~parts.trivial[parts.component[inside]]
    return _some_until(graph, stay, cyclic)
