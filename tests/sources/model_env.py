"""A model as a Gymnasium environment, to learn from.

Random numbers are those of the simulator (`kernels/simulate.py`). With a seed of its own the
environment runs trajectories 0, 1, 2 and so on of that seed, whatever `reset` is told: they are the
simulator's, if actions are. Without one, `reset(seed=s)` begins trajectory 0 of seed s.
"""

import gymnasium
import numpy as np
from gymnasium import spaces

from rfmdp.outer.problem import row_rewards
from rfmdp.sources.trajectories import absorbing, alias_tables

MASK = (1 << 64) - 1
GAMMA, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mixed(z):
    """Return the output function of SplitMix64."""
    z = ((z ^ (z >> 30)) * FIRST) & MASK
    z = ((z ^ (z >> 27)) * SECOND) & MASK
    return z ^ (z >> 31)


class ModelEnv(gymnasium.Env):
    """A model with its nominal probabilities; an action that is not enabled changes nothing."""

    def __init__(self, model, seed=None):
        self.model, self._fixed = model, seed is not None
        self._accept, self._alias = alias_tables(model.marginals)
        self._paid = row_rewards(model, None) if model.rewards else np.zeros(model.rows)
        self._ends = absorbing(model)
        table = np.full((model.states, len(model.actions)), -1)
        table[model.row_states, model.row_actions] = np.arange(model.rows)
        table[model.label("deadlock")] = -1
        used = np.flatnonzero((table >= 0).any(axis=0))
        self._rows, self.actions = table[:, used], tuple(model.actions[a] for a in used)
        self.action_space = spaces.Discrete(len(self.actions))
        low = np.array([v.low for v in model.variables])
        sizes = np.array([v.high for v in model.variables]) - low + 1
        self.observation_space = spaces.MultiDiscrete(sizes, start=low)
        if len(low) == 1:
            self.observation_space = spaces.Discrete(int(sizes[0]), start=int(low[0]))
        self._seed, self._trajectory = seed or 0, -1

    def reset(self, *, seed=None, options=None):
        """Begin the next trajectory, or the first one of another seed."""
        super().reset(seed=seed)
        if seed is not None and not self._fixed:
            self._seed, self._trajectory = seed, -1
        self._trajectory += 1
        self._z = mixed((mixed(self._seed & MASK) + self._trajectory * GAMMA) & MASK)
        initial = self.model.initial
        self._state = int(initial[0 if len(initial) == 1 else int(self._unit() * len(initial))])
        return self._seen(), {}

    def step(self, action):
        """Take an action."""
        model, row, paid = self.model, int(self._rows[self._state, int(action)]), 0.0
        if row >= 0:
            place, paid = 0, float(self._paid[row])
            for j in model.row_marginals[model.marginal_ptr[row] : model.marginal_ptr[row + 1]]:
                begin, d = int(model.marginals.outcome_ptr[j]), int(model.marginals.sizes[j])
                x = self._unit() * d
                o = int(x)
                if x - o >= self._accept[begin + o]:
                    o = int(self._alias[begin + o])
                place = place * d + o
            self._state = int(model.successors[model.successor_ptr[row] + place])
        return self._seen(), paid, bool(self._ends[self._state]), False, {}

    def _seen(self):
        values = self.model.valuations[self._state].astype(np.int64)
        return int(values[0]) if len(values) == 1 else values

    def _unit(self):
        self._z = (self._z + GAMMA) & MASK
        return (mixed(self._z) >> 11) * 2.0**-53
