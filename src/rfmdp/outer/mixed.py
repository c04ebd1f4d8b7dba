"""Rewards of both signs to a target.

A play that misses the target is worth plus infinity, whatever it pays. So those who minimise have
to force the target, and the graph says where they can. There the value is between

    a lower bound L   if  L + d <= T(L)  in all open states, for some d > 0
    an upper bound U  if  T(U) + d <= U  in all open states, for some d > 0

Why stands in docs/soundness.md. Where U is the guarantee of a policy, the policy itself must force
the target, with the help of a nature that minimises.

Candidates are values of the same game in which each step pays d more, or less.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.inner.protocol import Side
from rfmdp.objective import MIN
from rfmdp.outer.backups import ProvenBackups
from rfmdp.outer.policy_iteration import Guess, PolicyIteration
from rfmdp.outer.region import Region, analyse
from rfmdp.outer.task import STOPS, StateBounds, Task, largest, status_of
from rfmdp.ragged import entries
from rfmdp.rounding import UNIT
from rfmdp.types import FloatArray

ATTEMPTS, FAILURES = 12, 3
FIRST = 1e-4  # of the largest reward: what a step pays more or less at first
LEAST = 1e4 * UNIT  # of the largest value: less would drown in rounding


def solve_mixed(task: Task, warm: FloatArray | None = None) -> StateBounds:
    """Return bounds of all states, from a first guess (S,) of their values.

    Raises
    ------
    ModelError
        If those who minimise may go round for ever at no mean cost, so that nothing is proven.
    """
    with task.stats.phase("graph"):
        region = analyse(task.problem, task.clock)
    lower, upper = region.trivial_bounds()
    result = StateBounds(lower, upper, np.where(region.open, 0.0, region.known), region.choice)
    if not region.open.any():
        return result
    sides = [Shifted(task, region.with_first_policy(), side, warm) for side in (1.0, -1.0)]
    paid = largest(task.problem.reward[entries(task.problem.model.row_ptr, sides[0].states)])
    shift, failures = FIRST * paid, 0
    try:
        for _ in range(ATTEMPTS):
            proven = [side.prove(shift, result) for side in sides]
            excess = task.excess(result.lower, result.upper)
            least = LEAST * max(largest(result.value), paid)
            failures += not all(proven)
            if excess <= 1.0 or shift <= least or failures == FAILURES:
                break
            step = max(0.3 / excess, 1e-4) if all(proven) else 1e-2
            shift = max(shift * min(step, 0.5), least)
    except STOPS as stop:
        result.stopped = status_of(stop)
    if task.proves == Side.BOTH and result.stopped is None:
        for side, bound in zip(sides, (result.upper, result.lower), strict=True):
            if np.isinf(bound[side.states]).any():
                side.refuse()
    return result


class Shifted:
    """The search for one side (+1 upper): every step pays more if it is the upper one."""

    def __init__(self, task: Task, region: Region, side: float, warm: FloatArray | None) -> None:
        self.task, self.region, self.side = task, region, side
        self.backups = ProvenBackups(region, task)
        self.states, self.warm = self.backups.states, warm
        self.guess: Guess | None = None

    def prove(self, shift: float, result: StateBounds) -> bool:
        """Take a candidate as the bound of the side, if that is proven; return whether it is."""
        task, region, side = self.task, self.region, self.side
        if not task.can_prove(side):
            return True
        problem = replace(region.problem, reward=region.problem.reward + side * shift)
        search = PolicyIteration(replace(task, problem=problem), replace(region, problem=problem))
        self.guess = self.guess or search.start(self.warm)
        scale = max(largest(self.guess.value[self.states]), largest(problem.reward))
        search.improve(self.guess, max(0.1 * shift / scale, 4.0 * UNIT))
        result.value = np.where(region.open, self.guess.value, region.known)
        with task.stats.phase("certify"):
            if not self._holds(self.guess):
                return False
        result.put(side, result.value.copy())
        if side == -region.problem.agent.sign:
            result.choice = np.where(region.open, self.guess.choice, region.choice)
        return True

    def _holds(self, guess: Guess) -> bool:
        """Return whether a guess is a bound of its side, see the module's docstring."""
        problem, region = self.region.problem, self.region
        agent, nature = problem.agent, problem.nature
        fixed = None
        if self.side == -agent.sign:  # the guarantee, of one policy
            fixed = np.where(region.open, guess.choice, region.choice)
        bound = np.where(region.open, guess.value, region.known)
        image = self.backups.of(bound, self.side, fixed, region.groups)
        if not np.all(self.side * (image - bound[self.states]) < 0.0):  # not a number fails
            return False
        if self.side < 0.0 or fixed is None:
            return True
        ends = region.graph.with_rows(fixed).almost_sure(
            problem.target, agent=agent.opposite, nature=nature.opposite
        )
        return bool(ends[self.states].all())

    def refuse(self) -> None:
        """Raise ModelError with a state where nothing is proven, that of the least value."""
        problem, model, guess = self.region.problem, self.region.problem.model, self.guess
        least = 0 if guess is None else int(np.argmin(guess.value[self.states]))
        state = int(self.states[least])
        who = "the agent" if problem.agent is MIN else "nature"
        side = "below" if self.side < 0.0 else "above"
        raise ModelError(
            f"The reward to a target has no proven bound from {side}: with rewards of both signs "
            f"{who} must not be able to go round for ever at a mean reward <= 0, as it seems to "
            f"from {model.state_name(state)}. Use C<=k (Cumulative) or C{{discount=0.9}}."
        )
