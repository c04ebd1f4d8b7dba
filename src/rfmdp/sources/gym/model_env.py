"""Our models as Gymnasium environments.

Random numbers are those of the simulator (`kernels/simulate.py`): trajectory i of seed s is the
same in both, if actions are. `reset(seed=s)` begins trajectory 0 of seed s, every further `reset()`
the next one; `reset(seed=s, options={"trajectory": i})` begins with trajectory i.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.problem import row_rewards
from rfmdp.sources.index import absorbing, choices
from rfmdp.sources.simulator import alias_tables

MASK = (1 << 64) - 1
GAMMA, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
UNIT = 2.0**-53


def mixed(z: int) -> int:
    """Return the output function of SplitMix64."""
    z = ((z ^ (z >> 30)) * FIRST) & MASK
    z = ((z ^ (z >> 27)) * SECOND) & MASK
    return z ^ (z >> 31)


class ModelEnv(gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """A model with its nominal probabilities; see `rfmdp.env`."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}
    numbered = True  # trajectories are numbered

    def __init__(
        self,
        model: FactoredMDP,
        reward: str | None = None,
        terminal: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.model, self.render_mode = model, render_mode
        words = {"model": model, "reward": reward, "terminal": terminal}
        self.spec = EnvSpec("rfmdp/Model-v0", entry_point=ModelEnv, kwargs=words)
        sets = model.marginals
        self._accept, self._alias = (table.tolist() for table in alias_tables(sets))
        self._begin, self._sizes = sets.outcome_ptr.tolist(), sets.sizes.tolist()
        parts = np.split(model.row_marginals, model.marginal_ptr[1:-1])
        self._row_marginals = [part.tolist() for part in parts]
        self._successor_ptr = model.successor_ptr.tolist()
        self._paid = [0.0] * model.rows
        if reward is not None or model.rewards:
            self._paid = row_rewards(model, reward).tolist()
        ends = absorbing(model)
        self._ends = (ends if terminal is None else ends | model.label(terminal)).tolist()
        self._rows, self.actions = choices(model)
        self._table = self._rows.tolist()
        self._observations, self.observation_space = _observations(model)
        self._copied = len(model.variables) > 1  # arrays belong to whoever gets them
        self.action_space = spaces.Discrete(len(self.actions))
        self._initial = model.initial.tolist()
        self._seed, self._trajectory = 0, -1
        self._state, self._z = self._initial[0], 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin the next trajectory, or one of another seed."""
        super().reset(seed=seed)
        if seed is not None:
            self._seed, self._trajectory = seed, -1
        elif self._trajectory < 0:
            self._seed = int(self.np_random.integers(1 << 62))
        self._trajectory = int((options or {}).get("trajectory", self._trajectory + 1))
        self._z = mixed((mixed(self._seed & MASK) + self._trajectory * GAMMA) & MASK)
        self._state = self._initial[0]
        if len(self._initial) > 1:
            self._state = self._initial[int(self._unit() * len(self._initial))]
        return self._observed(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action; one that is not enabled changes nothing and pays nothing."""
        row = self._table[self._state][int(action)]
        paid = 0.0
        if row >= 0:
            place, paid = 0, self._paid[row]
            for j in self._row_marginals[row]:
                begin, d = self._begin[j], self._sizes[j]
                x = self._unit() * d
                o = int(x)
                if x - o >= self._accept[begin + o]:
                    o = self._alias[begin + o]
                place = place * d + o
            self._state = int(self.model.successors[self._successor_ptr[row] + place])
        over = self._ends[self._state]
        return self._observed(), paid, over, False, self._info()

    def render(self) -> Any:
        """Return the state in words."""
        return self.model.state_name(self._state) if self.render_mode == "ansi" else None

    def _observed(self) -> Any:
        """Return the observation of the state as it is now."""
        seen = self._observations[self._state]
        return seen.copy() if self._copied else seen

    def _info(self) -> dict[str, Any]:
        """Return which actions are enabled."""
        return {"action_mask": (self._rows[self._state] >= 0).astype(np.int8)}

    def _unit(self) -> float:
        """Return the next random number in [0, 1)."""
        self._z = z = (self._z + GAMMA) & MASK
        return (mixed(z) >> 11) * UNIT


def _observations(model: FactoredMDP) -> tuple[list[Any], Any]:
    """Return what is observed in every state, and the space of it."""
    if not model.variables:
        return list(range(model.states)), spaces.Discrete(model.states)
    low = np.array([v.low for v in model.variables], dtype=np.int64)
    sizes = np.array([v.high - v.low + 1 for v in model.variables], dtype=np.int64)
    if len(low) == 1:
        seen = model.valuations[:, 0].tolist()
        return seen, spaces.Discrete(int(sizes[0]), start=int(low[0]))
    return list(model.valuations.astype(np.int64)), spaces.MultiDiscrete(sizes, start=low)
