"""A Gymnasium environment as a source: the learner plans, the environment draws.

Every step is one observed transition: the state before it, the action, and the state after it.
- `terminated`: the episode ended in the state that was observed last, so the structure must end
  there, too: no action may leave that state.
- `truncated`: the episode was cut off. The last step counts like any other, nothing follows it, and
  it says nothing about the end of episodes.
- `reset`: the state that it gives is an initial one of the structure; it is no step. If there are
  several, the start is random: its distribution is the environment's, and learned from what resets
  give. A guarantee is for the worst start, and beside it for the mean over starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, TypeAlias

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.problem import row_rewards
from rfmdp.outer.solution import Policy
from rfmdp.ragged import segment_lengths
from rfmdp.record import Assumption
from rfmdp.sources.checks import Evidence
from rfmdp.sources.gym.spaces import (
    actions_of,
    entries_of,
    make_env,
    named,
    read,
    require_gymnasium,
    whole,
)
from rfmdp.sources.gym.table import REWARD, known_table
from rfmdp.sources.index import Index, absorbing
from rfmdp.sources.source import Paid, Payer, Sampler, Source
from rfmdp.sources.structure import Structure, structure_of
from rfmdp.types import FloatArray, IntArray

Observe: TypeAlias = Callable[[Any], Iterable[int]]


class GymSource(Source):
    """A Gymnasium environment with a known structure.

    Parameters
    ----------
    env
        An environment with discrete observations and actions, or the name of a registered one,
        with options: "FrozenLake-v1(map_name='8x8')".
    model
        What is known; see `rfmdp.sources.structure`. Its variables are the entries of the
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

    def __init__(
        self,
        env: Any,
        model: FactoredMDP,
        *,
        observe: Observe | None = None,
        actions: Sequence[str] | None = None,
    ) -> None:
        self.env = make_env(env)
        if isinstance(self.env, require_gymnasium().vector.VectorEnv):
            raise UnsupportedError(
                "Environment: must be one environment, found a vectorised one; give one of its "
                "copies."
            )
        self.space, self.action_space = self.env.observation_space, self.env.action_space
        self.structure = Structure.of(model)
        self._observe = observe or self._observer([v.name for v in model.variables])
        self._index = Index(model)
        self.actions = self._row_actions(model, actions)
        self.ends = absorbing(model).tolist()
        self._starts = {state: i for i, state in enumerate(model.initial.tolist())}
        self.random_start, self._learns = len(self._starts) > 1, False
        self._last: set[int] = set()
        self._paid = Paid.nothing(model.rows)  # since it was last asked for
        declares = REWARD in model.rewards
        self.declared = row_rewards(model, REWARD) if declares else None  # (R,) what must be paid

    observed = True

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Observations are states, and episodes begin afresh."""
        return Assumption("markov"), Assumption("resets")

    @property
    def pays(self) -> bool:
        """Whether anybody looks at payments."""
        return self.declared is not None or self._learns

    @property
    def words(self) -> dict[str, str]:
        """The environment's name and options, and the structure."""
        spec = self.env.spec
        options = "" if spec is None else ", ".join(f"{k}={v!r}" for k, v in spec.kwargs.items())
        name = type(self.env.unwrapped).__name__ if spec is None else str(spec.id)
        return {
            "source": "environment",
            "environment": f"{name}({options})",
            "structure": structure_of(self.structure.model),
        }

    def sampler(self, counted: FactoredMDP, evidence: Evidence | None = None) -> Sampler:
        """Return what runs episodes and counts."""
        from rfmdp.sources.gym.walk import Walker

        return Walker(self, counted, evidence).run_until

    @property
    def last(self) -> IntArray:
        """States in which episodes terminated, ascending."""
        return np.array(sorted(self._last), dtype=np.int64)

    def payer(self, reward: str) -> Payer:
        """Return the rewards that the environment paid; they are learned, so none is compared."""
        self.declared, self._learns = None, True
        return lambda rows, visits: self._paid.take(rows)

    def agent(self, policy: Policy) -> Callable[..., Any]:
        """Return a policy as a function: observation in, action of the environment out.

        A policy of a finite horizon needs the number of steps since the reset, too.
        """
        steps = len(policy.rows)

        def act(observation: Any, step: int | None = None) -> Any:
            if step is None and steps > 1:
                raise ModelError(
                    "Agent: this policy depends on the number of steps since the reset, which must "
                    "be given: act(observation, step=k), from 0 on."
                )
            gone = 0 if step is None else step
            fits = isinstance(gone, int | np.integer) and gone >= 0
            if not fits or gone >= steps > 1:
                most = f", this policy has 0 to {steps - 1}" if steps > 1 else ""
                raise ModelError(
                    f"Agent: step must be a whole number from 0 on{most}, found {step!r}."
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
        if isinstance(values, Mapping | Set | str) or not np.iterable(values):
            raise ModelError(
                f"Environment: `observe` must give a list of the values of {', '.join(names)}, in "
                f"this order, found {values!r}."
            )
        values = list(values)
        if len(values) != len(names):
            raise ModelError(
                f"Environment: an observation must give the variables {', '.join(names)}, found "
                f"{len(values)} values in {observation!r}."
            )
        pairs = list(zip(names, values, strict=True))
        values = [whole(value, f"the value of {name} in {observation!r}") for name, value in pairs]
        state = int(self._index.states(np.array([values]))[0])
        if state < 0:
            shown = ", ".join(f"{name}={x}" for name, x in zip(names, values, strict=True))
            raise ModelError(
                f"Environment: every observed state must be reachable in the structure, found "
                f"({shown}). Guarantees are void: declare the outcome that leads there."
            )
        return state

    def check_end(self, state: int) -> None:
        """Raise ModelError unless the structure ends where an episode ended."""
        model = self.structure.model
        if not self.ends[state]:
            raise ModelError(
                f"Environment: an episode terminated in {model.state_name(state)}, which the "
                "structure lets be left. Give it no enabled action (guards), or add a variable "
                "that says that the episode is over."
            )
        self._last.add(state)
        paid = 0.0 if self.declared is None else self.declared[model.row_ptr[state]]
        if paid:
            raise ModelError(
                f"Environment: an episode terminated in {model.state_name(state)}, where the "
                f"structure goes on to pay {paid:g} for ever; let `reward` be 0 there."
            )

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

    def note_paid(self, rows: IntArray, paid: FloatArray) -> None:
        """Compare what rows paid with what was declared; without that, note it for `payer`."""
        wrong, must = ~np.isfinite(paid), "a finite number; nothing can be said about its rewards"
        if self.declared is not None and not wrong.any():
            declared = self.declared[rows]
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
        if self.declared is None:
            self._paid.add(rows, paid)

    def _observer(self, names: list[str]) -> Observe:
        """Return what reads variables of these names from observations; refuse other ones."""
        table = known_table(self.env)
        ready = [] if table is None else [v.name for v in table.variables]
        if table is not None and set(ready) == set(names):
            places = [ready.index(name) for name in names]
            decode = table.values
            return lambda value: _picked(list(decode(whole(value, "an observation"))), places)
        entries = [e.name for e in entries_of(self.space)]
        if set(entries) == set(names):
            places = [entries.index(name) for name in names]
        elif len(names) == len(entries) and not named(self.space) and not set(entries) & set(names):
            places = list(range(len(names)))
        else:
            hint = f"call them {', '.join(ready)}, or " if len(ready) == len(names) else ""
            raise ModelError(
                f"Environment: the structure must have a variable per entry of the observation "
                f"({', '.join(entries)}), found {', '.join(names)}; {hint}give them these names, "
                "or `observe` to translate."
            )
        return lambda observation: _picked(read(self.space, observation), places)

    def _row_actions(self, model: FactoredMDP, names: Sequence[str] | None) -> list[Any]:
        """Return the environment's action of every row; None where a reset is meant."""
        elements, table = actions_of(self.action_space), known_table(self.env)
        self._index.rows(model.row_states, model.row_actions)  # an action must name one row
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


def _picked(values: list[Any], places: list[int]) -> list[Any]:
    """Return values in another order."""
    return [values[i] for i in places]
