"""Ask a property of a model: the answer with proven bounds.

A property is a tree of ordinary operators over P, R and filters. Each of these is evaluated for
all states with its bounds; nested ones first, because a formula inside P must be decided by
proven bounds in every state. What is left at the end is one value, picked as PRISM picks it: at
the initial state, or the range over several initial states; of truth values, whether all of them
satisfy the property.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

from rfmdp.answers.exists_forall import paths_hold
from rfmdp.answers.filters import apply_filter
from rfmdp.answers.measure import OperatorSolver
from rfmdp.answers.property import Property, parse_property
from rfmdp.answers.quantity import Quantity, combine
from rfmdp.errors import NotCertifiedError, PrismWarning, UnsupportedError
from rfmdp.inner.protocol import Inner
from rfmdp.language import property_ast as tree
from rfmdp.language.ast import Expr, Label, Literal, ModelType, Type, fold, nodes, rewrite
from rfmdp.language.check_properties import CheckedProperty
from rfmdp.language.constants import Given
from rfmdp.language.states import evaluate_states
from rfmdp.language.types import type_of
from rfmdp.language.write import write_expression
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction, NamedStates
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Solution, Status
from rfmdp.types import BoolArray

DEEPEST = 50  # operators P, R, E, A and filter inside each other
TOUCHING = 1e-9  # a threshold inside bounds this narrow is taken for the number itself
OPERATORS = (tree.Probability, tree.Reward, tree.Quantified, tree.Filter)
LISTS = ("print", "printall", "argmin", "argmax")

Value = bool | int | float | tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What `check` returns.

    value : the side that is guaranteed (lower if the agent maximises); a truth value only if
        bounds decide it, else None; the pair (least, largest) over several initial states
    lower, upper : proven bounds of the value, or of the number that a bound such as >= is about
    likely : of an undecided truth value, what holds if the true number is the threshold itself, or
        if a one-sided method's number is the true one; None if the bounds are far apart
    nature : what was assumed about nature, in words
    listing : the states and values that a filter such as print lists
    """

    text: str
    type: Type
    value: Value | None
    lower: float | None
    upper: float | None
    status: Status
    method: str
    precision: float
    nature: str
    likely: bool | None = None
    solutions: tuple[Solution, ...] = ()
    listing: tuple[tuple[int, Value], ...] = ()
    model: FactoredMDP | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"Answer({self.text}: {self.value}, {self.status.name.lower()}, {self.method})"

    def _repr_html_(self) -> str:
        """Return the answer as a line, and its solution, for notebooks."""
        below = self.solution._repr_html_() if self.solution is not None else ""
        return f"<p>{escape(repr(self))}</p>{below}"

    @property
    def solution(self) -> Solution | None:
        """The solution of the outermost P or R, with its policy; None if there is none."""
        return self.solutions[-1] if self.solutions else None

    @property
    def certified(self) -> bool:
        """Whether the answer is proven as precisely as wanted."""
        return self.status is Status.CERTIFIED


def check(
    model: FactoredMDP,
    prop: Property | str,
    *,
    inner: Inner | None = None,
    limits: Limits | None = None,
    constants: Given | None = None,
) -> Answer:
    """Return the answer to a property, with proven bounds.

    Parameters
    ----------
    model, prop
        What is asked of which model; a text is parsed first.
    inner, limits
        Method and limits, as for `solve`.
    constants
        Values of constants that the property leaves open.

    Raises
    ------
    PrismError
        If the property does not fit the model.
    NotCertifiedError
        If a formula inside P or R is not decided by proven bounds in some state.

    Examples
    --------
    >>> from rfmdp.language.load import parse_prism
    >>> coin = parse_prism("dtmc module m x:[0..2]; [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2); "
    ...                    "[] x>0 -> true; endmodule")
    >>> check(coin, "P>=0.4 [ F x=1 ]").value, check(coin, "2*P=? [ X x=1 ]").value
    (True, 1.0)
    """
    asked = parse_property(prop) if isinstance(prop, str) else prop
    asked = replace(asked, constants={**asked.constants, **(constants or {})})
    bound = asked.bind(model)
    limits = limits or Limits()
    evaluator = PropertyEvaluator(model, bound, inner, limits)
    least, most = evaluator.answer()
    return _answer(asked, evaluator, least, most)


def states_where(model: FactoredMDP, prop: Property) -> BoolArray:
    """Return where a state formula holds, (S,)."""
    bound = prop.bind(model)
    evaluator = PropertyEvaluator(model, bound, None, Limits())
    return evaluator.decided(evaluator.top)


@dataclass(frozen=True, slots=True)
class Slot(Expr):
    """Stands for a P, R, E, A or filter that is evaluated on its own."""

    number: int


class PropertyEvaluator:
    """Evaluates one property on one model."""

    def __init__(
        self,
        model: FactoredMDP,
        prop: CheckedProperty,
        inner: Inner | None,
        limits: Limits,
    ) -> None:
        self.model, self.type, self.names = model, prop.type, prop.scope
        self.source = prop.scope.source
        self.solver = OperatorSolver(model, inner, limits, self.source)
        self.listed: tuple[Quantity, BoolArray, str] | None = None
        self._slots: list[Expr] = []
        self._check_depth(prop.expression)
        self.top = rewrite(prop.expression, self._cut)

    @property
    def about_one_number(self) -> bool:
        """Whether the property compares just one P or R with a number, outside of any filter."""
        slots = [self._slots[n.number] for n in nodes(self.top) if isinstance(n, Slot)]
        operator = slots[0] if len(slots) == 1 else None
        return isinstance(operator, tree.Probability | tree.Reward) and operator.bound is not None

    def answer(self) -> tuple[Quantity, Quantity]:
        """Return the least and the largest value of a property, by PRISM's rules.

        They differ only over several initial states.
        """
        initial = self.model.label("init")
        top = self._slots[self.top.number] if isinstance(self.top, Slot) else None
        if isinstance(top, tree.Filter) and top.operator not in LISTS:
            return self._filter(top)
        found = self.quantity(self.top, initial)
        if self.type is Type.BOOL:
            return apply_filter("forall", self.model, found, initial)
        name = "range" if np.count_nonzero(initial) > 1 else "state"
        return apply_filter(name, self.model, found, initial)

    def quantity(self, expr: Expr, interest: BoolArray) -> Quantity:
        """Return an expression in all states, as precisely as wanted in those of interest."""

        def visit(node: Expr, below: tuple[Quantity | None, ...]) -> Quantity | None:
            match node:
                case Slot(number):
                    return self._slot(self._slots[number], interest)
                case Label(name):
                    return Quantity.exact(Type.BOOL, self.model.label(name))
            if all(part is None for part in below):
                return None  # an expression over variables only: compiled as a whole, later
            parts = zip(node.children(), below, strict=True)
            return combine(node, [part or self._plain(child, interest) for child, part in parts])

        return fold(expr, visit) or self._plain(expr, interest)

    def states(self, expr: Expr) -> NamedStates:
        """Return where a state formula holds, with its text; see `decided`."""
        return NamedStates(self._text(expr), self.decided(expr))

    def decided(self, expr: Expr) -> BoolArray:
        """Return where a state formula holds, or raise if bounds leave that open somewhere.

        It is decided by the exact method: one that proves a single side rarely could.
        """
        everywhere = np.ones(self.model.states, dtype=np.bool_)
        outer, self.solver = self.solver, self.solver.exact()
        try:
            found = self.quantity(expr, everywhere)
        finally:
            self.solver = outer
        method = "exact" if outer.inner is None else outer.inner.name
        if method != "exact" and any(isinstance(part, Slot) for part in nodes(expr)):
            warnings.warn(
                "A formula inside another is decided by the exact method, not by "
                f"{method}: the value can differ from one by {method} alone.",
                PrismWarning,
                stacklevel=2,
            )
        open_ = np.flatnonzero(~found.known)
        if open_.size:
            text = self._text(expr)
            state = self.model.state_name(int(open_[0]))
            raise NotCertifiedError(
                f"A formula inside P or R must be decided in every state; the bounds of '{text}' "
                f"leave {open_.size} open, the first is {state}. Try another threshold, a smaller "
                "precision, or the exact method."
            )
        return np.asarray(found.lower, dtype=np.bool_)

    def _slot(self, node: Expr, interest: BoolArray) -> Quantity:
        if isinstance(node, tree.Probability):
            return self.solver.probability(node, self.states, interest)
        if isinstance(node, tree.Reward):
            return self.solver.reward(node, self.states, interest)
        if isinstance(node, tree.Quantified):
            holds = paths_hold(self.model, node, self.decided)
            return Quantity.exact(Type.BOOL, holds)
        assert isinstance(node, tree.Filter)  # nothing else is cut
        least, most = self._filter(node)
        if least is not most:
            reason = "filter(range, ...) must stand alone: it has two values"
            raise self.source.error(node.position, reason)
        return most

    def _filter(self, node: tree.Filter) -> tuple[Quantity, Quantity]:
        where = np.ones(self.model.states, dtype=np.bool_)
        if node.states is not None:
            where = self.decided(node.states)
        operand = self.quantity(node.operand, where)
        found = apply_filter(node.operator, self.model, operand, where)
        if node.operator in LISTS:
            self.listed = (found[1], where, node.operator)
        return found

    def _plain(self, expr: Expr, interest: BoolArray) -> Quantity:
        if isinstance(expr, Literal) and expr.type is Type.BOOL:
            return Quantity.exact(expr.type, np.full(self.model.states, expr.value))
        kind = type_of(expr, self.names.variable_types(), self.source)
        valuations = self.model.valuations.reshape(self.model.states, len(self.model.variables))
        states = np.flatnonzero(interest)
        values = evaluate_states(expr, self.names, valuations, states)
        everywhere = np.zeros(self.model.states, dtype=values.dtype)
        everywhere[states] = values
        return Quantity.exact(kind, everywhere)

    def _cut(self, node: Expr) -> Expr:
        if not isinstance(node, OPERATORS):
            return node
        self._slots.append(node)
        return Slot(len(self._slots) - 1, position=node.position)

    def _text(self, expr: Expr) -> str:
        return write_expression(rewrite(expr, self._paste))

    def _paste(self, node: Expr) -> Expr:
        if not isinstance(node, Slot):
            return node
        return rewrite(self._slots[node.number], self._paste)

    def _check_depth(self, expr: Expr) -> None:
        def depth(node: Expr, below: tuple[int, ...]) -> int:
            own = isinstance(node, OPERATORS)
            return max(below, default=0) + own

        if fold(expr, depth) > DEEPEST:
            reason = f"P, R, E, A and filters must be nested at most {DEEPEST} deep"
            raise self.source.error(expr.position, reason)


def _answer(
    prop: Property, evaluator: PropertyEvaluator, least: Quantity, most: Quantity
) -> Answer:
    solver, model = evaluator.solver, evaluator.model
    low, high = least.lower[0], most.upper[0]
    value: Value | None = _plain_value(most, 0)
    likely = None
    if least is not most:
        value = (_plain_value(least, 0), _plain_value(most, 0))
    if most.type is Type.BOOL:
        value = bool(most.value[0]) if most.known[0] else None
        likely = bool(most.value[0]) if _touching(solver, model) else value
        low, high = _bounded(evaluator)
    return Answer(
        prop.text,
        most.type,
        value,
        None if low == -np.inf else float(low),
        None if high == np.inf != low else float(high),
        _status(least, most, solver),
        "exact" if solver.inner is None else solver.inner.name,
        solver.limits.precision,
        nature_in_words(solver.kind, solver.natures),
        likely,
        (*solver.solutions[:-1], *(_as_written(s, prop) for s in solver.solutions[-1:])),
        tuple(_listing(evaluator)),
        model,
    )


def _as_written(solution: Solution, prop: Property) -> Solution:
    """Return the solution of a single P or R with its sets of states as the property names them.

    The names in it were replaced before it was solved. Of other properties it is returned as it is.
    """
    try:
        asked = prop.spec(solution.model).objective
    except UnsupportedError:
        return solution
    own = solution.spec.objective
    if type(asked) is not type(own):
        return solution
    sets: dict[str, Any] = {
        name: NamedStates(getattr(asked, name).text, getattr(own, name).states)
        for name in ("stay", "target")
        if hasattr(own, name)
    }
    return replace(solution, spec=replace(solution.spec, objective=replace(own, **sets)))


def nature_in_words(kind: ModelType, natures: list[tuple[Direction, Direction]]) -> str:
    """Return what was assumed about nature: `min, against the agent (maxmin)`."""
    if kind in (ModelType.DTMC, ModelType.MDP) or not natures:
        return "no choice"
    words = []
    for agent, nature in dict.fromkeys(natures):
        how = nature.name.lower()
        if kind is ModelType.IMDP:
            side = "with" if agent is nature else "against"
            how = f"{how}, {side} the agent ({agent.name.lower()}{nature.name.lower()})"
        words.append(how)
    return "; ".join(words)


def _status(least: Quantity, most: Quantity, solver: OperatorSolver) -> Status:
    truth = most.type is Type.BOOL
    if most.known[0] if truth else _closed(least, solver) and _closed(most, solver):
        return Status.CERTIFIED
    ended = {solution.status for solution in solver.solutions}
    for status in (Status.INTERRUPTED, Status.TIME_LIMIT, Status.SWEEP_LIMIT):
        if status in ended:
            return status
    return Status.UNDECIDED if truth else Status.GAP_OPEN


def _closed(found: Quantity, solver: OperatorSolver) -> bool:
    """Return whether bounds are as close as wanted, or as close as floats let them be."""
    sizes = [np.abs(s.value[np.isfinite(s.value)]).max(initial=1.0) for s in solver.solutions]
    lower, upper = (np.asarray(end[:1], dtype=np.float64) for end in (found.lower, found.upper))
    return solver.limits.closed(lower, upper, np.ones(1, dtype=np.bool_), max(sizes, default=1.0))


def _bounded(evaluator: PropertyEvaluator) -> tuple[float, float]:
    """Return bounds of the number that a truth value at the initial state is about, if just one."""
    solver, initial = evaluator.solver, evaluator.model.initial
    if not evaluator.about_one_number or len(solver.bounded) != 1 or len(initial) != 1:
        return -np.inf, np.inf
    state = int(initial[0])
    return float(solver.bounded[0].lower[state]), float(solver.bounded[0].upper[state])


def _touching(solver: OperatorSolver, model: FactoredMDP) -> bool:
    """Return whether every open bound is met exactly, or depends on what a method cannot prove."""
    for found in solver.bounded:
        low, high = found.lower[model.initial], found.upper[model.initial]
        one_sided = np.isneginf(low) | np.isposinf(high)
        if not np.all((low == high) | (high <= low + TOUCHING) | one_sided):
            return False
    return True


def _plain_value(found: Quantity, state: int) -> bool | int | float:
    value = found.value[state]
    if found.type is Type.BOOL:
        return bool(value)
    return int(value) if found.type is Type.INT and np.isfinite(value) else float(value)


def _listing(evaluator: PropertyEvaluator) -> Iterator[tuple[int, Value]]:
    if evaluator.listed is None:
        return
    found, where, name = evaluator.listed
    for state in np.flatnonzero(where):
        value = _plain_value(found, int(state))
        if value or name == "printall":
            yield int(state), value
