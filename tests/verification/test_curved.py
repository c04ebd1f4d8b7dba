"""Sets with curved boundaries and tables of subsets: what the checker takes them for."""

import numpy as np
import pytest

from rfmdp.errors import ModelError
from rfmdp.formats.records import solution_to_record
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Reach, Spec
from rfmdp.sets.families import KLBall, SubsetSet
from rfmdp.solving import solve
from rfmdp.verification.solution import verdict_of
from verification.test_linear import rows_of


def test_the_radius_of_a_kl_ball_is_not_divided():
    """It bounds the divergence from d / sum d, whatever that sum is."""
    rows = rows_of([KLBall([0.5, 0.5], 0.1)], [[0]])
    rows.sets.nominal[:] = 0.5 + 2e-10
    assert rows.rounded.radius[0] == 0.1


def test_a_subset_set_has_its_nominal_distribution():
    """Pairs that are all likely leave nothing, though no set and its complement do."""
    table = np.array([0.0, 0.0, 0.0, 0.5, 0.0, 0.5, 0.5, 1.0])
    goal = {"goal": np.array([False, True, False])}
    rows = [[([0], [0, 1, 2])], [([], [1])], [([], [2])]]
    model = FactoredMDP.from_rows(rows, [SubsetSet(table, np.full(3, 1 / 3))], labels=goal)
    kind, header, arrays = solution_to_record(solve(model, Spec(Reach("goal"), MAX, MIN)))
    assert verdict_of(kind, header, arrays).valid
    empty = np.where(table == 0.5, 0.9, table)
    with pytest.raises(ModelError, match="nominal must be a member"):
        SubsetSet(empty, np.full(3, 1 / 3))
    forged = {**arrays, "model.marginals.corners": empty}
    forged["model.marginals.upper"] = np.full(3, 1.0)
    assert "must be a member" in str(verdict_of(kind, header, forged))
