"""Which guarantee a run reports, and what it rests on."""

from __future__ import annotations

import numpy as np

from rfmdp.outer.solution import Solution
from rfmdp.types import AnyArray, IntArray


class Standing:
    """The solution behind the guarantee, with the counts and other evidence that it rests on.

    Guarantees of sets that are valid at any time hold together, so all looks count, and the best
    guarantee stands. Sets of a single look forget the look before: the last guarantee stands, but
    one that proves something stands until another does.

    `sign` is +1 if larger guarantees are better, else -1; `nothing` is the one that holds without
    any data.
    """

    def __init__(self, anytime: bool, sign: float, nothing: float) -> None:
        self.anytime, self._sign, self._nothing = anytime, sign, nothing
        self.solution: Solution | None = None
        self.evidence: dict[str, AnyArray] = {}  # beside the counts
        self.looks: list[IntArray] = []  # counts (O,) at evaluations
        self.proven_at = 0  # of these, how many the solution rests on

    @property
    def rows(self) -> IntArray | None:
        """The policy (steps, S) that the guarantee is for."""
        return None if self.solution is None else self.solution.policy.rows

    @property
    def proven_looks(self) -> list[IntArray]:
        """The counts that the solution rests on; without one, all that were looked at."""
        return self.looks if self.solution is None else self.looks[: self.proven_at]

    def looked_at(self, counts: IntArray) -> bool:
        """Return whether these counts are those of the last look."""
        return bool(self.looks) and np.array_equal(self.looks[-1], counts)

    def look(self, counts: IntArray, guarantee: float) -> None:
        """Remember counts that are looked at; `guarantee` is the one that stands."""
        if self.anytime:
            self.looks.append(counts.copy())
        elif self.solution is None or guarantee == self._nothing:
            self.solution, self.looks = None, [counts.copy()]

    def improves(self, fresh: float, last: float) -> bool:
        """Return whether a fresh guarantee is to stand in place of the last one."""
        if self.anytime:
            return self.solution is None or self._sign * (fresh - last) > 0.0
        return fresh != self._nothing or last == self._nothing

    def adopt(self, solution: Solution, counts: IntArray, evidence: dict[str, AnyArray]) -> None:
        """Let the guarantee of a solution stand from now on."""
        if not self.anytime:
            self.looks = [counts.copy()]
        self.solution, self.evidence = solution, evidence
        self.proven_at = len(self.looks)
