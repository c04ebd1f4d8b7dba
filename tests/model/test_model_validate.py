"""Validation lists everything at once; models from arrays are checked."""

from dataclasses import replace

import numpy as np
import pytest

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.validate import require_valid, validate
from rfmdp.sets.families import Singleton

COIN, DIE = Singleton([0.5, 0.5]), Singleton([0.2, 0.3, 0.5])


@pytest.fixture
def model() -> FactoredMDP:
    """Return a sound model with three states and four rows, 2 x 3 among them."""
    return FactoredMDP.from_rows(
        [
            [([0, 1], [0, 1, 2, 2, 1, 0], "roll"), ([], [2], "wait")],
            [([0], [0, 1], "toss")],
            [([], [2], "wait")],
        ],
        [COIN, DIE],
        labels={"goal": [False, False, True]},
        rewards={"cost": Rewards(state=np.zeros(3), row=np.ones(4))},
    )


def test_a_sound_model_has_no_issues(model):
    """Nothing is listed, nothing is raised."""
    assert validate(model) == ()
    require_valid(model)


def test_every_problem_is_listed_at_once(model):
    """One report names all of many faults."""
    cost = Rewards(state=np.array([0.0, np.nan, 1.0]), row=np.zeros(7))
    broken = replace(
        model,
        successors=np.array([0, 1, 2, 9, 1, 0, 2, 0, -1, 2], dtype=np.int32),
        row_marginals=np.array([0, 0, 1], dtype=np.int32),
        initial=np.array([5]),
        row_actions=np.array([0, 1, 8, 1], dtype=np.int32),
        actions=("go", "go"),
        labels={"goal": np.zeros(2, dtype=np.bool_), "real": np.zeros(3)},
        rewards={"cost": cost},
        variables=(Variable("x", 0, 1), Variable("x", 0, 1)),
        valuations=np.array([[0, 0], [0, 1], [3, 0]], dtype=np.int32),
        marginal_names=("a",),
    )
    expected = [
        "Initial states: must be within 0..2, got 5.",
        "Row 2: its action must be within 0..1, got 8.",
        'Label "goal": must have one entry per state (3), got 2.',
        'Label "real": must be boolean, got float64.',
        'Reward "cost", states: must be numbers of at most 1e+100, state 1 has nan.',
        'Reward "cost", rows: must have one entry per row (4), got 7.',
        "(x=3, x=0): x must be within 0..1.",
        "Action 'go': is named twice.",
        "Variable 'x': is named twice.",
        "marginal_names: must have one entry per marginal (2), got 1.",
        "Row 0 ((x=0, x=0), action go): the tensor must have 4 successors, has 6.",
        "Row 2: the tensor must have 3 successors, has 2.",
        "Row 0 ((x=0, x=0), action go): successors must be within 0..2, got 9.",
        "Row 2: successors must be within 0..2, got -1.",
    ]
    assert sorted(validate(broken)) == sorted(expected)


def test_pointers_are_checked_first(model):
    """Pointers that cannot be followed are reported, without following them."""
    broken = replace(
        model,
        row_ptr=np.array([1, 3, 2, 5]),
        marginal_ptr=np.array([0, 2, 3]),
        initial=np.array([], dtype=np.int64),
    )
    assert list(validate(broken)) == [
        "row_ptr: must rise from 0 to 4 (the number of rows), got 1 .. 5, which falls after "
        "entry 1.",
        "marginal_ptr: must have one entry per row and one more (5), got 3.",
        "Initial states: there must be at least one.",
    ]


def test_a_state_without_rows_is_named(model):
    """Every state needs a choice."""
    broken = replace(model, row_ptr=np.array([0, 2, 2, 4]))
    assert validate(broken) == ("state 1: must have at least one row, has none.",)


def test_marginals_of_rows_must_exist(model):
    """Identifiers out of range are named with their row."""
    broken = replace(model, row_marginals=np.array([0, 7, 0], dtype=np.int32))
    assert list(validate(broken)) == [
        "Row 0 (state 0, action roll): marginals must be within 0..1, got 7."
    ]


def test_the_error_shows_twenty_and_counts_the_rest(model):
    """A message stays readable, the report is complete."""
    many = replace(model, initial=np.arange(50))
    assert len(validate(many)) == 47
    with pytest.raises(ModelError) as caught:
        require_valid(many)
    lines = str(caught.value).splitlines()
    assert len(lines) == 22
    assert lines[0].endswith("has 47 errors:")
    assert lines[-1] == "  ... and 27 more"


def test_row_factors_are_checked(model):
    """Factors of marginals exist and are as many as the marginals of rows."""
    short = replace(model, factors=("f",), row_factors=np.zeros(2, dtype=np.int32))
    assert "row_factors: must have one entry per marginal of a row (3), got 2." in str(
        validate(short)
    )
    wrong = replace(model, factors=("f",), row_factors=np.array([0, 1, 0], dtype=np.int32))
    assert "row_factors[1]: must be within 0..0, got 1." in str(validate(wrong))


A_ROW = "must be (marginals, successors) or (marginals, successors, action)"
BAD_ROWS = [
    ([[([], [0.5])]], f"State 0, row 0: {A_ROW}; they must be integers, got float64."),
    ([[([], [[0], [0, 1]])]], f"State 0, row 0: {A_ROW}; setting an array element"),
    ([[([0.0], [0, 0])]], f"State 0, row 0: {A_ROW}; they must be integers, got float64."),
    ([[([0],)]], f"State 0, row 0: {A_ROW}; not enough values"),
    ([([0], [0, 0])], f"State 0, row 0: {A_ROW}; not enough values"),
    ([[([], [0], 1)]], f"State 0, row 0: {A_ROW}; the action must be a name, got 1."),
    ([0], f"State 0, row 0: {A_ROW}; 'int' object is not iterable"),
    ([[([2**40], [0])]], "they must fit 32 bits, got 1099511627776."),
    ([[([0], [0, 2**40])]], "they must fit 32 bits, got 1099511627776."),
    (None, "'NoneType' object is not iterable"),
]


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS)
def test_bad_rows_are_named(rows, message):
    """A row of the wrong size is found where it is."""
    with pytest.raises(ModelError) as caught:
        FactoredMDP.from_rows(rows, [COIN, DIE])
    assert message in str(caught.value)


WRONG_SIZES = [
    ([[([0], [0])]], "Row 0 (state 0, action a0): the tensor must have 2 successors, has 1."),
    (
        [[([0, 1], [0])]],
        "Row 0 (state 0, action a0): the tensor must have 6 successors, has 1.",
    ),
    (
        [[([], [0])], [([3], [0])]],
        "Row 1 (state 1, action a0): marginals must be within 0..1, got 3.",
    ),
]


@pytest.mark.parametrize(("rows", "message"), WRONG_SIZES)
def test_rows_of_a_wrong_size_are_named(rows, message):
    """What does not fit is found by the checks of every model, and nothing else is."""
    with pytest.raises(ModelError) as caught:
        FactoredMDP.from_rows(rows, [COIN, DIE])
    assert str(caught.value).partition(" has 1 error:\n  ")[2] == message


PAYS = "must be Rewards(state, row): a number per state, and one per row; got"
BAD_PARTS = [
    ({"rewards": {"c": [1.0, 2.0]}}, f'Reward "c": {PAYS} [1.0, 2.0].'),
    ({"rewards": {"c": None}}, f'Reward "c": {PAYS} None.'),
    ({"rewards": [1.0, 2.0]}, "from_rows: sets must be listed, labels and rewards named"),
    ({"labels": ["goal"]}, "from_rows: sets must be listed, labels and rewards named"),
    ({"marginals": COIN}, "from_rows: sets must be listed, labels and rewards named"),
]


@pytest.mark.parametrize(("parts", "message"), BAD_PARTS)
def test_parts_of_a_wrong_type_are_named(parts, message):
    """The message says what must be given."""
    given = {"marginals": [COIN]} | parts
    with pytest.raises(ModelError) as caught:
        FactoredMDP.from_rows([[([], [0])]], **given)
    assert message in str(caught.value)


def test_successors_are_validated():
    """What sizes allow is still checked by `validate`."""
    with pytest.raises(ModelError, match=r"successors must be within 0..0, got 5"):
        FactoredMDP.from_rows([[([0], [0, 5])]], [COIN])


def test_a_row_of_64_coins_is_refused():
    """Its tensor has 2^64 successors, which integers of 64 bits call 0."""
    message = r"the tensor must have 1.84467e\+19 successors, has 0"
    with pytest.raises(ModelError, match=message):
        FactoredMDP.from_rows([[([0] * 64, [])]], [COIN])
    whole = FactoredMDP.from_rows([[([], [0])]], [COIN])
    for coins in (62, 63, 64, 65, 128):
        forged = replace(
            whole,
            row_marginals=np.zeros(coins, dtype=np.int32),
            marginal_ptr=np.array([0, coins]),
            successor_ptr=np.array([0, 0]),
            successors=np.empty(0, dtype=np.int32),
        )
        assert f"must have {2.0**coins:.6g} successors" in str(validate(forged))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e101, -1e308])
@pytest.mark.parametrize("part", ["state", "row"])
def test_rewards_that_overflow(model, value, part):
    """Rewards are finite, and far enough from the largest float that sums of them are."""
    cost = {"state": np.zeros(3), "row": np.ones(4)}
    cost[part][1] = value
    with pytest.raises(ModelError, match=f"must be numbers of at most 1e\\+100, {part} 1 has"):
        require_valid(replace(model, rewards={"cost": Rewards(**cost)}))


def test_rewards_are_numbers():
    """Lists and integers become floats; anything else is refused where it is given."""
    assert Rewards([1, 2], [3]).state.dtype == np.float64
    with pytest.raises(ModelError, match="Rewards: row must be numbers"):
        Rewards([1.0], ["much"])


def test_types_of_arrays_are_checked(model):
    """Arrays of other types would make kernels compile anew, or fail."""
    wrong = replace(model, successors=model.successors.astype(np.float64))
    assert list(validate(wrong)) == [
        "successors: must be int32 with 1 dimensions, got float64 with 1."
    ]
