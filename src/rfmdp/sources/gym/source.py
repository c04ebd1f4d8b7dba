"""A Gymnasium environment as a source: the learner plans, the environment draws.

Every step is one observed transition; what `terminated`, `truncated` and `reset` say is told in
`docs/learners.md`.

Transitions are counted in compiled code: those of many episodes at a time, as often as their number
grows by a small share, so that the learner plans anew about when it wants to.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import chain, islice, repeat
from random import Random
from typing import Any, TypeAlias

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.problem import row_rewards
from rfmdp.outer.solution import Policy
from rfmdp.ragged import owners, segment_lengths, starts
from rfmdp.record import Assumption
from rfmdp.sources.checks import Evidence
from rfmdp.sources.gym.models import (
    REWARD,
    actions_of,
    entries_of,
    known_table,
    make_env,
    named,
    read,
    whole,
)
from rfmdp.sources.source import Paid, Payer, Sampler, Source, Structure, structure_of
from rfmdp.sources.trajectories import Index, Tally, Trajectories, absorbing
from rfmdp.types import FloatArray, IntArray

FLUSH = 1 << 16  # transitions that are counted together, at most
SHARE = 64  # episodes are counted when there are 1 / SHARE more of them

Observe: TypeAlias = Callable[[Any], Iterable[int]]


class GymSource(Source):
    """A Gymnasium environment with a known structure.

    Parameters
    ----------
    env
        An environment with discrete observations and actions, or the name of a registered one,
        with options: "FrozenLake-v1(map_name='8x8')".
    model
        What is known; see `rfmdp.sources.source`. Its variables are the entries of the
        observation, unless `observe` says otherwise: by their names, if the observation is a Dict
        (else x, or x_0, x_1 and so on), or in their order, if they are called otherwise and have
        no names of their own. A reward structure `reward` is what the environment pays: every
        payment is compared with it.
    observe
        The values of the variables, for an observation; those of `gym_model` are known.
    actions
        Names of the environment's actions, in their order; by default those of the model, in
        their order.
    """

    observed = True
    assumptions = Assumption("markov"), Assumption("resets")

    def __init__(
        self,
        env: Any,
        model: FactoredMDP,
        *,
        observe: Observe | None = None,
        actions: Sequence[str] | None = None,
    ) -> None:
        self.env = make_env(env)
        self.structure = Structure.of(model)
        elements = actions_of(self.env.action_space)
        self._observe = observe or self._observer([v.name for v in model.variables])
        self._index = Index(model)
        self.actions = self._row_actions(model, elements, actions)
        self._ends = absorbing(model).tolist()
        self._starts = {state: i for i, state in enumerate(model.initial.tolist())}
        self.random_start = len(self._starts) > 1
        self.last: set[int] = set()
        # (R,) what must be paid, unless a run learns it
        self.declared = row_rewards(model, REWARD) if REWARD in model.rewards else None
        self._paid: Paid | None = None  # since it was last asked for, if the run learns rewards
        spec = self.env.spec
        options = "" if spec is None else ", ".join(f"{k}={v!r}" for k, v in spec.kwargs.items())
        name = type(self.env.unwrapped).__name__ if spec is None else str(spec.id)
        self.words = {
            "source": "environment",
            "environment": f"{name}({options})",
            "structure": structure_of(model),
        }

    def sampler(self, counted: FactoredMDP, evidence: Evidence | None = None) -> Sampler:
        """Return what runs episodes and counts; payments are compared unless `payer` was called."""
        paid, self._paid = self._paid, None
        return _Walker(self, counted, evidence, paid).run_until

    def payer(self, reward: str) -> Payer:
        """Return the rewards that the environment paid; they are learned, so none is compared."""
        paid = self._paid = Paid.nothing(self.structure.model.rows)
        return lambda rows, visits: paid.take(rows)

    def agent(self, policy: Policy) -> Callable[..., Any]:
        """Return a policy as a function: observation in, action of the environment out.

        A policy of a finite horizon needs the number of steps since the reset, too.
        """
        steps = len(policy.rows)

        def act(observation: Any, step: int | None = None) -> Any:
            gone = 0 if steps == 1 else step
            if not isinstance(gone, int | np.integer) or not 0 <= gone < steps:
                raise ModelError(
                    "Agent: this policy depends on the number of steps since the reset: give "
                    f"act(observation, step=k), k from 0 on, at most {steps - 1}; found {step!r}."
                )
            action = self.actions[policy.row(self.state(observation), int(gone))]
            if action is None:
                raise UnsupportedError("Agent: the episode is over in this state; reset.")
            return action

        return act

    def state(self, observation: Any) -> int:
        """Return the state that an observation shows; if there is none, guarantees are void."""
        names = [v.name for v in self.structure.model.variables]
        values = self._observe(observation)
        listed = not isinstance(values, Mapping | Set | str) and np.iterable(values)
        if not listed or len(values := list(values)) != len(names):
            raise ModelError(
                f"Environment: `observe` must give a list of the values of {', '.join(names)}, in "
                f"this order, found {values!r}."
            )
        pairs = list(zip(names, values, strict=True))
        values = [whole(value, f"the value of {name} in {observation!r}") for name, value in pairs]
        state = self._index.state(values)
        if state < 0:
            shown = ", ".join(f"{name}={x}" for name, x in zip(names, values, strict=True))
            raise ModelError(
                f"Environment: every observed state must be reachable in the structure, found "
                f"({shown}). Guarantees are void: declare the outcome that leads there."
            )
        return state

    def check_end(self, state: int, declared: FloatArray | None) -> None:
        """Raise ModelError unless the structure ends where an episode ended, and pays nothing."""
        model, fault = self.structure.model, ""
        paid = 0.0 if declared is None else declared[model.row_ptr[state]]
        if not self._ends[state]:
            fault = (
                "which the structure lets be left. Give it no enabled action (guards), or add a "
                "variable that says that the episode is over"
            )
        elif paid:
            fault = f"where the structure goes on to pay {paid:g} for ever; let `reward` be 0 there"
        if fault:
            name = model.state_name(state)
            raise ModelError(f"Environment: an episode terminated in {name}, {fault}.")
        self.last.add(state)

    def start(self, state: int) -> int:
        """Return the number of an initial state; ModelError if it is none."""
        if state not in self._starts:
            model = self.structure.model
            raise ModelError(
                f"Environment: a reset gave {model.state_name(state)}, must give an initial state "
                "of the structure; declare all of them: initial={'x': [0, 1], ...} of `build` are "
                "two states."
            )
        return self._starts[state]

    def check_paid(self, rows: IntArray, paid: FloatArray, rewards: FloatArray | None) -> None:
        """Raise ModelError unless rows paid numbers, those of `rewards` (R,) if there are some."""
        wrong, must = ~np.isfinite(paid), "a finite number; nothing can be said about its rewards"
        if rewards is not None and not wrong.any():
            declared = rewards[rows]
            wrong = np.abs(declared - paid) > 1e-9 * np.maximum(1.0, np.abs(declared))
            must = (
                f"the declared {declared[np.argmax(wrong)]:g}; declare it, or learn rewards "
                "(`rewards=RewardRange(low, high)`)"
            )
        if wrong.any():
            at = int(np.argmax(wrong))
            shown = "NaN" if np.isnan(paid[at]) else f"{paid[at]:g}"
            name = self.structure.model.row_name(int(rows[at]))
            raise ModelError(f"Environment: {name} paid {shown}, must pay {must}.")

    def _observer(self, names: list[str]) -> Observe:
        """Return what reads variables of these names from observations; refuse other ones."""
        table, space = known_table(self.env), self.env.observation_space
        ready = [] if table is None else [v.name for v in table.variables]
        known = table is not None and set(ready) == set(names)
        entries = ready if known else [e.name for e in entries_of(space)]
        if set(entries) == set(names):
            places = [entries.index(name) for name in names]
        elif len(names) == len(entries) and not named(space) and not set(entries) & set(names):
            places = list(range(len(names)))
        else:
            hint = f"call them {', '.join(ready)}, or " if len(ready) == len(names) else ""
            raise ModelError(
                f"Environment: the structure must have a variable per entry of the observation "
                f"({', '.join(entries)}), found {', '.join(names)}; {hint}give them these names, "
                "or `observe` to translate."
            )

        def observe(observation: Any) -> list[Any]:
            if table is not None and known:
                values = list(table.values(whole(observation, "an observation")))
            else:
                values = read(space, observation)
            return [values[i] for i in places]

        return observe

    def _row_actions(
        self, model: FactoredMDP, elements: list[int], names: Sequence[str] | None
    ) -> list[Any]:
        """Return the environment's action of every row; None where a reset is meant."""
        table = known_table(self.env)
        over = np.repeat(model.label("deadlock"), segment_lengths(model.row_ptr))
        used = [model.actions[a] for a in np.unique(model.row_actions[~over])]
        order = [f"a{i}" for i in range(len(elements))] if table is None else list(table.actions)
        if not set(used) <= set(order):
            order = used
        order = order if names is None else list(names)
        if len(order) != len(elements) or not set(used) <= set(order):
            raise ModelError(
                f"Environment: {len(elements)} actions must have the names that the structure "
                f"uses ({', '.join(used)}), found {', '.join(order)}; give `actions`, the names in "
                "the order of the environment."
            )
        action = dict(zip(order, elements, strict=True))
        pairs = zip(model.row_actions, over, strict=True)
        return [None if ended else action[model.actions[a]] for a, ended in pairs]


class _Walker:
    """Runs episodes of an environment under behaviours."""

    def __init__(
        self,
        source: GymSource,
        counted: FactoredMDP,
        evidence: Evidence | None,
        learned: Paid | None,
    ) -> None:
        self._source, self._counted, self._evidence = source, counted, evidence
        self._learned, self._declared = learned, source.declared if learned is None else None
        self._row_ptr = counted.row_ptr.tolist()
        # the rows as objects, which lists share: few of them stay in the caches; -1 is the last
        self._numbers = np.append(np.arange(counted.rows), -1).astype(object)
        self._states: dict[Any, int] = {}  # those that observations showed so far
        # of what is not counted yet: numbers of initial states and steps, by episodes
        self._starts: list[int] = []
        self._lengths: list[int] = []
        self._rows: list[int] = []  # of transitions, and so on
        self._successors: list[int] = []
        self._paid: list[float] = []

    def run_until(self, request: Trajectories, limit: IntArray, tally: Tally) -> tuple[int, int]:
        """Run episodes until an identifier's total has reached its limit; add to the tally.

        Only the first reset has a seed.
        """
        source, find = self._source, self._state
        env, note_paid, declared = source.env, self._paid.append, self._declared
        pays = (
            self._learned is not None or declared is not None
        )  # whether anybody looks at payments
        actions = source.actions  # of every row; None where there is none: the episode is over
        note_row, note_successor = self._rows.append, self._successors.append
        other, often = request.behaviour.other, max(1, request.first // SHARE)
        # the row of every state, for every step; the last line repeats
        lines: list[list[int]] = self._numbers[request.behaviour.rows].tolist()
        strays = other > 0.0 or bool(np.any(request.behaviour.rows < 0))
        random = Random(f"{request.seed} {request.first}")
        both = np.random.SeedSequence([request.seed, request.first])
        words = {"seed": int(both.generate_state(1)[0])}
        done = steps = 0
        while done < request.count:
            observation, _ = env.reset(**words)
            words = {}
            state = find(observation)
            self._starts.append(source.start(state))
            begin = len(self._rows)
            for rows in islice(chain(lines, repeat(lines[-1])), request.length):
                row = rows[state]
                if strays:
                    row = _pick(row, self._row_ptr, state, other, random)
                action = actions[row]
                if action is None:
                    break
                observation, paid, terminated, truncated, _ = env.step(action)
                state = find(observation)
                note_row(row)
                note_successor(state)
                if pays:
                    note_paid(paid)
                if terminated:
                    source.check_end(state, declared)
                if terminated or truncated:
                    break
            self._lengths.append(len(self._rows) - begin)
            done, steps = done + 1, steps + self._lengths[-1]
            if done % often == 0 or done == request.count or len(self._rows) >= FLUSH:
                self._count(tally)
                if np.any(tally.totals >= limit):
                    break
        return done, steps

    def _count(self, tally: Tally) -> None:
        """Add what was observed to a tally."""
        if len(tally.starts):
            np.add.at(tally.starts, self._starts, 1)
        if self._rows:
            rows, successors = np.array(self._rows, dtype=np.int64), np.array(self._successors)
            tally.add(self._counted, rows, successors)
            if self._paid:
                paid = np.array(self._paid, dtype=np.float64)
                self._source.check_paid(rows, paid, self._declared)
                if self._learned is not None:
                    self._learned.add(rows, paid)
            if self._evidence is not None:
                ptr = starts(self._lengths)
                ages = np.arange(len(rows)) - ptr[owners(ptr)]
                before = np.where(ages == 0, -1, np.roll(rows, 1))
                self._evidence.add(rows, successors, before, ages)
        for column in (self._starts, self._lengths, self._rows, self._successors, self._paid):
            column.clear()

    def _state(self, observation: Any) -> int:
        """Return the state that an observation shows."""
        plain = isinstance(observation, np.ndarray) and not observation.dtype.hasobject
        key = observation.tobytes() if plain else pickle.dumps(observation)
        if key not in self._states:
            self._states[key] = self._source.state(observation)
        return self._states[key]


def _pick(row: int, row_ptr: list[int], state: int, other: float, random: Random) -> int:
    """Return any row of a state for -1, else the same one or, by chance `other`, another one."""
    first, choices = row_ptr[state], row_ptr[state + 1] - row_ptr[state]
    if row < 0:
        return first + random.randrange(choices)
    if choices > 1 and random.random() < other:
        pick = first + random.randrange(choices - 1)
        return pick if pick < row else pick + 1
    return row
