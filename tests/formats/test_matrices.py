"""Matrices in the layout of pymdptoolbox."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

import rfmdp as rf
from rfmdp.errors import ModelError
from rfmdp.formats.libraries import from_matrices

from .models import rows_of

FOREST = np.array(  # the forest of pymdptoolbox: wait or cut; S = 3, fire 0.1
    [
        [[0.1, 0.9, 0.0], [0.1, 0.0, 0.9], [0.1, 0.0, 0.9]],
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
    ]
)
PAID = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 2.0]])


def random_matrices(rng, number, states):
    """Return boxes around random distributions with zeros; all bounds are attained."""
    nominal = rng.random((number, states, states)) * (rng.random((number, states, states)) < 0.6)
    nominal[..., :2] += 0.1
    nominal /= nominal.sum(axis=-1, keepdims=True)
    possible = nominal > 0.0
    radius = 0.5 * np.min(nominal, axis=-1, keepdims=True, initial=1.0, where=possible)
    return np.where(possible, nominal - radius, 0.0), np.where(possible, nominal + radius, 0.0)


def test_the_forest_has_its_textbook_values():
    """Discounted values of pymdptoolbox's own example, from its documentation."""
    model = from_matrices(FOREST, PAID, actions=["wait", "cut"])
    found = rf.solve(model, rf.Spec(rf.Discounted(0.96), agent=rf.MAX, nature=rf.MIN))
    values = np.linalg.solve(np.eye(3) - 0.96 * FOREST[0], PAID[:, 0])
    assert found.value == pytest.approx(values, abs=1e-4)
    assert model.row_actions[found.policy.rows[0]].tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", ["array", "list", "csr", "csc"])
def test_all_containers_mean_the_same(kind):
    """Dense and sparse matrices, stacked or listed."""
    make = {"array": np.asarray, "list": list, "csr": None, "csc": None}[kind]
    sparse = {"csr": csr_array, "csc": csc_array}.get(kind)
    given = make(FOREST) if make else [sparse(m) for m in FOREST]
    assert rows_of(from_matrices(given)) == rows_of(from_matrices(FOREST))


def test_rewards_in_all_shapes():
    """(S,) and (S, A) pay what pymdptoolbox says they pay."""
    model = from_matrices(FOREST, PAID)
    assert model.rewards["reward"].row.reshape(3, 2).tolist() == PAID.tolist()
    model = from_matrices(FOREST, PAID[:, 0])
    assert model.rewards["reward"].row.tolist() == np.repeat(PAID[:, 0], 2).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_intervals(seed):
    """Bounds are those of the matrices to the last bit."""
    lower, upper = random_matrices(np.random.default_rng(seed), 2, 4)
    for state, action, row in rows_of(from_matrices(lower, upper=upper)):
        a = int(action[1:])
        for target in range(4):
            ends = (lower[a, state, target], upper[a, state, target])
            assert row.get(target, (0.0, 0.0)) == ends


def test_a_row_of_zeros_is_no_action():
    """A state without an action has no row for it; a state without any is refused."""
    given = FOREST.copy()
    given[1, 0] = 0.0
    model = from_matrices(given)
    assert np.diff(model.row_ptr).tolist() == [1, 2, 2]
    given[0, 0] = 0.0
    with pytest.raises(ModelError, match="1 have none, the first is 0"):
        from_matrices(given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: from_matrices(FOREST[:, :2]),
            "must be square matrices of numbers of one shape.*2 x 3",
        ),
        (lambda: from_matrices([FOREST[0], np.eye(2)]), "must be square matrices of numbers"),
        (lambda: from_matrices(FOREST * 0.5), "sum"),
        (lambda: from_matrices(FOREST, FOREST), "take the mean"),
        (lambda: from_matrices(FOREST, np.ones(4)), r"rewards: must have the shape \(3,\)"),
        (
            lambda: from_matrices(FOREST, upper=FOREST[:1]),
            "upper: must have as many matrices",
        ),
        (lambda: from_matrices(np.ones((1, 2, 2)) / 2, upper=[np.eye(2)]), "must not exceed"),
        (lambda: from_matrices(FOREST, actions=["a"]), "must name 2 actions"),
        (lambda: from_matrices("ab"), "must be square matrices of numbers"),
    ],
)
def test_mistakes(call, message):
    """What does not fit is said in one line."""
    with pytest.raises(ModelError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
