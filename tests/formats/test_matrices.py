"""Matrices in the layout of pymdptoolbox."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

import rfmdp as rf
from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.formats.matrices import from_matrices, to_matrices

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


@pytest.mark.parametrize("rewards", ["state", "state-action", "transition", "sparse"])
def test_rewards_in_all_shapes(rewards):
    """(S,), (S, A), (A, S, S) and sparse matrices pay what pymdptoolbox says they pay."""
    rng = np.random.default_rng(0)
    paid = {
        "state": rng.random(3), "state-action": rng.random((3, 2)),
        "transition": rng.random((2, 3, 3)), "sparse": rng.random((2, 3, 3)),
    }[rewards]  # fmt: skip
    given = [csr_array(m) for m in paid] if rewards == "sparse" else paid
    expected = {1: lambda: np.repeat(paid[:, None], 2, 1), 2: lambda: paid}.get(
        paid.ndim, lambda: (FOREST * paid).sum(axis=-1).T
    )()
    model = from_matrices(FOREST, given)
    assert model.rewards["reward"].row.reshape(3, 2) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_there_and_back(seed):
    """Intervals through a model and back are the same to the last bit."""
    lower, upper = random_matrices(np.random.default_rng(seed), 2, 4)
    found = to_matrices(from_matrices(lower, np.ones((4, 2)), upper=upper))
    for a in range(2):
        assert (found.lower[a].toarray() == lower[a]).all()
        assert (found.upper[a].toarray() == upper[a]).all()
    assert (found.rewards["reward"] == 1.0).all()


def test_a_row_of_zeros_is_no_action():
    """A state without an action has no row for it; a state without any is refused."""
    given = FOREST.copy()
    given[1, 0] = 0.0
    model = from_matrices(given)
    assert np.diff(model.row_ptr).tolist() == [1, 2, 2]
    assert [m.toarray().tolist() for m in to_matrices(model).lower] == given.tolist()
    given[0, 0] = 0.0
    with pytest.raises(ModelError, match="all rows of state 0 are zero"):
        from_matrices(given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: from_matrices(FOREST[:, :2]), "must be square, found 2 x 3"),
        (lambda: from_matrices([FOREST[0], np.eye(2)]), "must be matrices of one shape"),
        (lambda: from_matrices(FOREST * 0.5), "sum"),
        (lambda: from_matrices(FOREST, np.ones(4)), r"rewards: must have the shape \(3,\)"),
        (
            lambda: from_matrices(FOREST, upper=FOREST[:1]),
            r"upper: must have the shape \(2, 3, 3\)",
        ),
        (lambda: from_matrices(np.ones((1, 2, 2)) / 2, upper=[np.eye(2)]), "must not exceed"),
        (lambda: from_matrices(FOREST, actions=["a"]), "must name 2 actions"),
        (lambda: from_matrices("ab"), "must be matrices of numbers"),
    ],
)
def test_mistakes(call, message):
    """What does not fit is said in one line."""
    with pytest.raises(ModelError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_rewards_of_transitions_need_known_probabilities():
    """With intervals their expectation would be nature's."""
    with pytest.raises(UnsupportedError, match="depend on nature"):
        from_matrices(0.9 * FOREST, FOREST, upper=FOREST)


def test_a_factored_model_is_flattened():
    """Two coins at once become one matrix."""
    coin = rf.Interval([0.4, 0.4], [0.6, 0.6])
    model = rf.FactoredMDP.from_rows([[([0, 0], [0, 1, 1, 1])], [([], [1])]], [coin])
    matrices = to_matrices(model)
    assert matrices.lower[0].toarray() == pytest.approx(np.array([[0.16, 0.64], [0.0, 1.0]]))
    assert matrices.upper[0].toarray() == pytest.approx(np.array([[0.36, 0.84], [0.0, 1.0]]))


def test_several_choices_of_one_action_are_refused():
    """One matrix per action has no place for them."""
    twice = rf.FactoredMDP.from_rows([[([], [0], "a"), ([], [1], "a")], [([], [1], "a")]], [])
    with pytest.raises(UnsupportedError, match="once at most, but state 0 has 'a' 2 times"):
        to_matrices(twice)
