"""Decision trees: proven values, and no loss where nothing is given up."""

import numpy as np
import pytest

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.objective import MAX, MIN, Spec, Until
from rfmdp.policies.tree import decision_tree
from rfmdp.solving import evaluate, solve

from .test_decisions import walk
from .test_files import SPEC, grid

pytest.importorskip("sklearn", reason="scikit-learn is not installed")


def test_a_large_tree_is_the_policy():
    """With enough leaves the tree decides as the policy does and loses only the bounds' width."""
    solution = solve(grid(), SPEC)
    tree = decision_tree(solution, leaves=100)
    assert tree.agreement == 1.0
    assert tree.loss <= solution.at_initial().width + tree.value.width
    assert "x" in tree.text


@pytest.mark.parametrize("leaves", [2, 3, 5])
def test_a_small_tree_has_the_value_that_it_says(leaves):
    """The value is that of the tree's policy, and never better than the optimum."""
    solution = solve(grid(N=6), SPEC)
    tree = decision_tree(solution, leaves)
    again = evaluate(grid(N=6), tree.policy, SPEC).at_initial()
    assert tree.value == again
    assert tree.value.lower <= solution.at_initial().upper
    assert np.all(tree.policy.rows[0] >= grid(N=6).row_ptr[:-1])


def test_what_has_no_tree_is_refused():
    """Models without variables and policies that change with time."""
    with pytest.raises(ModelError, match="variables"):
        decision_tree(solve(walk(), SPEC))
    timed = Spec(Until("goal", "goal", latest=2), MAX, MIN)
    with pytest.raises(UnsupportedError, match="change with time"):
        decision_tree(solve(grid(), timed))


def test_tables_for_notebooks():
    """A frame has a line per state; states are found by their variables."""
    solution = solve(grid(), SPEC)
    frame = solution.to_frame()
    assert len(frame) == solution.model.states
    assert frame["lower"].tolist() == solution.lower.tolist()
    assert solution.at(x=2, up=0) == solution.at(solution.model.find(x=2, up=0))
    assert "\n" not in repr(solution)
    assert repr(solution).startswith("Solution(Reach, certified")
    assert "<table" in solution._repr_html_()
