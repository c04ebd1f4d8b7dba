"""Many questions about one model: built once, each answered or failed by itself, within a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rfmdp.answers.answer import Answer, check
from rfmdp.answers.property import Property, parse_properties
from rfmdp.answers.specification import all_work, backward_steps
from rfmdp.errors import NotCertifiedError, PrismError, RfmdpError
from rfmdp.inner.protocol import Inner
from rfmdp.language.check import CheckedModel, Work
from rfmdp.language.check_properties import check_property, require_supported
from rfmdp.language.names import Constants
from rfmdp.model.frontier import Progress
from rfmdp.model.lattice import AnyModel
from rfmdp.outer.settings import Limits
from rfmdp.temporal.hoa import HoaAutomaton

if TYPE_CHECKING:
    from rfmdp.opening import Blueprint

Build = Callable[[Collection[str], Work | None, Progress], AnyModel]
"""Called as build(constants of the properties, what they ask of the model, progress)."""


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
    limits
        As for `solve`; `seconds` are for building and one answer together.
    constants
        Values of constants that the model and the properties leave open.
    build
        How to build a model that is only read; by default as it stands.
    progress
        Called while the model is built, as progress(states, transitions): how many there are.

    Raises
    ------
    RfmdpError
        If the model cannot be built.

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
    errors = misfits(model, requests, constants)
    if requests and all(error is not None for error in errors):  # nothing to build the model for
        yield from (
            Failed(prop, e) for prop, e in zip(requests, errors, strict=True) if e is not None
        )
        return
    deadline = started + limits.seconds

    def in_time(states: int, transitions: int) -> None:
        _seconds_left(deadline)
        if progress is not None:
            progress(states, transitions)

    try:
        names = open_constants(requests)
        if isinstance(model, AnyModel):
            built = model
        elif build is not None:
            built = build(names, _work(model, requests, constants), in_time)
        else:
            work = _work(model, requests, constants)
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


def misfits(
    model: AnyModel | Blueprint, properties: Sequence[Property], constants: Constants
) -> list[PrismError | None]:
    """Return the errors of properties that do not fit a model, as far as its text tells them."""
    errors = [_misfit(prop, None, constants) for prop in properties]
    if isinstance(model, AnyModel) or all(error is not None for error in errors):
        return errors
    names = model.names(constants, open_constants(properties))
    return errors if names is None else [_misfit(prop, names, constants) for prop in properties]


def open_constants(properties: Sequence[Property]) -> set[str]:
    """Return the names of constants that properties leave open."""
    return {name for p in properties for name in p.file.open}


def _misfit(prop: Property, names: CheckedModel | None, constants: Constants) -> PrismError | None:
    try:
        if names is None:
            require_supported(prop.parsed.expression, prop.file.source)
        else:
            check_property(prop.parsed, prop.file, names, {**prop.constants, **constants})
    except PrismError as error:
        return error
    return None


def _work(
    blueprint: Blueprint, properties: Sequence[Property], constants: Constants
) -> Work | None:
    """Return what all properties that fit ask of the model; None: that is not known."""
    names = blueprint.names(constants, open_constants(properties))
    if names is None:
        return None
    questions: list[Work | None] = []
    for prop in properties:
        with suppress(PrismError):
            all_constants = {**prop.constants, **constants}
            checked = check_property(prop.parsed, prop.file, names, all_constants)
            questions.append(backward_steps(checked.expression, prop.states))
    return all_work(questions) if questions else None


def in_blocks(blueprint: Blueprint, properties: Sequence[Property], constants: Constants) -> bool:
    """Return whether a model can be solved in blocks for all properties that fit it."""
    if blueprint.parsed is None or None not in misfits(blueprint, properties, constants):
        return False
    return _work(blueprint, properties, constants) is not None


def _seconds_left(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0.0:
        raise NotCertifiedError(
            "The model was not built in time, so nothing is proven; try a larger limit."
        )
    return seconds
