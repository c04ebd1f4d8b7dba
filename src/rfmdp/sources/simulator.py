"""Simulation: trajectories of a known model under a policy, by compiled code.

    result = simulate(model, solution.policy, steps=100, trajectories=10_000, seed=7)
    result.mean, result.half_width, result.reached["goal"]

Trajectory i of seed s is the same for every number of threads and every cut into batches.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.learning.tally import Tally
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.problem import row_rewards
from rfmdp.outer.solution import Policy
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray, frozen

Z_95 = 1.959963984540054


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


@dataclass(slots=True, eq=False)
class Batch:
    """What some trajectories gave."""

    counts: IntArray  # (O,) outcomes of the marginals
    returns: FloatArray  # (trajectories,)
    final: IntArray  # (trajectories,) last states
    steps: int


Arrays: TypeAlias = tuple[AnyArray, ...]


class Simulator:
    """A known model made ready for the kernels: the hidden truth of learning experiments.

    Parameters
    ----------
    model
        Its nominal probabilities are those that are drawn from.
    stop
        (S,) states in which a trajectory ends early; none by default.
    """

    def __init__(self, model: FactoredMDP, stop: BoolArray | None = None) -> None:
        from rfmdp.kernels.simulate import alias_tables

        self.model = model
        sets = model.marginals
        accept, alias = np.empty(len(sets.nominal)), np.empty(len(sets.nominal), dtype=np.int32)
        alias_tables(sets.outcome_ptr, sets.nominal, accept, alias)
        self._tables: Arrays = (accept, alias)
        begin, size = sets.outcome_ptr[:-1], sets.sizes
        slots = np.stack([begin, size], axis=1)[model.row_marginals]
        self._model: Arrays = (
            *(model.row_ptr, model.marginal_ptr, np.ascontiguousarray(slots)),
            *(model.successor_ptr, model.successors),
        )
        self._stop = np.zeros(model.states, dtype=np.bool_) if stop is None else stop.copy()
        self._initial = np.array(model.initial, dtype=np.int64)

    def run(
        self,
        behaviour: Behaviour,
        length: int,
        first: int,
        trajectories: int,
        seed: int,
        *,
        reward: FloatArray | None = None,
        discount: float = 1.0,
        threads: int | None = None,
    ) -> Batch:
        """Run the trajectories first, first + 1, ... of a seed.

        Parameters
        ----------
        length : most steps of a trajectory
        reward : (R,) paid by taking a row; nothing by default
        discount : factor per step of the reward
        threads : parts to run side by side; one by default. The result does not depend on it.
        """
        from rfmdp.kernels.simulate import run_parallel

        parts = max(1, min(threads or 1, trajectories))
        paid = np.zeros(self.model.rows) if reward is None else np.ascontiguousarray(reward)
        counts = np.zeros((parts, len(self._tables[0])), dtype=np.int64)
        returns = np.empty(trajectories)
        final = np.empty(trajectories, dtype=np.int64)
        steps = np.zeros(parts, dtype=np.int64)
        run_parallel(
            self._model, self._tables, behaviour.rows, behaviour.other, self._initial, self._stop,
            paid, float(discount), length, seed, first, trajectories, counts, returns, final, steps,
        )  # fmt: skip
        return Batch(counts.sum(axis=0), returns, final, int(steps.sum()))

    def run_until(
        self,
        behaviour: Behaviour,
        length: int,
        first: int,
        trajectories: int,
        seed: int,
        limit: IntArray,
        tally: Tally,
    ) -> tuple[int, int]:
        """Run until some marginal's total reaches its limit; add to the tally.

        Returns (trajectories, steps) done.
        """
        from rfmdp.kernels.simulate import run_until_doubled

        done, steps = self.call(
            run_until_doubled, behaviour, length, seed, first, trajectories,
            self.model.row_marginals, limit, tally.arrays,
        )  # fmt: skip
        return int(done), int(steps)

    def call(self, kernel: Any, behaviour: Behaviour, *rest: Any) -> Any:
        """Call a kernel that takes the model, a behaviour, and then the rest."""
        return kernel(
            self._model, self._tables, behaviour.rows, behaviour.other, self._initial, self._stop,
            *rest,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """Statistics of independent trajectories; `half_width` is an estimate, not a guarantee."""

    trajectories: int
    steps: int
    mean: float  # of the returns
    deviation: float
    half_width: float  # of the usual 95% interval of the mean, by the normal distribution
    smallest: float
    largest: float
    ended: dict[str, float]  # share of trajectories whose last state has the label
    returns: FloatArray
    final: IntArray
    seconds: float


def simulate(
    model: FactoredMDP,
    policy: Policy | Behaviour | None,
    steps: int,
    trajectories: int,
    seed: int = 0,
    *,
    reward: str | None = None,
    discount: float = 1.0,
    stop: BoolArray | None = None,
    threads: int | None = None,
) -> Simulation:
    """Return statistics of trajectories of `steps` steps from the initial states.

    Parameters
    ----------
    model
        Probabilities are the nominal ones.
    policy
        A policy, a behaviour, or None: every choice with the same probability.
    reward
        A reward structure by name; None is the first one, if there is any.
    stop
        (S,) states in which a trajectory ends early.

    Examples
    --------
    >>> from rfmdp.sets.families import Singleton
    >>> coin = FactoredMDP.from_rows(
    ...     [[([0], [0, 1])], [([], [1])]], [Singleton([0.5, 0.5])],
    ...     labels={"tails": [False, True]})
    >>> result = simulate(coin, None, steps=1, trajectories=1000, seed=1)
    >>> result.steps, abs(result.ended["tails"] - 0.5) < 0.1
    (1000, True)
    """
    if steps < 1 or trajectories < 1:
        raise ModelError(
            f"simulate: steps and trajectories must be at least 1, found {steps}, {trajectories}."
        )
    if reward is None and not model.rewards:
        paid = np.zeros(model.rows)
    else:
        paid = row_rewards(model, reward)
    started = time.perf_counter()
    simulator = Simulator(model, stop)
    batch = simulator.run(
        behaviour_of(model, policy), steps, 0, trajectories, seed,
        reward=paid, discount=discount, threads=threads,
    )  # fmt: skip
    deviation = float(np.std(batch.returns, ddof=1)) if trajectories > 1 else 0.0
    return Simulation(
        trajectories=trajectories,
        steps=batch.steps,
        mean=float(np.mean(batch.returns)),
        deviation=deviation,
        half_width=Z_95 * deviation / math.sqrt(trajectories),
        smallest=float(np.min(batch.returns)),
        largest=float(np.max(batch.returns)),
        ended={name: float(np.mean(where[batch.final])) for name, where in model.labels.items()},
        returns=batch.returns,
        final=batch.final,
        seconds=time.perf_counter() - started,
    )


def behaviour_of(model: FactoredMDP, policy: Policy | Behaviour | None) -> Behaviour:
    """Return a policy as a behaviour; None is uniform."""
    if policy is None:
        return Behaviour.uniform(model)
    if isinstance(policy, Policy):
        policy = Behaviour(policy.rows)
    rows = policy.rows
    fits = rows.shape[1:] == (model.states,) and bool(
        np.all((rows == -1) | ((rows >= model.row_ptr[:-1]) & (rows < model.row_ptr[1:])))
    )
    if not fits:
        raise UnsupportedError(
            "simulate: the policy must name a row of its own for each state of the model, or -1."
        )
    return policy
