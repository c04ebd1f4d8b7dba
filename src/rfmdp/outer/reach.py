"""How far a state can come: what it is measured by is the largest of the values on its ways.

A precision is relative to a state's own value, or to what inner solvers can tell of the values
that it meets; a state that cannot come to an enormous one has nothing to do with it.
"""

from __future__ import annotations

import numpy as np

from rfmdp.kernels.graph import component_phases
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.components import components
from rfmdp.outer.graph import Graph
from rfmdp.types import FloatArray


class Reach:
    """The states that every state can come to, by any rows and any nature.

    >>> stay, step = [([], [0])], [([], [0]), ([], [1])]
    >>> model = FactoredMDP.from_rows([stay, step, [([], [2])]], [])
    >>> Reach(model).largest(np.array([7.0, 3.0, 5.0])).tolist()
    [7.0, 7.0, 5.0]
    """

    def __init__(self, model: FactoredMDP) -> None:
        self._graph = Graph(model)
        self._parts = components(self._graph)

    def largest(self, values: FloatArray) -> FloatArray:
        """Return the largest of some values >= 0 among the states (S,) that each can come to."""
        parts = self._parts
        most = np.maximum.reduceat(values[parts.states], parts.component_ptr[:-1])
        # floats >= 0 are in the order of the integers that their bits are
        rank, none = (most + 0.0).view(np.int64), np.zeros(len(most), dtype=np.bool_)
        component_phases(
            self._graph.edges.forward, self._graph.rows, parts.component, parts.states, none, rank
        )
        found: FloatArray = rank.view(np.float64)[parts.component]
        return found
