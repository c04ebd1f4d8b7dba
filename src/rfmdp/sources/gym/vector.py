"""Episodes of a vectorised Gymnasium environment: all copies side by side, round by round.

In a round every copy runs one episode. What a copy does after the end of its episode is ignored,
so short episodes are not preferred. Then transitions are counted, and all copies begin anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sources.gym.spaces import read_many, stacked
from rfmdp.sources.gym.walk import CUT, NEVER, PendingTransitions, pick_row, seed_of
from rfmdp.sources.simulator import Behaviour, DrawnTrajectories, Trajectories
from rfmdp.sources.tally import Tally
from rfmdp.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.sources.gym.source import GymSource


class VectorWalker:
    """Runs episodes of a vectorised environment under behaviours; a `Sampler`."""

    def __init__(
        self, source: GymSource, counted: FactoredMDP, stop: BoolArray | None = None
    ) -> None:
        self._source, self._counted, self._env = source, counted, source.env
        model = source.structure.model
        self._row_ptr = model.row_ptr.tolist()
        self._start = int(model.row_ptr[model.initial[0]]) if source.starts else -1
        self._stop = np.zeros(model.states, dtype=np.bool_) if stop is None else stop
        self._seen = PendingTransitions(source, counted)
        self._remembered: dict[Any, list[int]] = {}  # values by observation
        self._mode = getattr(self._env.metadata.get("autoreset_mode"), "name", "NEXT_STEP")

    def run_until(self, wanted: Trajectories, limit: IntArray, tally: Tally) -> tuple[int, int]:
        """Run rounds until an identifier's total reaches its limit; add to the tally."""
        done = steps = 0
        watched = bool(np.any(limit < NEVER))
        for part in self._rounds(wanted):
            steps += int(self._round(part)[0].sum())
            done += part.count
            self._seen.count(tally)
            if watched and np.any(tally.totals >= limit):
                break
        return done, steps

    def run(
        self,
        wanted: Trajectories,
        *,
        reward: FloatArray | None = None,
        discount: float = 1.0,
    ) -> DrawnTrajectories:
        """Run episodes of a frozen behaviour; return what they gave."""
        tally = Tally.empty(self._counted)
        returns, final, steps = [np.zeros(0)], [np.zeros(0, dtype=np.int64)], 0
        for part in self._rounds(wanted):
            lengths, last, earned, cut = self._round(part, reward, discount)
            if cut:
                raise UnsupportedError(CUT)
            returns.append(earned[: part.count])
            final.append(last[: part.count])
            steps += int(lengths.sum())
            self._seen.count(tally)
        return DrawnTrajectories(
            tally.counts, np.concatenate(returns), np.concatenate(final), steps
        )

    def _rounds(self, wanted: Trajectories) -> Iterator[Trajectories]:
        """Cut trajectories into those of one round each."""
        copies = self._env.num_envs
        for done in range(0, wanted.count, copies):
            count = min(copies, wanted.count - done)
            yield replace(wanted, count=count, first=wanted.first + done)

    def _round(
        self, wanted: Trajectories, reward: FloatArray | None = None, discount: float = 1.0
    ) -> tuple[IntArray, IntArray, FloatArray, bool]:
        """Run one episode in each of the first copies.

        Returns (steps, last states, returns), one per copy, and whether one was cut off early.
        """
        source, copies, count = self._source, self._env.num_envs, wanted.count
        random = Random(f"{wanted.seed} {wanted.first}")
        seeds = [seed_of(wanted.seed, wanted.first + i) for i in range(copies)]
        observations, _ = self._env.reset(seed=seeds)
        alive = np.arange(copies) < count
        state = self._states(self._values(observations), alive)
        for s in state[:count].tolist():
            source.check_start(s)
            if self._start >= 0:
                self._seen.note(self._start, s, np.nan)
        alive = alive & ~self._over(state)
        steps, earned, cut = np.zeros(copies, dtype=np.int64), np.zeros(copies), False
        for t in range(wanted.length):
            if not alive.any():
                break
            rows = self._chosen(wanted.behaviour, t, state, alive, random)
            actions = [source.actions[row if row >= 0 else rows[alive][0]] for row in rows.tolist()]
            observations, paid, terminated, truncated, info = self._env.step(
                stacked(source.action_space, actions)
            )
            ended = terminated | truncated
            after = self._states(self._final(observations, info, ended, alive), alive)
            for i in np.flatnonzero(alive).tolist():
                self._seen.note(int(rows[i]), int(after[i]), float(paid[i]))
                if terminated[i]:
                    source.check_end(int(after[i]))
                if reward is not None:
                    earned[i] += discount**t * float(reward[rows[i]])
            steps += alive
            cut |= bool(np.any(truncated & ~terminated & alive)) and t + 1 < wanted.length
            state = np.where(alive, after, state)
            alive = alive & ~ended & ~self._over(state)
            if self._mode == "DISABLED" and ended.any() and alive.any():
                self._env.reset(options={"reset_mask": ended})
        return steps, state, earned, cut

    def _over(self, state: IntArray) -> BoolArray:
        """Return where nothing is done any more."""
        actions, ptr = self._source.actions, self._row_ptr
        idle = [actions[ptr[s]] is None for s in state.tolist()]
        return np.asarray(self._stop[state] | np.array(idle, dtype=np.bool_))

    def _chosen(
        self, behaviour: Behaviour, step: int, state: IntArray, alive: BoolArray, random: Random
    ) -> IntArray:
        """Return a row for every copy that is alive, -1 for the others."""
        rows = np.where(alive, behaviour.rows[min(step, len(behaviour.rows) - 1), state], -1)
        for i in np.flatnonzero(alive & ((rows < 0) | (behaviour.other > 0.0))).tolist():
            rows[i] = pick_row(int(rows[i]), self._row_ptr, int(state[i]), behaviour.other, random)
        return rows

    def _final(self, observations: Any, info: Any, ended: BoolArray, alive: BoolArray) -> IntArray:
        """Return the values that steps led to; those of a reset in the same step are replaced."""
        values = self._values(observations)
        if self._mode == "SAME_STEP":
            for i in np.flatnonzero(ended & alive).tolist():
                values[i] = self._source.values(info["final_obs"][i])
        return values

    def _states(self, values: IntArray, alive: BoolArray) -> IntArray:
        """Return the states with the given values, one per copy; any for those not alive."""
        found = self._source.index.states(values)
        missing = (found < 0) & alive
        if np.any(missing):
            self._source.refuse(values[int(np.argmax(missing))].tolist())
        return np.maximum(found, 0)

    def _values(self, observations: Any) -> IntArray:
        """Return the values of all variables, one line per copy."""
        source, copies = self._source, self._env.num_envs
        if source.observe is not None:
            from gymnasium.vector.utils import iterate

            seen = iterate(self._env.observation_space, observations)
            return np.array([self._translated(one) for one in seen], dtype=np.int64)
        values = read_many(source.space, observations, copies)
        zeros = np.zeros((copies, int(source.starts)), dtype=np.int64)
        return np.concatenate([values, zeros], axis=1)

    def _translated(self, observation: Any) -> list[int]:
        """Return the values of one observation; those of integers are remembered."""
        if not isinstance(observation, int | np.integer):
            return self._source.values(observation)
        if observation not in self._remembered:
            self._remembered[observation] = self._source.values(observation)
        return self._remembered[observation]
