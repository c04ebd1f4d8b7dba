"""Episodes of one Gymnasium environment, and what they count for.

A step is a call of the environment, two looks into lists (the row of a state, and its action) and
one into a dictionary (the state of an observation). Transitions are counted in compiled code: many
at a time, and earlier if an identifier may have reached the limit at which the learner plans anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice, repeat
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sources.gym.spaces import read, require_gymnasium
from rfmdp.sources.simulator import Behaviour, DrawnTrajectories, Trajectories
from rfmdp.sources.tally import Tally, count_transitions
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.sources.gym.source import GymSource

FLUSH = 1 << 16  # transitions that are counted together
CLOSE = 1000  # samples of an identifier before its limit
NEVER = np.iinfo(np.int64).max
CUT = (
    "Rollout certificates: the environment must not cut episodes off before their length, found "
    "`truncated`; give a smaller length, or learn without them."
)


class PendingTransitions:
    """Transitions that were observed and not counted yet."""

    def __init__(self, source: GymSource, counted: FactoredMDP) -> None:
        self.source, self._counted = source, counted
        self.rows: list[int] = []
        self.successors: list[int] = []
        self.paid: list[float] = []

    def note(self, row: int, successor: int, paid: float) -> None:
        """Take note of one transition."""
        self.rows.append(row)
        self.successors.append(successor)
        self.paid.append(paid)

    def count(self, tally: Tally) -> None:
        """Add everything to a tally."""
        if self.rows:
            rows = np.array(self.rows, dtype=np.int64)
            successors = np.array(self.successors)
            count_transitions(self._counted, rows, successors, tally)
            if self.source.pays:
                paid = np.array(self.paid, dtype=np.float64)
                own = ~np.isnan(paid)
                self.source.pay(rows[own], successors[own], paid[own])
            for part in (self.rows, self.successors, self.paid):
                part.clear()


class LimitWatch:
    """Says when an identifier may have reached its limit; only then transitions are counted.

    `rare` are the rows of identifiers that are close to their limits. No other identifier can
    reach its limit before there are `patience` transitions.
    """

    def __init__(self, counted: FactoredMDP, limit: IntArray, tally: Tally) -> None:
        self._limit, self._tally = limit, tally
        self._often = max(1, int(np.max(np.diff(counted.marginal_ptr), initial=1)))
        self._close = limit - tally.totals < CLOSE
        slots = np.flatnonzero(self._close[counted.row_marginals])
        rows = np.searchsorted(counted.marginal_ptr, slots, side="right") - 1
        self.rare = frozenset(rows.tolist())
        self.patience = FLUSH
        self.renew()

    def renew(self) -> None:
        """Look at the totals as they are now."""
        left = (self._limit - self._tally.totals)[~self._close]
        least = int(np.min(left, initial=FLUSH * self._often))
        self.patience = max(1, min(FLUSH, -(-least // self._often)))


Steps: TypeAlias = Callable[[int], Iterator[Any]]
# the rows of a behaviour by state, step after step, for a number of steps


def listed_rows(behaviour: Behaviour, numbers: AnyArray) -> Steps:
    """Return a behaviour as lists, read faster than arrays: one per step, the last repeats.

    `numbers` are the rows of the model as objects (R,): few of them stay in the caches.
    """
    lines: list[list[int]] = numbers[behaviour.rows].tolist()
    return lambda length: islice(chain(lines, repeat(lines[-1])), length)


class RandomRows:
    """A behaviour that draws its rows; `steps` is used like `listed_rows`."""

    def __init__(self, behaviour: Behaviour, row_ptr: list[int], random: Random) -> None:
        self._behaviour, self._row_ptr, self._random = behaviour, row_ptr, random
        self._step = 0

    def steps(self, length: int) -> Iterator[Any]:
        """Return this, which draws when it is asked for the row of a state."""
        self._step = 0
        return repeat(self, length)

    def __getitem__(self, state: int) -> int:
        rules = self._behaviour.rows
        row = int(rules[min(self._step, len(rules) - 1), state])
        self._step += 1
        return pick_row(row, self._row_ptr, state, self._behaviour.other, self._random)


class Walker:
    """Runs episodes of an environment under behaviours; a `Sampler`."""

    def __init__(
        self, source: GymSource, counted: FactoredMDP, stop: BoolArray | None = None
    ) -> None:
        self._source, self._counted = source, counted
        model = source.structure.model
        self._row_ptr = model.row_ptr.tolist()
        self._start = int(model.row_ptr[model.initial[0]]) if source.starts else -1
        self._numbers = np.arange(model.rows).astype(object)
        # of every row; None ends an episode: there is no action, or the state is one to stop in
        self._actions = list(source.actions)
        if stop is not None:
            over = np.repeat(stop[: model.states], np.diff(model.row_ptr))
            self._actions = [None if o else a for a, o in zip(self._actions, over, strict=True)]
        self._seen = PendingTransitions(source, counted)
        self._states: dict[Any, int] = {}  # by what stands for an observation
        self._key = _key_of(source.space)

    def run_until(self, wanted: Trajectories, limit: IntArray, tally: Tally) -> tuple[int, int]:
        """Run episodes until an identifier's total reaches its limit; add to the tally."""
        rules, steps, seen = self._steps(wanted), 0, self._seen
        watch = LimitWatch(self._counted, limit, tally)
        for number in range(wanted.count):
            before = len(seen.rows)
            steps += self._episode(rules, wanted.length, self._seed(wanted, number))[0]
            if len(seen.rows) >= watch.patience or not watch.rare.isdisjoint(seen.rows[before:]):
                seen.count(tally)
                if np.any(tally.totals >= limit):
                    return number + 1, steps
                watch.renew()
        self._seen.count(tally)
        return wanted.count, steps

    def run(
        self,
        wanted: Trajectories,
        *,
        reward: FloatArray | None = None,
        discount: float = 1.0,
    ) -> DrawnTrajectories:
        """Run episodes of a frozen behaviour; return what they gave."""
        tally, rules = Tally.empty(self._counted), self._steps(wanted)
        returns, final = np.zeros(wanted.count), np.empty(wanted.count, dtype=np.int64)
        steps = 0
        for number in range(wanted.count):
            done, last, cut = self._episode(rules, wanted.length, self._seed(wanted, number))
            if cut:
                raise UnsupportedError(CUT)
            if reward is not None:
                weights = discount ** np.arange(done)
                returns[number] = float(reward[self._seen.rows[-done:]] @ weights) if done else 0.0
            steps, final[number] = steps + done, last
            if len(self._seen.rows) > FLUSH:
                self._seen.count(tally)
        self._seen.count(tally)
        return DrawnTrajectories(tally.counts, returns, final, steps)

    def _seed(self, wanted: Trajectories, number: int) -> dict[str, Any]:
        """Return what `reset` is given: a seed at the beginning of a batch."""
        if number:
            return {}
        if getattr(self._source.env.unwrapped, "numbered", False):
            return {"seed": wanted.seed, "options": {"trajectory": wanted.first}}
        return {"seed": seed_of(wanted.seed, wanted.first)}

    def _steps(self, wanted: Trajectories) -> Steps:
        """Return a behaviour made ready."""
        behaviour = wanted.behaviour
        if behaviour.other == 0.0 and np.all(behaviour.rows >= 0):
            return listed_rows(behaviour, self._numbers)
        return RandomRows(behaviour, self._row_ptr, Random(f"{wanted.seed} {wanted.first}")).steps

    def _episode(self, rules: Steps, length: int, seed: dict[str, Any]) -> tuple[int, int, bool]:
        """Run one episode and note its transitions; returns (steps, last state, cut off early)."""
        source, seen, states, keyed = self._source, self._seen, self._states, self._key
        step, actions, pays, paid = source.env.step, self._actions, source.pays, seen.paid
        taken, after, cut = seen.rows.append, seen.successors.append, False
        observation, _ = source.env.reset(**seed)
        state = self._locate(observation)
        source.check_start(state)
        if self._start >= 0:
            seen.note(self._start, state, np.nan)
        begin = len(seen.rows)
        for rows in rules(length):
            row = rows[state]
            action = actions[row]
            if action is None:
                break
            observation, reward, terminated, truncated, _ = step(action)
            state = states.get(observation if keyed is None else keyed(observation), -1)
            if state < 0:
                state = self._locate(observation)
            taken(row)
            after(state)
            if pays:
                paid.append(reward)
            if terminated or truncated:
                if terminated:
                    source.check_end(state)
                cut = not terminated and len(seen.rows) - begin < length
                break
        return len(seen.rows) - begin, state, cut

    def _locate(self, observation: Any) -> int:
        """Return the state of an observation, and remember it."""
        key = observation if self._key is None else self._key(observation)
        if key not in self._states:
            self._states[key] = self._source.state(observation)
        return self._states[key]


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
