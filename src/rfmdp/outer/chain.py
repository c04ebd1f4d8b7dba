"""The chain that remains when agent and nature are fixed, and what its states are worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rfmdp.inner.protocol import successor_starts
from rfmdp.kernels import sweep as kernels
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.settings import Clock
from rfmdp.outer.solution import Stats
from rfmdp.ragged import owners
from rfmdp.types import AnyArray, FloatArray, IntArray

Solve: TypeAlias = Callable[[FloatArray], FloatArray | None]

DIRECT = 3000  # states of a chain that is solved by elimination if it mixes slowly
BAND = 1e9  # steps of an elimination that larger chains are worth
EFFORT = 100_000  # entries that are swept between two looks at the clock


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """States that move on their own, and followers, each worth as much as its leader."""

    states: IntArray  # (n,) that move on their own
    followers: IntArray  # (m,)
    leaders: IntArray  # (m,) the leader of every follower, one of `states`

    @classmethod
    def alone(cls, states: IntArray) -> Nodes:
        """Return states that all move on their own."""
        none = np.empty(0, dtype=np.int64)
        return cls(states, none, none)

    @classmethod
    def joined(cls, states: IntArray, label: IntArray) -> Nodes:
        """Return states of which the first one of a group leads it; label (S,), -1: in none."""
        grouped = states[label[states] >= 0]
        if not len(grouped):
            return cls.alone(states)
        first = np.empty(int(label[grouped].max()) + 1, dtype=np.int64)
        first[label[grouped][::-1]] = grouped[::-1]  # the last one written is the first
        leaders = first[label[grouped]]
        follows = leaders != grouped
        moves = label[states] < 0
        moves[np.flatnonzero(~moves)[~follows]] = True
        return cls(states[moves], grouped[follows], leaders[follows])


class Chain:
    """x = reward + discount P x on the states of some nodes; every state takes one row.

    Parameters
    ----------
    choice, answers
        The row (S,) of every state, and nature's answers to those of the nodes, concatenated.
    value
        The values (S,) of all other states; those of the nodes are where `x` begins.
    place
        Memory (S,), all of it -1, and left so; for small chains of large models.
    """

    def __init__(
        self,
        model: FactoredMDP,
        nodes: Nodes,
        choice: IntArray,
        answers: FloatArray,
        value: FloatArray,
        reward: FloatArray,
        discount: float = 1.0,
        place: IntArray | None = None,
    ) -> None:
        states = nodes.states
        self.nodes = nodes
        self._factors: Solve | None = None
        self._packed = (
            np.empty(len(states) + 1, dtype=np.int64),
            np.empty(len(answers), dtype=np.int32),
            np.empty(len(answers)),
            np.empty(len(states)),
        )
        begin = successor_starts(model, choice[states])
        self._rows = model, choice, begin, answers, discount
        self._place = np.full(model.states, -1, dtype=np.int64) if place is None else place
        self.pay(value, reward)

    def pay(self, value: FloatArray, reward: FloatArray) -> None:
        """Take other values (S,) and rewards (R,); the chain moves as before."""
        (model, choice, begin, answers, discount), place = self._rows, self._place
        states, nodes = self.nodes.states, self.nodes
        self.x = value[states]
        place[states] = np.arange(len(states))
        place[nodes.followers] = place[nodes.leaders]
        moves = model.successor_ptr, model.successors, begin, answers
        kernels.pack_chain((states, choice, place), moves, value, reward, discount, self._packed)
        place[states], place[nodes.followers] = -1, -1

    def put(self, value: FloatArray) -> None:
        """Write the values of the nodes to `value` (S,)."""
        value[self.nodes.states] = self.x
        value[self.nodes.followers] = value[self.nodes.leaders]

    def sweep(self, sweeps: int, accuracy: FloatArray) -> tuple[int, bool]:
        """Sweep until no value changes by more than its accuracy (n,).

        Return the number of sweeps, at most `sweeps`, and whether that was reached.
        """
        done, settled = kernels.sweep_chain(self._packed, self.x, sweeps, accuracy)
        return int(done), bool(settled)

    def settle(self, clock: Clock, stats: Stats, sweeps: int, accuracy: FloatArray) -> bool:
        """Sweep as `sweep` does with an eye on the clock; return whether the values settled."""
        burst = 1 + EFFORT // max(int(self._packed[0][-1]), 1)
        while sweeps > 0:
            done, settled = self.sweep(min(burst, sweeps), accuracy)
            stats.cheap_sweeps += done
            sweeps -= done
            clock.check()
            if settled:
                return True
        return False

    @property
    def direct(self) -> bool:
        """Whether to solve it if it mixes slowly: it is small, or moves to near numbers."""
        if len(self.x) <= DIRECT:
            return True
        ptr, targets = self._packed[:2]
        numbers = self.nodes.states
        distance = np.abs(numbers[owners(ptr)] - numbers[targets[: ptr[-1]]])
        return len(self.x) * float(np.max(distance, initial=1)) ** 2 <= BAND

    def solve(self) -> bool:
        """Solve by sparse elimination; return False for a chain with a trap, or nearly.

        Where nothing is below 0, values below it come from a pivot that rounding has turned.
        """
        ptr, targets, weights, constants = self._packed
        if self._factors is None:
            count, end = len(self.x), int(ptr[-1])
            columns = np.insert(targets[:end], ptr[:-1], np.arange(count))
            entry = np.insert(-weights[:end], ptr[:-1], 1.0)
            self._factors = elimination(ptr + np.arange(count + 1), columns, entry)
        x = None if self._factors is None else self._factors(constants)
        if x is None or (np.min(x, initial=0.0) < 0.0 and not np.any(constants < 0.0)):
            return False
        self.x = x
        return True


def elimination(
    ptr: AnyArray, columns: AnyArray, entry: FloatArray, panel: int | None = None
) -> Solve | None:
    """Return a function from b (n,) to x with A x = b; None for a chain with a trap.

    A is given by rows: pointers (n + 1,), columns and entries. The function returns None if x is
    not finite. `panel` is how many columns are taken at once: 1 is best for very short ones.
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    count = len(ptr) - 1
    turned = csc_array((entry, columns, ptr), shape=(count, count))  # rows are columns to SciPy
    try:
        # diagonals dominate, so all are pivots
        factors = splu(turned, diag_pivot_thresh=0.0, relax=panel, panel_size=panel)
    except RuntimeError:  # singular
        return None

    def solve(right: FloatArray) -> FloatArray | None:
        x: FloatArray = factors.solve(right, "T")
        return x if np.isfinite(x).all() else None

    return solve
