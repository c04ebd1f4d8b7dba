"""Ask a property of a model: the answer with proven bounds.

It is one value, picked as PRISM picks it: at the initial state, or the range over several initial
states; of truth values, whether all of them satisfy the property.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

from rfmdp.answers.evaluator import PropertyEvaluator
from rfmdp.answers.property import Property, parse_property
from rfmdp.answers.quantity import Quantity
from rfmdp.errors import UnsupportedError
from rfmdp.inner.protocol import Inner
from rfmdp.language.ast import ModelType, Type
from rfmdp.language.constants import Given, checked_given
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction, NamedStates
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Solution, Status

TOUCHING = 1e-9  # a threshold inside bounds this narrow is taken for the number itself

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
    asked = replace(asked, constants={**asked.constants, **checked_given(constants)})
    bound = asked.bind(model)
    limits = limits or Limits()
    evaluator = PropertyEvaluator(model, bound, inner, limits)
    least, most = evaluator.answer()
    return _answer(asked, evaluator, least, most)


def _answer(
    prop: Property, evaluator: PropertyEvaluator, least: Quantity, most: Quantity
) -> Answer:
    low, high = least.lower[0], most.upper[0]
    value: Value | None = _plain_value(most, 0)
    likely = None
    if least is not most:
        value = (_plain_value(least, 0), _plain_value(most, 0))
    if most.type is Type.BOOL:
        value = bool(most.value[0]) if most.known[0] else None
        likely = bool(most.value[0]) if _touching(evaluator) else value
        low, high = _bounded(evaluator)
    return Answer(
        prop.text,
        most.type,
        value,
        None if low == -np.inf else float(low),
        None if high == np.inf != low else float(high),
        _status(least, most, evaluator),
        evaluator.inner.name,
        evaluator.limits.precision,
        nature_in_words(evaluator.kind, evaluator.natures),
        likely,
        (*evaluator.solutions[:-1], *(_as_written(s, prop) for s in evaluator.solutions[-1:])),
        tuple(_listing(evaluator)),
        evaluator.model,
    )


def _as_written(solution: Solution, prop: Property) -> Solution:
    """Return the solution of a single P or R with its sets of states as the property names them.

    The names in it were replaced before it was solved. Of other properties it is returned as it is.
    """
    try:
        asked = prop.spec(solution.model, settled=True).objective
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


def _status(least: Quantity, most: Quantity, evaluator: PropertyEvaluator) -> Status:
    truth = most.type is Type.BOOL
    if most.known[0] if truth else _closed(least, evaluator) and _closed(most, evaluator):
        return Status.CERTIFIED
    ended = {solution.status for solution in evaluator.solutions}
    for status in (Status.INTERRUPTED, Status.TIME_LIMIT, Status.SWEEP_LIMIT):
        if status in ended:
            return status
    return Status.UNDECIDED if truth else Status.GAP_OPEN


def _closed(found: Quantity, evaluator: PropertyEvaluator) -> bool:
    """Return whether bounds are as close as wanted, or as close as floats let them be."""
    sizes = [np.abs(s.value[np.isfinite(s.value)]).max(initial=1.0) for s in evaluator.solutions]
    lower, upper = (np.asarray(end[:1], dtype=np.float64) for end in (found.lower, found.upper))
    everywhere = np.ones(1, dtype=np.bool_)
    return evaluator.limits.closed(lower, upper, everywhere, max(sizes, default=1.0))


def _bounded(evaluator: PropertyEvaluator) -> tuple[float, float]:
    """Return bounds of the number that a truth value at the initial state is about, if just one."""
    bounded, initial = evaluator.bounded, evaluator.model.initial
    if not evaluator.about_one_number or len(bounded) != 1 or len(initial) != 1:
        return -np.inf, np.inf
    state = int(initial[0])
    return float(bounded[0].lower[state]), float(bounded[0].upper[state])


def _touching(evaluator: PropertyEvaluator) -> bool:
    """Return whether bounds of all numbers are narrow, or missing on a side that nobody proves."""
    initial = evaluator.model.initial
    for found in evaluator.bounded:
        low, high = found.lower[initial], found.upper[initial]
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
