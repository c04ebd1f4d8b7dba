"""What P and R measure: path formulas as trees, directions of the players, objectives.

A path formula is a tree over state formulas (the atoms) with X, U, ! and &, by PRISM's rules:

    F b = true U b        G a = !(true U !a)
    a W b = !((a & !b) U (!a & !b))        a R b = !(!a U !b)

with the same bounds on steps or on a reward. A single operator over state formulas has an objective
of its own. All else, and W, R and a negated U, is for the automata of `rfmdp.temporal`.

`solve` takes a single P or R as the `Spec` that `Property.spec` makes of it. `check` makes an
objective of every P and R that it meets. Both bring a function that makes a set of states of a
formula: one that waits for its model, or one that is decided already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from rfmdp.language import ast as tree
from rfmdp.language.ast import Binary, Expr, Literal, ModelType, Unary
from rfmdp.language.check import Work
from rfmdp.language.expressions import is_nested, nodes, path_operators, write_expression
from rfmdp.language.source import SourceText
from rfmdp.objective import (
    MAX,
    MIN,
    BudgetUntil,
    Cumulative,
    Direction,
    Discounted,
    Globally,
    Instantaneous,
    LongRunAverage,
    LongRunShare,
    Next,
    Objective,
    Reach,
    ReachReward,
    Temporal,
    TemporalReward,
    Total,
    Until,
)
from rfmdp.state_sets import PathFormula, StateSet

Sets = Callable[[Expr], StateSet]
Formula = tuple[Any, ...]  # a tree of `rfmdp.temporal.formula`
TRUE = Literal(True)
HALVINGS = 30  # of what is left to come, until a discounted value is as precise as most want


def probability(path: Expr, states: Sets) -> tuple[Objective, bool]:
    """Return the objective of a path formula, and whether the answer is one minus its value.

    >>> from rfmdp.language.ast import Label
    >>> probability(tree.Path("G", None, Label("safe")), write_expression)
    (Globally(stay='"safe"', latest=None, earliest=0), False)
    """
    if isinstance(path, tree.Path) and path.operator == "S":
        return LongRunShare(states(path.right)), False
    atoms: list[Expr] = []
    formula = _formula(path, atoms)
    negated = formula[0] == "!"
    match formula[1] if negated else formula:
        case ("X", operand):
            target = _state_formula(operand, atoms)
            if target is not None:
                return Next(states(_negation(target) if negated else target)), False
        case ("U", left, right, earliest, latest):
            stay, target = _state_formula(left, atoms), _state_formula(right, atoms)
            name = _counted_reward(path)
            if stay is None or target is None:
                pass
            elif name is not None:
                return BudgetUntil(states(stay), states(target), latest, name), negated
            elif negated and stay == TRUE:
                return Globally(states(_negation(target)), latest, earliest), False
            elif not negated and stay == TRUE and (earliest, latest) == (0, None):
                return Reach(states(target)), False
            elif not negated:
                return Until(states(stay), states(target), latest, earliest), False
    return Temporal(_path_formula(path, states)), False


def _counted_reward(path: Expr) -> str | None:
    """Return the name of the reward that a path formula has a bound on."""
    times = [operator.time for operator in path_operators(path)]
    return next((time.reward for time in times if time is not None), None)


def reward(path: Expr, name: str | None, states: Sets) -> Objective:
    """Return the objective of a reward formula."""
    match path:
        case tree.Path("F", right=target, time=None) if not is_nested(path):
            return ReachReward(states(target), name)
        case tree.LongRunReward():
            return LongRunAverage(name)
        case tree.InstantaneousReward(step):
            return Instantaneous(int(number(step)), name)
        case tree.CumulativeReward(steps, discount):
            limit = None if steps is None else int(number(steps))
            factor = 1.0 if discount is None else float(number(discount))
            if factor == 0.0:  # only the first step pays
                return Cumulative(1 if limit is None else min(limit, 1), name)
            if limit is not None:
                return Cumulative(limit, name, factor)
            return Total(name) if factor == 1.0 else Discounted(factor, name)
    return TemporalReward(_path_formula(path, states), name)


def number(expr: Expr) -> int | float:
    """Return a number that the static checks evaluated."""
    assert isinstance(expr, Literal)
    return expr.value


def _path_formula(path: Expr, states: Sets) -> PathFormula:
    atoms: list[Expr] = []
    formula = _formula(path, atoms)
    return PathFormula(write_expression(path), formula, tuple(states(atom) for atom in atoms))


def _formula(path: Expr, atoms: list[Expr]) -> Formula:
    """Return a path formula as a tree; state formulas that are new in it are added to the atoms."""
    if path == TRUE:
        return ("true",)
    if not path_operators(path):
        if path not in atoms:
            atoms.append(path)
        return ("atom", atoms.index(path))
    if not isinstance(path, tree.Path):
        left, *rest = (_formula(child, atoms) for child in path.children())
        match path:
            case Unary():
                return _not(left)
            case Binary("=>"):
                return ("|", _not(left), *rest)
            case Binary("<=>"):
                return ("|", ("&", left, *rest), ("&", _not(left), _not(*rest)))
        assert isinstance(path, Binary)
        return (path.operator, left, *rest)
    first = ("true",) if path.left is None else _formula(path.left, atoms)
    right = _formula(path.right, atoms)
    if path.operator == "X":
        return ("X", right)
    times = _steps(path.time)
    match path.operator:
        case "G":
            return _not(("U", first, _not(right), *times))
        case "W":
            return _not(("U", ("&", first, _not(right)), ("&", _not(first), _not(right)), *times))
        case "R":
            return _not(("U", _not(first), _not(right), *times))
    return ("U", first, right, *times)


def _not(formula: Formula) -> Formula:
    negated: Formula = formula[1] if formula[0] == "!" else ("!", formula)
    return negated


def _steps(time: tree.TimeBound | None) -> tuple[int, int | None]:
    """Return the first and last step that count; None for no last one."""
    if time is None:
        return 0, None
    earliest = 0 if time.lower is None else int(number(time.lower)) + time.lower_strict
    latest = None if time.upper is None else int(number(time.upper)) - time.upper_strict
    return earliest, latest


def _state_formula(formula: Formula, atoms: list[Expr]) -> Expr | None:
    """Return what a tree without X and U says about a state; None for others."""
    match formula:
        case ("true",):
            return TRUE
        case ("atom", int(number)):
            return atoms[number]
        case ("!", operand):
            expr = _state_formula(operand, atoms)
            return None if expr is None else _negation(expr)
        case ("&", *operands):
            left, right = (_state_formula(operand, atoms) for operand in operands)
            if left is not None and right is not None:
                return Binary("&", left, right, position=left.position)
    return None


def _negation(expr: Expr) -> Expr:
    if isinstance(expr, Unary):
        return expr.operand
    return Unary("!", expr, position=expr.position)


def directions(
    node: tree.Probability | tree.Reward, kind: ModelType | None, source: SourceText
) -> tuple[Direction, Direction]:
    """Return the directions of (agent, nature), by PRISM's rules.

    A bound such as >= must hold whatever both do. Nature has the agent's direction unless the text
    gives it one (`Pmaxmin`). Where nobody has a choice, the text need not say min or max.

    kind : what the model amounts to, None if that is not known
    """
    if node.agent is not None:
        agent = node.agent
    elif node.bound is not None:
        agent = MIN if node.bound.operator.startswith(">") else MAX
    elif kind in (None, ModelType.DTMC):
        agent = MAX
    else:
        who = "agent" if kind is ModelType.MDP else "nature" if kind is ModelType.IDTMC else "both"
        letter = "P" if isinstance(node, tree.Probability) else "R"
        pair = f", or a pair such as {letter}maxmin=?" if kind is ModelType.IMDP else ""
        reason = (
            f"'{letter}=?' must say min or max on a model with choices (here: {who}); "
            f"use {letter}min=? or {letter}max=?{pair}"
        )
        raise source.error(node.position, reason)
    return agent, node.nature or agent


def backward_steps(expr: Expr, states: Sets) -> Work | None:
    """Return how many steps back from their ends the numbers of a checked property are.

    None: it is about more states than the initial ones, or of a kind that only a model with written
    transitions answers.

    states : makes sets of states that have the formula as their `expr`
    """
    outermost, all_ = (
        [node for node in nodes(expr, leaves) if isinstance(node, tree.OPERATORS)]
        for leaves in (tree.OPERATORS, ())
    )
    if len(all_) > len(outermost):
        return None
    return all_work(_work(operator, states) for operator in outermost)


def all_work(questions: Iterable[Work | None]) -> Work | None:
    """Return what some questions ask together; None if that is not known of one."""
    steps, ends = 0, list[Expr]()
    for work in questions:
        if work is None:
            return None
        steps, ends = max(steps, work.steps), [*ends, *work.ends]
    return Work(steps, tuple(ends))


def _work(operator: Expr, states: Sets) -> Work | None:
    match operator:
        case tree.Probability(path=path):
            if not path_operators(path):
                return Work()
            objective = probability(path, states)[0]
        case tree.Reward(path=path):
            objective = reward(path, None, states)
        case _:
            return None
    earliest, latest = objective.span
    if objective.endless or not objective.plain:
        return None
    if latest is not None:
        return Work(latest)
    if objective.factor < 1.0:
        return Work(int(HALVINGS / (1.0 - objective.factor)) + 1)
    sets: dict[str, Any] = objective.sets
    if earliest or not sets:
        return None
    ends: list[Expr] = [sets["target"].expr] if "target" in sets else []
    ends += [_negation(sets["stay"].expr)] if "stay" in sets else []
    return Work(ends=(reduce(lambda left, right: Binary("|", left, right), ends),))
