"""Ask properties of a model: answers with proven bounds.

An answer is one value: at the initial state, or whether all initial states satisfy the property.
Of many questions about one model, which is built once, each is answered or fails by itself, within
a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rfmdp.answers.evaluator import PropertyEvaluator
from rfmdp.answers.property import Property, backward_steps, parse_properties, parse_property
from rfmdp.answers.quantity import Quantity
from rfmdp.errors import NotCertifiedError, PrismError, RfmdpError, UnsupportedError
from rfmdp.inner.protocol import Inner
from rfmdp.language.ast import ModelType, Type
from rfmdp.language.check import CheckedModel, Work
from rfmdp.language.check_properties import CheckedProperty, check_property, require_supported
from rfmdp.language.names import Constants, plain_values
from rfmdp.model.frontier import Progress
from rfmdp.model.lattice import AnyModel
from rfmdp.objective import Direction
from rfmdp.outer.solution import Solution, Status
from rfmdp.outer.task import Limits, largest
from rfmdp.temporal.hoa import HoaAutomaton

if TYPE_CHECKING:
    from rfmdp.opening import Blueprint

Value = bool | int | float
Build = Callable[[Collection[str], Work | None, Progress], AnyModel]
"""Called as build(constants of the properties, what they ask of the model, progress)."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What `check` returns.

    value : the side that is guaranteed (lower if the agent maximises), or the other one if the
        method proves only that; of a chain and of a formula over several P and R, a number between
        the bounds, once they are as close as wanted; None if nothing of this is proven; a truth
        value only if bounds decide it
    lower, upper : proven bounds of the value, or of the number that a bound such as >= is about
    side : of a number, which bound it is: -1 lower, +1 upper, 0 neither of them
    nature : what was assumed about nature, in words
    listing : states with the values that filters list; None where nothing is proven
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
    inner, limits, automaton
        As for `solve`.
    constants
        Values of constants that the property leaves open.

    Raises
    ------
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
    evaluator = PropertyEvaluator(model, request.bind(model), inner, limits, automaton)
    quantity = evaluator.answer()
    status = _status(quantity, evaluator)
    truth = quantity.type is Type.BOOL
    low, high = evaluator.bounds() if truth else (quantity.lower[0], quantity.upper[0])
    value, side = _proven_value(quantity, status)
    return Answer(
        request.text,
        quantity.type,
        value,
        None if low == -np.inf else float(low),
        None if high == np.inf != low else float(high),
        status,
        evaluator.inner.name,
        max([evaluator.limits.precision, *(s.precision for s in evaluator.solutions)]),
        nature_in_words(evaluator.kind, evaluator.natures),
        side,
        tuple(evaluator.solutions),
        tuple(_listing(evaluator, status)),
        evaluator.is_solution,
        model,
    )


def _listing(evaluator: PropertyEvaluator, status: Status) -> Iterator[tuple[int, Value | None]]:
    """Yield states with the values that filters list; `print` leaves out 0 and false."""
    for node, operand, where in evaluator.listed:
        for state in np.flatnonzero(where).tolist():
            value, _ = _proven_value(operand, status, state)
            if node.operator == "printall" or value != 0:
                yield state, value


def _proven_value(number: Quantity, status: Status, state: int = 0) -> tuple[Value | None, int]:
    """Return the value to report and the side that it is a bound from; None if nothing is proven.

    A side that nobody proved is infinite. A number between the bounds counts if they are close.
    """
    low, value, high = (x[state] for x in (number.lower, number.value, number.upper))
    if number.type is Type.BOOL:
        return bool(value) if low == high else None, 0
    certified = status is Status.CERTIFIED
    side = -1 if value == low else int(value == high)
    endless = not certified and low != high and value in (-np.inf, np.inf)
    if np.isnan(value) or endless or (side == 0 and not certified):
        return None, 0
    return (int(value) if number.type is Type.INT and np.isfinite(value) else float(value)), side


def nature_in_words(kind: ModelType, natures: list[tuple[Direction, Direction]]) -> str:
    """Return what was assumed about nature: `min, against the agent (maxmin)`."""
    if kind in (ModelType.DTMC, ModelType.MDP) or not natures:
        return "no choice"
    words = []
    for agent, nature in ((a.name.lower(), n.name.lower()) for a, n in dict.fromkeys(natures)):
        side = f"{'with' if agent == nature else 'against'} the agent ({agent}{nature})"
        words.append(f"{nature}, {side}" if kind is ModelType.IMDP else nature)
    return "; ".join(words)


def _status(answer: Quantity, evaluator: PropertyEvaluator) -> Status:
    size = max([1.0, *(largest(s.value) for s in evaluator.solutions)])
    truth, everywhere = answer.type is Type.BOOL, np.ones(len(answer.value), dtype=np.bool_)
    if all(
        bool(number.known[where].all())
        if number.type is Type.BOOL
        else evaluator.limits.closed(number.lower, number.upper, where, size)
        for _, number, where in [(None, answer, everywhere), *evaluator.listed]
    ):
        return Status.CERTIFIED
    ended = {solution.status for solution in evaluator.solutions}
    limits = (Status.INTERRUPTED, Status.TIME_LIMIT, Status.SWEEP_LIMIT)
    open_ = Status.UNDECIDED if truth else Status.GAP_OPEN
    return next((status for status in limits if status in ended), open_)


class Built(NamedTuple):
    """The model that questions are about, and how long it took to build it."""

    model: AnyModel
    seconds: float


class Answered(NamedTuple):
    """The answer to a question, and how long it took."""

    prop: Property
    answer: Answer
    seconds: float


class Failed(NamedTuple):
    """A question that was not answered, and why."""

    prop: Property
    error: RfmdpError
    late: bool = False  # whether no time was left for it


def check_all(
    model: AnyModel | Blueprint,
    properties: Sequence[Property] | str,
    *,
    inner: Inner | None = None,
    limits: Limits | None = None,
    constants: Constants | None = None,
    build: Build | None = None,
    progress: Progress | None = None,
    automaton: HoaAutomaton | None = None,
) -> Iterator[Built | Answered | Failed]:
    """Answer all properties about a model, one after the other; one that fails stops no other.

    Mistakes of properties are found before the model is built, where its text tells. What comes
    first is the model, unless no property fits it. A model that is only read may come by its
    factors (`LatticeMDP`) where all properties have a bound of steps and that is less work.

    Parameters
    ----------
    model
        Built, or read only (`read_model`).
    properties
        Parsed, or a text with any number of them.
    inner, limits, automaton
        As for `solve`; `seconds` are for building and one answer together.
    constants
        Values of constants that the model and the properties leave open.
    build
        How to build a model that is only read; by default as it stands.
    progress
        Called while the model is built, as progress(states, transitions): how many there are.

    Examples
    --------
    >>> from rfmdp.language.build import parse_prism
    >>> coin = parse_prism("dtmc module m x:[0..2]; [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2); "
    ...                    "[] x>0 -> true; endmodule")
    >>> texts = "P=? [ X x=1 ]; P=? [ X x==1 ]; P>=1 [ F x>0 ];"
    >>> [getattr(item, "answer", item.__class__.__name__) for item in check_all(coin, texts)]
    ['Built', Answer(P=? [ X x=1 ]: 0.5, certified, exact), 'Failed', \
Answer(P>=1 [ F x>0 ]: True, certified, exact)]
    """
    started = time.monotonic()
    limits, constants = limits or Limits(), dict(constants or {})
    requests = parse_properties(properties) if isinstance(properties, str) else list(properties)
    fits = fitted(model, requests, constants)
    errors = [fit if isinstance(fit, PrismError) else None for fit in fits]
    if requests and None not in errors:  # nothing to build the model for
        yield from (Failed(prop, e) for prop, e in zip(requests, errors, strict=True) if e)
        return
    deadline = started + limits.seconds

    def in_time(states: int, transitions: int) -> None:
        _seconds_left(deadline)
        if progress is not None:
            progress(states, transitions)

    try:
        if isinstance(model, AnyModel):
            built = model
        else:
            names, work = open_constants(requests), work_of(model, requests, constants)
            if build is not None:
                built = build(names, work, in_time)
            else:
                built = model.build_for(work, constants, also_known=names, progress=in_time)
        yield Built(built, time.monotonic() - started)
        limits = replace(limits, seconds=_seconds_left(deadline))
    except NotCertifiedError as late:
        yield from (Failed(prop, late, late=True) for prop in requests)
        return
    for prop, error in zip(requests, errors, strict=True):
        begun = time.monotonic()
        try:
            if error is not None:
                raise error
            answer = check(
                built, prop, inner=inner, limits=limits, constants=constants, automaton=automaton
            )
            yield Answered(prop, answer, time.monotonic() - begun)
        except RfmdpError as failure:
            yield Failed(prop, failure)


def fitted(
    model: AnyModel | Blueprint, properties: Sequence[Property], constants: Constants
) -> list[CheckedProperty | PrismError | None]:
    """Return properties checked, or why they do not fit; None where only a built model tells."""
    fits = [_fitted(prop, None, constants) for prop in properties]
    if None in fits and not isinstance(model, AnyModel):
        names = model.names(constants, open_constants(properties))
        fits = [_fitted(prop, names, constants) for prop in properties]
    return fits


def _fitted(
    prop: Property, names: CheckedModel | None, constants: Constants
) -> CheckedProperty | PrismError | None:
    try:
        if names is not None:
            inputs = {**prop.constants, **constants}
            return check_property(prop.parsed, prop.file, names, inputs)
        require_supported(prop.parsed.expression, prop.file.source)
    except PrismError as error:
        return error
    return None


def open_constants(properties: Sequence[Property]) -> set[str]:
    """Return the names of constants that properties leave open."""
    return {name for p in properties for name in p.file.open}


def work_of(model: Blueprint, properties: Sequence[Property], constants: Constants) -> Work | None:
    """Return what all properties that fit ask of the model; None: that is not known."""
    pairs = zip(properties, fitted(model, properties, constants), strict=True)
    asked = [(x.expression, p.states) for p, x in pairs if isinstance(x, CheckedProperty)]
    return backward_steps(asked) if asked else None


def _seconds_left(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0.0:
        raise NotCertifiedError(
            "The model was not built in time, so nothing is proven; try a larger limit."
        )
    return seconds
