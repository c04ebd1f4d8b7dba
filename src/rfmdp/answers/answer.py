"""Ask a property of a model: the answer with proven bounds.

It is one value, picked as PRISM picks it: at the initial state, or the range over several initial
states; of truth values, whether all of them satisfy the property.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html import escape

import numpy as np

from rfmdp.answers.evaluator import PropertyEvaluator
from rfmdp.answers.property import Property, parse_property
from rfmdp.answers.quantity import Quantity
from rfmdp.errors import UnsupportedError
from rfmdp.inner.protocol import Inner
from rfmdp.language.ast import ModelType, Type
from rfmdp.language.names import Constants, plain_values
from rfmdp.model.lattice import AnyModel
from rfmdp.objective import Direction
from rfmdp.outer.settings import Limits, largest
from rfmdp.outer.solution import Solution, Status
from rfmdp.temporal.hoa import HoaAutomaton
from rfmdp.types import BoolArray

Value = bool | int | float | tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What `check` returns.

    value : the side that is guaranteed (lower if the agent maximises), or the other one if the
        method proves only that; of a chain and of a formula over several P and R, a number between
        the bounds, once they are as close as wanted; None if nothing of this is proven; a truth
        value only if bounds decide it; the pair (least, largest) over several initial states
    lower, upper : proven bounds of the value, or of the number that a bound such as >= is about
    side : of a number, which bound it is: -1 lower, +1 upper, 0 neither of them
    nature : what was assumed about nature, in words
    listing : the states and values that a filter such as print lists; None is a truth value that
        bounds leave open
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
    side: int = 0
    solutions: tuple[Solution, ...] = ()
    listing: tuple[tuple[int, Value | None], ...] = ()
    is_solution: bool = False  # whether `solution` says all: the property is a single P=? or R=?
    model: AnyModel | None = field(default=None, repr=False)

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

    def whole_solution(self) -> Solution:
        """Return the solution that says all that the answer says; raise if there is none."""
        if self.solution is None or not self.is_solution:
            raise UnsupportedError(
                f"A result file must hold a single P=? or R=? over X, F, G, U or a reward, found "
                f"'{self.text}'; solve its parts one by one, or keep the answer as it is "
                "printed."
            )
        return self.solution


def check(
    model: AnyModel,
    prop: Property | str,
    *,
    inner: Inner | None = None,
    limits: Limits | None = None,
    constants: Constants | None = None,
    automaton: HoaAutomaton | None = None,
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
    automaton
        What the path formula means, as for `solve`.

    Raises
    ------
    PrismError
        If the property does not fit the model.
    NotCertifiedError
        If a formula inside P or R is not decided by proven bounds in some state.

    Examples
    --------
    >>> from rfmdp.language.build import parse_prism
    >>> coin = parse_prism("dtmc module m x:[0..2]; [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2); "
    ...                    "[] x>0 -> true; endmodule")
    >>> check(coin, "P>=0.4 [ F x=1 ]").value, check(coin, "2*P=? [ X x=1 ]").value
    (True, 1.0)
    """
    request = parse_property(prop) if isinstance(prop, str) else prop
    request = replace(request, constants={**request.constants, **plain_values(constants)})
    bound = request.bind(model)
    limits = limits or Limits()
    evaluator = PropertyEvaluator(model, bound, inner, limits, automaton)
    least, most = evaluator.answer()
    return _answer(request, evaluator, least, most)


def _answer(
    prop: Property, evaluator: PropertyEvaluator, least: Quantity, most: Quantity
) -> Answer:
    status = _status(least, most, evaluator)
    certified = status is Status.CERTIFIED
    low, high = least.lower[0], most.upper[0]
    value: Value | None
    side = 0
    if most.type is Type.BOOL:
        value = bool(most.value[0]) if most.known[0] else None
        low, high = _bounded(evaluator)
    elif least is most:
        value, side = _proven_value(most, certified)
    else:
        ends = _proven_value(least, certified)[0], _proven_value(most, certified)[0]
        value = None if None in ends else ends  # type: ignore[assignment]
    return Answer(
        prop.text,
        most.type,
        value,
        None if low == -np.inf else float(low),
        None if high == np.inf != low else float(high),
        status,
        evaluator.inner.name,
        max([evaluator.limits.precision, *(s.precision for s in evaluator.solutions)]),
        nature_in_words(evaluator.kind, evaluator.natures),
        side,
        tuple(evaluator.solutions),
        tuple(_listing(evaluator)),
        evaluator.is_solution,
        evaluator.model,
    )


def _proven_value(number: Quantity, certified: bool) -> tuple[int | float | None, int]:
    """Return the number to report and the side that it is a bound from; None if nothing is proven.

    A side that nobody proved is infinite. A number between the bounds counts if they are close.
    """
    low, value, high = number.lower[0], number.value[0], number.upper[0]
    if np.isnan(value) or (not certified and low != high and value in (-np.inf, np.inf)):
        return None, 0
    side = -1 if value == low else int(value == high)
    if side == 0 and not certified:
        return None, 0
    return (int(value) if number.type is Type.INT and np.isfinite(value) else float(value)), side


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
    ends = [_at_states(x, slice(1)) for x in (least, most)]  # a filter is the same in all states
    decided = bool(most.known[0]) if truth else all(_closed(x, evaluator) for x in ends)
    if evaluator.listed is not None:
        listed, where, _ = evaluator.listed
        inside = _at_states(listed, where)
        boolean = inside.type is Type.BOOL
        truth = truth and not boolean
        decided &= bool(inside.known.all()) if boolean else _closed(inside, evaluator)
    if decided:
        return Status.CERTIFIED
    ended = {solution.status for solution in evaluator.solutions}
    for status in (Status.INTERRUPTED, Status.TIME_LIMIT, Status.SWEEP_LIMIT):
        if status in ended:
            return status
    return Status.UNDECIDED if truth else Status.GAP_OPEN


def _at_states(number: Quantity, states: BoolArray | slice) -> Quantity:
    return Quantity(number.type, number.lower[states], number.value[states], number.upper[states])


def _closed(number: Quantity, evaluator: PropertyEvaluator) -> bool:
    """Return whether bounds are as close as wanted, or as close as floats let them be."""
    sizes = [max(largest(s.value), 1.0) for s in evaluator.solutions]
    lower, upper = (np.asarray(x, dtype=np.float64) for x in (number.lower, number.upper))
    everywhere = np.ones(len(lower), dtype=np.bool_)
    return evaluator.limits.closed(lower, upper, everywhere, max(sizes, default=1.0))


def _bounded(evaluator: PropertyEvaluator) -> tuple[float, float]:
    """Return bounds of the number that a truth value at the initial state is about, if just one."""
    bounded, initial = evaluator.bounded, evaluator.model.initial
    if not evaluator.about_one_number or len(bounded) != 1 or len(initial) != 1:
        return -np.inf, np.inf
    state = int(initial[0])
    return float(bounded[0].lower[state]), float(bounded[0].upper[state])


def _listing(evaluator: PropertyEvaluator) -> Iterator[tuple[int, Value | None]]:
    """Yield states with their values; of truth values those that hold, and those that are open."""
    if evaluator.listed is None:
        return
    numbers, where, name = evaluator.listed
    for state in np.flatnonzero(where).tolist():
        value = numbers.value[state]
        if numbers.type is Type.BOOL:
            if numbers.upper[state] or name == "printall":
                yield state, bool(value) if numbers.known[state] else None
        elif value or name == "printall":
            yield state, int(value) if numbers.type is Type.INT else float(value)
