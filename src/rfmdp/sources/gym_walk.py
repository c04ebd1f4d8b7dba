"""Episodes of one Gymnasium environment, and what they count for.

What is done per step is a call of the environment, two looks into lists and one into a dictionary.
Transitions are counted in compiled code, a batch at a time; after every episode only while the
learner waits for an identifier's count to reach a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sources.simulator import Batch, Behaviour
from rfmdp.sources.spaces import read, require_gymnasium
from rfmdp.sources.tally import Tally, count_transitions
from rfmdp.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.sources.gym import GymSource

FLUSH = 1 << 16  # transitions that are counted together
NEVER = np.iinfo(np.int64).max
CUT = (
    "Rollout certificates: the environment must not cut episodes off before their length, found "
    "`truncated`; give a smaller length, or learn without them."
)


class Transitions:
    """Transitions that were observed and not counted yet."""

    def __init__(self, source: GymSource, counted: FactoredMDP) -> None:
        self.source, self._counted = source, counted
        self.rows: list[int] = []
        self.successors: list[int] = []
        self.paid: list[float] = []

    def count(self, tally: Tally) -> None:
        """Add everything to a tally."""
        if self.rows:
            rows = np.array(self.rows, dtype=np.int64)
            count_transitions(self._counted, rows, np.array(self.successors), tally)
            paid = np.array(self.paid, dtype=np.float64)
            own = ~np.isnan(paid)
            self.source.pay(rows[own], paid[own])
            for part in (self.rows, self.successors, self.paid):
                part.clear()


class Walker:
    """Runs episodes of an environment under behaviours; a `Sampler`."""

    def __init__(
        self, source: GymSource, counted: FactoredMDP, stop: BoolArray | None = None
    ) -> None:
        self._source, self._counted = source, counted
        model = source.structure.model
        self._row_ptr = model.row_ptr.tolist()
        self._start = int(model.row_ptr[model.initial[0]]) if source.starts else -1
        self._stop = [False] * model.states if stop is None else stop.tolist()
        self._seen = Transitions(source, counted)
        self._states: dict[Any, int] = {}  # by what stands for an observation
        self._key = _key_of(source.space)
        self._rules: tuple[Behaviour, list[list[int]]] | None = None

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
        """Run episodes until an identifier's total reaches its limit; add to the tally."""
        watched, steps = bool(np.any(limit < NEVER)), 0
        random = Random(f"{seed} {first}")
        for number in range(trajectories):
            steps += self._episode(behaviour, length, self._seed(seed, first, number), random)[0]
            if watched or len(self._seen.rows) > FLUSH:
                self._seen.count(tally)
                if watched and np.any(tally.totals >= limit):
                    return number + 1, steps
        self._seen.count(tally)
        return trajectories, steps

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
    ) -> Batch:
        """Run episodes of a frozen behaviour; return what they gave."""
        tally, random = Tally.empty(self._counted), Random(f"{seed} {first}")
        returns, final = np.zeros(trajectories), np.empty(trajectories, dtype=np.int64)
        steps = 0
        for number in range(trajectories):
            done, last, cut = self._episode(
                behaviour, length, self._seed(seed, first, number), random
            )
            if cut:
                raise UnsupportedError(CUT)
            if reward is not None:
                weights = discount ** np.arange(done)
                returns[number] = float(reward[self._seen.rows[-done:]] @ weights) if done else 0.0
            steps, final[number] = steps + done, last
            if len(self._seen.rows) > FLUSH:
                self._seen.count(tally)
        self._seen.count(tally)
        return Batch(tally.counts, returns, final, steps)

    def _seed(self, seed: int, first: int, number: int) -> dict[str, Any]:
        """Return what `reset` is given: a seed at the beginning of a batch."""
        if number:
            return {}
        if getattr(self._source.env.unwrapped, "numbered", False):
            return {"seed": seed, "options": {"trajectory": first}}
        return {"seed": seed_of(seed, first)}

    def _episode(
        self, behaviour: Behaviour, length: int, seed: dict[str, Any], random: Random
    ) -> tuple[int, int, bool]:
        """Run one episode and note its transitions; returns (steps, last state, cut off early)."""
        source, states, stop = self._source, self._states, self._stop
        rows, successors, paid = self._seen.rows, self._seen.successors, self._seen.paid
        actions, step, rules = source.actions, source.env.step, self._listed(behaviour)
        last, plain, keyed = len(rules) - 1, behaviour.other == 0.0, self._key
        observation, _ = source.env.reset(**seed)
        state = self._locate(observation)
        source.check_start(state)
        if self._start >= 0:
            rows.append(self._start)
            successors.append(state)
            paid.append(np.nan)
        for t in range(length):
            if stop[state]:
                return t, state, False
            row = rules[t if t < last else last][state]
            if row < 0 or not plain:
                row = pick_row(row, self._row_ptr, state, behaviour.other, random)
            if actions[row] is None:  # the episode is over in the structure
                return t, state, False
            observation, reward, terminated, truncated, _ = step(actions[row])
            key = observation if keyed is None else keyed(observation)
            state = states.get(key, -1)
            if state < 0:
                state = self._locate(observation)
            rows.append(row)
            successors.append(state)
            paid.append(reward)
            if terminated:
                source.check_end(state)
                return t + 1, state, False
            if truncated:
                return t + 1, state, t + 1 < length
        return length, state, False

    def _locate(self, observation: Any) -> int:
        """Return the state of an observation, and remember it."""
        key = observation if self._key is None else self._key(observation)
        if key not in self._states:
            self._states[key] = self._source.state(observation)
        return self._states[key]

    def _listed(self, behaviour: Behaviour) -> list[list[int]]:
        """Return the rules of a behaviour as lists, which are read faster than arrays."""
        if self._rules is None or self._rules[0] is not behaviour:
            self._rules = behaviour, behaviour.rows.tolist()
        return self._rules[1]


def pick_row(row: int, row_ptr: list[int], state: int, other: float, random: Random) -> int:
    """Return any row of a state for -1, else the given one or, by chance `other`, another one."""
    first, choices = row_ptr[state], row_ptr[state + 1] - row_ptr[state]
    if row < 0:
        return first + random.randrange(choices)
    if choices > 1 and random.random() < other:
        pick = first + random.randrange(choices - 1)
        return pick if pick < row else pick + 1
    return row


def _key_of(space: Any) -> Callable[[Any], Any] | None:
    """Return what makes an observation a key of a dictionary; None: it is one."""
    spaces = require_gymnasium().spaces
    if isinstance(space, spaces.Discrete):
        return None
    if isinstance(space, spaces.Tuple | spaces.Dict):
        return lambda observation: tuple(read(space, observation))
    return lambda observation: np.asarray(observation).tobytes()


def seed_of(seed: int, number: int) -> int:
    """Return a seed for Gymnasium, a function of both numbers."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
