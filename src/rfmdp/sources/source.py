"""Sources of samples: everything that a learner may ask them.

A source says what is known: its `structure` has states, rows, successors, rewards, labels, and sets
of distributions that are possible at all. It either draws trajectories under a behaviour that the
learner plans, or hands over what was recorded (`log.source.Log`). The learner counts outcomes of a
*learning model*, which has the states and rows of the structure, and identifiers as marginals. It
never looks at true probabilities; only the reported performance of a policy uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.flatten import joint_successors
from rfmdp.outer.problem import row_rewards
from rfmdp.ragged import owners, segment_lengths, segment_sum
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.sources.checks import Evidence
from rfmdp.sources.simulator import Simulator, Trajectories
from rfmdp.sources.structure import Structure, digest_of, structure_of
from rfmdp.sources.transitions import Tally, shown_outcomes
from rfmdp.types import BoolArray, FloatArray, IntArray

NOMINAL = "the system is a simulation, with the nominal members of the model's sets"


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
        the model says it itself; see `rfmdp.sources.structure`.
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
    pair, slot, outcome = shown_outcomes(counted, np.repeat(rows, sizes), targets).entries()
    ptr = counted.marginals.outcome_ptr
    first = np.isin(slot, slots)
    place = ptr[counted.row_marginals[slot]] + outcome
    sums = np.zeros(int(ptr[-1]))
    np.add.at(sums, place[first], mass[pair[first]])
    points = sums / np.repeat(segment_sum(sums, ptr), segment_lengths(ptr))
    return counted.with_marginals(Marginals.from_points(ptr, points))
