"""Sources of samples, everything that a learner may ask them, and what is known: structures.

A structure is a model with sets in place of probabilities (`docs/unknowns.md`). One in which every
set is a point is a truth: the learner sees none of its numbers. It may only know which of them are
equal (for ties). If some set is no point, all sets are knowledge.

A source either draws trajectories under a behaviour that the learner plans, or hands over what was
recorded (`log.source.Log`). The learner counts outcomes of a *learning model*, which has the states
and rows of the structure, and identifiers as marginals. It never looks at true probabilities; only
the reported performance of a policy uses them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import joint_successors, same_segments
from rfmdp.model.description import Assignment, Move, States
from rfmdp.outer.problem import row_rewards
from rfmdp.ragged import owners, segment_any, segment_lengths, segment_sum
from rfmdp.record import Assumption
from rfmdp.sets.families import Interval
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.sources.checks import Evidence
from rfmdp.sources.trajectories import Simulator, Tally, Trajectories, shown_outcomes
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

MOST = 1_000_000  # unknowns of one move
NOMINAL = "the system is a simulation, with the nominal members of the model's sets"

Domains: TypeAlias = Mapping[str, tuple[int, int]]
Effect: TypeAlias = Callable[[States], Assignment]


def unknown(outcomes: int) -> Interval:
    """Return the set of all distributions over some outcomes.

    Every call is an unknown of its own; the same object, wherever it is used, is the same one.
    """
    if outcomes < 1:
        raise ModelError(f"unknown: there must be at least one outcome, found {outcomes}.")
    return Interval(np.zeros(outcomes), np.ones(outcomes))


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """States, rows and successors of a system, and what is known of its probabilities."""

    model: FactoredMDP  # its boxes are what is known of every marginal; the centres mean nothing
    alike: IntArray | None = None  # (M,) the same number: written with equal probabilities

    @staticmethod
    def of(model: FactoredMDP) -> Structure:
        """Return what a learner may know of a model; see the module's docstring.

        Sets that are no boxes are known by the bounds of their entries.
        """
        sets = model.marginals
        model = model.with_provenance(text="")  # which has the probabilities
        if np.all(sets.kind == Kind.SINGLETON):
            lower = np.where(np.repeat(sets.sizes == 1, sets.sizes), 1.0, 0.0)
            hidden = Marginals.from_boxes(sets.outcome_ptr, lower, np.ones(len(lower)))
            alike = equal_numbers(sets.outcome_ptr, sets.nominal)
            return Structure(model.with_marginals(hidden), alike)
        return Structure(
            model.with_marginals(Marginals.from_boxes(sets.outcome_ptr, sets.lower, sets.upper))
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a guarantee that uses prior knowledge assumes."""
        count = int(informed(self.model.marginals).sum())
        if not count:
            return ()
        return (Assumption("prior", informed=count, marginals=len(self.model.marginals)),)


def informed(sets: Marginals) -> BoolArray:
    """Return which sets exclude some distribution over their outcomes, (M,)."""
    several = np.repeat(sets.sizes > 1, sets.sizes)
    narrow = ((sets.lower > 0.0) | (sets.upper < 1.0)) & several
    return segment_any(narrow, sets.outcome_ptr)


def equal_numbers(ptr: IntArray, numbers: FloatArray) -> IntArray:
    """Return for every marginal (M,) the first one with equal numbers (O,), to 12 digits."""
    number, first = same_segments(ptr, np.round(numbers, 12) + 0.0)
    return first[number]


def structure_of(model: FactoredMDP) -> str:
    """Return a digest of what transitions refer to."""
    arrays = (model.row_ptr, model.successor_ptr, model.successors, model.row_actions)
    return digest_of(*(np.asarray(array, dtype=np.int64) for array in arrays))


def digest_of(*arrays: AnyArray) -> str:
    """Return the SHA-256 digest of the bytes of some arrays, in hexadecimal digits."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def unknown_move(
    variables: Domains,
    variable: str,
    *,
    parents: Sequence[str] = (),
    effects: Sequence[Effect] | None = None,
) -> Move:
    """Return a move with an unknown distribution for every combination of values of its parents.

    Parameters
    ----------
    variables
        Domains of all variables, as `build` takes them.
    variable
        The variable, or any name of a factor if `effects` are given.
    parents
        Variables on which the distribution depends, beside the action.
    effects
        The possible outcomes, each a function from states to new values; by default all values
        of the variable.

    Examples
    --------
    >>> move = unknown_move({"x": (0, 4), "wet": (0, 1)}, "x", parents=["wet"],
    ...                     effects=[lambda s: {}, lambda s: {"x": np.minimum(s.x + 1, 4)}])
    >>> len(move.marginals), move.marginals[0].size
    (2, 2)
    """
    for name in (*parents, *(() if effects else (variable,))):
        if name not in variables:
            raise ModelError(
                f"unknown_move: {name} must be one of the variables {', '.join(variables)}."
            )
    low, high = variables.get(variable, (0, 0))
    outcomes = len(effects) if effects else high - low + 1
    sizes = [variables[name][1] - variables[name][0] + 1 for name in parents]
    if math.prod(sizes) > MOST:
        raise UnsupportedError(
            f"unknown_move: {variable} must have at most {MOST} combinations of parents, found "
            f"{math.prod(sizes)}; give fewer parents, or a dependency function (`Move`)."
        )

    def identify(states: States) -> IntArray:
        code = np.zeros(len(states), dtype=np.int64)
        for name, size in zip(parents, sizes, strict=True):
            code = code * size + states[name] - variables[name][0]
        return code

    def effect(states: States, identifier: IntArray, outcome: int) -> Assignment:
        return effects[outcome](states) if effects else {variable: low + outcome}

    # each is an object of its own: the same one would be the same unknown
    return Move(variable, [unknown(outcomes) for _ in range(math.prod(sizes))], effect, identify)


@dataclass(frozen=True, slots=True, eq=False)
class Paid:
    """What visits of N rows paid; (N,) each."""

    sums: FloatArray
    least: FloatArray  # inf where nothing was paid
    most: FloatArray  # -inf where nothing was paid

    @staticmethod
    def nothing(count: int) -> Paid:
        """Return what was paid before the first visit."""
        nobody = np.full(count, np.inf)
        return Paid(np.zeros(count), nobody, -nobody)

    def add(self, at: IntArray, paid: FloatArray) -> None:
        """Take note of further payments (K,), at places (K,)."""
        np.add.at(self.sums, at, paid)
        np.minimum.at(self.least, at, paid)
        np.maximum.at(self.most, at, paid)

    def take(self, at: IntArray) -> Paid:
        """Return and forget what some of them paid."""
        paid = Paid(self.sums[at], self.least[at], self.most[at])
        self.sums[at], self.least[at], self.most[at] = 0.0, np.inf, -np.inf
        return paid


Payer: TypeAlias = Callable[[IntArray, IntArray], Paid]
# what the new visits of some rows paid, by rows (N,) and visits (N,)
Sampler: TypeAlias = Callable[[Trajectories, IntArray, Tally], tuple[int, int]]
# draws until an identifier's total reaches its limit (M,), adds to a tally, and returns the numbers
# of trajectories and steps; trajectory i of a seed is always the same


class Source:
    """What a learner may ask. A source draws trajectories, or it is a `Log` of recorded ones."""

    structure: Structure
    """What is known."""
    words: Mapping[str, str]
    """What tells this source from others, by name; a resumed run needs the same."""
    assumptions: tuple[str, ...] = ()
    """What a guarantee assumes about the source beside independent draws."""
    random_start: bool = False
    """Whether a distribution of the source says in which initial state a trajectory starts."""
    observed: bool = False
    """Whether draws may be other than declared, so that samples are to be checked."""
    last: Collection[int] = ()
    """States in which episodes were over for ever: nothing was paid there."""

    def payer(self, reward: str) -> Payer:
        """Return what says which rewards were paid."""
        raise NotImplementedError

    def sampler(self, counted: FactoredMDP, evidence: Evidence | None = None) -> Sampler:
        """Return what draws trajectories and counts outcomes of a learning model's marginals.

        evidence : takes note of every transition; None where nothing is observed
        """
        raise NotImplementedError

    def truth(self, counted: FactoredMDP) -> FactoredMDP | None:
        """Return the learning model with true probabilities for reports, if they are known."""


class Simulated(Source):
    """A model that is simulated: its nominal probabilities are the hidden truth.

    Parameters
    ----------
    model
        The truth.
    known
        The same model with sets in place of probabilities: what the learner may know. By default
        the model says it itself; see `rfmdp.sources.source`.
    ends : (S,)
        Where trajectories end; nowhere by default.
    """

    def __init__(
        self,
        model: FactoredMDP,
        known: FactoredMDP | None = None,
        *,
        ends: BoolArray | None = None,
    ) -> None:
        self._truth, self._ends = model, ends
        self._counted: tuple[FactoredMDP, FactoredMDP] | None = None  # the last one, with numbers
        self.structure = Structure.of(model if known is None else known)
        structure = structure_of(model)
        if known is not None and structure_of(known) != structure:
            raise ModelError(
                "Simulated: what is known must have the states, rows and successors of the truth; "
                "they differ. Build both from one description."
            )
        sets = model.marginals
        self.assumptions = () if np.all(sets.kind == Kind.SINGLETON) else (NOMINAL,)
        probabilities = digest_of(sets.outcome_ptr, sets.nominal)
        self.words = {
            "source": "simulation", "structure": structure, "probabilities": probabilities
        }  # fmt: skip
        if ends is not None:
            places = f"{int(ends.sum())} states {digest_of(ends)[:16]}"
            self.words["trajectories end in"] = places

    def sampler(self, counted: FactoredMDP, evidence: Evidence | None = None) -> Sampler:
        """Return what draws and counts; it draws as declared, so there is nothing to check."""
        return Simulator(self.truth(counted), self._ends).run_until

    def payer(self, reward: str) -> Payer:
        """Return the rewards of the truth, which are always the same."""
        paid = row_rewards(self._truth, reward)
        return lambda rows, visits: Paid(paid[rows] * visits, paid[rows], paid[rows])

    def truth(self, counted: FactoredMDP) -> FactoredMDP:
        """Return the learning model with the probabilities of the truth."""
        if self._counted is None or self._counted[0] is not counted:
            self._counted = counted, counted_truth(self._truth, counted)
        return self._counted[1]


def counted_truth(truth: FactoredMDP, counted: FactoredMDP) -> FactoredMDP:
    """Return a learning model with the probabilities that a truth gives to its outcomes.

    Both have the same states and rows; the learning model may have further ones behind them. An
    outcome gets the probability of the successors that show it, in the first row of its identifier.
    """
    _, slots = np.unique(counted.row_marginals, return_index=True)
    rows = np.unique(owners(counted.marginal_ptr)[slots])
    sizes, targets, mass = joint_successors(truth, rows, truth.marginals.nominal)
    pair, slot, outcome, _ = shown_outcomes(counted, np.repeat(rows, sizes), targets)
    ptr = counted.marginals.outcome_ptr
    first = np.isin(slot, slots)
    place = ptr[counted.row_marginals[slot]] + outcome
    sums = np.zeros(int(ptr[-1]))
    np.add.at(sums, place[first], mass[pair[first]])
    points = sums / np.repeat(segment_sum(sums, ptr), segment_lengths(ptr))
    return counted.with_marginals(Marginals.from_points(ptr, points))
