"""Trajectories of a known model under a policy, by compiled code, and what they show.

Trajectory i of seed s is the same for every cut into batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.solution import Policy
from rfmdp.sets.marginals import Marginals
from rfmdp.sources.transitions import Tally
from rfmdp.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, frozen

MOST = 500_000_000  # transitions that are recorded at once
NO_INTS, NO_FLOATS = np.empty(0, dtype=np.int64), np.empty(0)
NO_ROWS = np.empty(0, dtype=np.int32)
SLICE = 2_000_000  # steps between two looks at Ctrl-C, at most: a fraction of a second


@dataclass(frozen=True, slots=True, eq=False)
class Behaviour:
    """How rows are picked: a rule per step (the last one repeats), and how often another row.

    Row -1 stands for any row of the state, all with the same probability.
    """

    rows: IntArray  # (steps, S)
    other: float = 0.0  # probability of one of the other rows of the state

    def __post_init__(self) -> None:
        if not 0.0 <= self.other <= 1.0:
            raise ModelError(f"Behaviour: `other` must be a probability, found {self.other!r}.")
        object.__setattr__(self, "rows", frozen(np.atleast_2d(np.asarray(self.rows, np.int64))))

    @staticmethod
    def uniform(model: FactoredMDP) -> Behaviour:
        """Return the behaviour that takes every row with the same probability."""
        return Behaviour(np.full((1, model.states), -1, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Trajectories:
    """Which trajectories to draw: number i of a seed is always the same."""

    behaviour: Behaviour
    length: int  # most steps of one
    count: int
    seed: int
    first: int = 0  # the number of the first one


@dataclass(slots=True, eq=False)
class DrawnTrajectories:
    """What some trajectories gave; their N steps are empty unless they are traced."""

    counts: IntArray  # (O,) outcomes of the marginals
    returns: FloatArray  # (trajectories,)
    final: IntArray  # (trajectories,) last states
    lengths: IntArray  # (trajectories,) their steps
    steps: int
    rows: Int32Array  # (N,) that were taken, in their order; a row says state and action
    successors: Int32Array  # (N,)


class Simulator:
    """A known model made ready for the kernels: the hidden truth of learning experiments.

    Its nominal probabilities are those that are drawn from. A trajectory ends early in the states
    `stop` (S,), by default nowhere.
    """

    def __init__(self, model: FactoredMDP, stop: BoolArray | None = None) -> None:
        self.model = model
        sets = model.marginals
        begin, size = sets.outcome_ptr[:-1], sets.sizes
        slots = np.stack([begin, size], axis=1)[model.row_marginals]
        arrays = (
            *(model.row_ptr, model.marginal_ptr, np.ascontiguousarray(slots)),
            *(model.successor_ptr, model.successors),
        )
        stop = np.zeros(model.states, dtype=np.bool_) if stop is None else stop.copy()
        initial = np.array(model.initial, dtype=np.int64)
        self._world = arrays, alias_tables(sets), initial, stop

    def run(
        self,
        request: Trajectories,
        *,
        reward: FloatArray | None = None,
        discount: float = 1.0,
        traced: bool = False,
    ) -> DrawnTrajectories:
        """Run trajectories, some at a time, so that Ctrl-C ends them; rows pay `reward` (R,)."""
        paid = NO_FLOATS if reward is None else np.ascontiguousarray(reward), float(discount)
        counts = np.zeros(len(self.model.marginals.nominal), dtype=np.int64)
        tally = Tally(counts, NO_INTS, NO_INTS, NO_INTS)
        returns, steps = np.empty(request.count), 0
        final, lengths = np.empty((2, request.count), dtype=np.int64)
        most = request.count * request.length if traced else 0
        rows, successors = np.empty((2, most), dtype=np.int32)
        size = max(1, SLICE // max(request.length, 1))
        for begin in range(0, request.count, size):
            end = min(begin + size, request.count)
            batch = replace(request, first=request.first + begin, count=end - begin)
            ends = returns[begin:end], final[begin:end], lengths[begin:end]
            trace = rows[steps:], successors[steps:]
            steps += self.run_until(batch, NO_INTS, tally, paid=paid, ends=ends, trace=trace)[1]
        rows, successors = rows[:steps], successors[:steps]
        return DrawnTrajectories(counts, returns, final, lengths, steps, rows, successors)

    def run_until(
        self,
        request: Trajectories,
        limit: IntArray,
        tally: Tally,
        *,
        paid: tuple[FloatArray, float] = (NO_FLOATS, 1.0),
        ends: tuple[FloatArray, IntArray, IntArray] = (NO_FLOATS, NO_INTS, NO_INTS),
        trace: tuple[Int32Array, Int32Array] = (NO_ROWS, NO_ROWS),
    ) -> tuple[int, int]:
        """Run until a marginal's total reaches its limit; return (trajectories, steps) done.

        What else is asked of `kernels.simulate.run_trajectories` is written to `ends` and `trace`.
        """
        from rfmdp.kernels.simulate import run_trajectories

        behaviour = request.behaviour.rows, request.behaviour.other
        which = request.length, request.seed, request.first, request.count
        limits = self.model.row_marginals, frozen(limit)
        payment = frozen(paid[0]), paid[1]
        done, steps = run_trajectories(
            self._world, behaviour, which, payment, tally.kernel, limits, ends, trace
        )
        return int(done), int(steps)


def record(
    model: FactoredMDP,
    policy: Policy | Behaviour | None,
    steps: int,
    trajectories: int,
    seed: int = 0,
    stop: BoolArray | None = None,
) -> DrawnTrajectories:
    """Simulate trajectories of at most `steps` steps and return all their transitions.

    `stop` (S,) are states in which a trajectory ends early. The trajectories are `simulate`'s.
    """
    if steps < 1 or trajectories < 1 or steps * trajectories > MOST:
        raise ModelError(
            f"record: 1 <= steps * trajectories <= {MOST} must hold, found {steps}, {trajectories}."
        )
    request = Trajectories(behaviour_of(model, policy), steps, trajectories, seed)
    return Simulator(model, stop).run(request, traced=True)


def alias_tables(sets: Marginals) -> tuple[FloatArray, AnyArray]:
    """Return the tables (O,) by which nominal distributions are drawn from, see the kernel."""
    from rfmdp.kernels.simulate import alias_tables as fill

    accept, alias = np.empty(len(sets.nominal)), np.empty(len(sets.nominal), dtype=np.int32)
    work = np.empty(int(np.max(sets.sizes, initial=0)), dtype=np.int64)
    fill(sets.outcome_ptr, sets.nominal, work, accept, alias)
    return accept, alias


def behaviour_of(model: FactoredMDP, policy: Policy | Behaviour | None) -> Behaviour:
    """Return a policy as a behaviour; None is uniform."""
    if policy is None:
        return Behaviour.uniform(model)
    if isinstance(policy, Policy):
        policy = Behaviour(policy.rows)
    rows = policy.rows if isinstance(policy, Behaviour) else np.empty((0, 0), dtype=np.int64)
    if rows.shape[1:] != (model.states,) or np.any(
        (rows != -1) & ((rows < model.row_ptr[:-1]) | (rows >= model.row_ptr[1:]))
    ):
        raise UnsupportedError(
            "simulate: must be given a policy or a behaviour that names a row of its own, or -1, "
            f"for each state of the model, or None; found a {type(policy).__name__}."
        )
    return policy
