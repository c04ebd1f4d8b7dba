"""Forged results, each once called valid: altered, written anew with a right checksum, rejected."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from outer.random_specs import specs, tiny_model
from outer.test_laws import REACH, walk
from processes import python
from rfmdp.formats.records import solution_to_record
from rfmdp.inner.solvers import IntervalArithmetic
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import (
    MAX,
    MIN,
    BudgetUntil,
    Cumulative,
    Discounted,
    Globally,
    Instantaneous,
    Reach,
    Spec,
    Until,
)
from rfmdp.outer.solution import Status
from rfmdp.sets.families import (
    Interval,
    L1Ball,
    LpBall,
    Polytope,
    Singleton,
)
from rfmdp.solving import solve
from rfmdp.verification.solution import verdict_of

SPECS = dict(specs())


def judge(header, arrays):
    """Return the verdict about a solution, as if its file were signed anew."""
    return verdict_of("solution", header, arrays)


def opened(found):
    """Return header and arrays of a solution, both to be altered."""
    _, header, arrays = solution_to_record(found)
    return json.loads(json.dumps(header)), {k: np.array(a) for k, a in arrays.items()}


def test_nothing_of_the_solver_is_loaded():
    """Checking a file imports neither solvers nor sets nor kernels."""
    code = (
        "import sys, rfmdp.verification.solution, rfmdp.verification.learning\n"
        "rooms = ('inner', 'outer', 'kernels', 'sets', 'model', 'solving')\n"
        "print([m for m in sys.modules if m.startswith(tuple('rfmdp.' + r for r in rooms))])"
    )
    assert python(code).stdout.strip() == "[]"


def test_a_witness_that_is_not_there():
    """All bounds 0, goal included, with the flag of a witness but no arrays."""
    header, arrays = opened(solve(walk(), REACH))
    header["witness"] = True
    for name in ("lower", "upper", "value"):
        arrays[name][:] = 0.0
    assert not judge(header, arrays).valid


@pytest.mark.parametrize("name", ["globally MINMAX", "globally MAXMIN"])
def test_a_missing_witness(name):
    """Without it nothing is known from its side."""
    for seed in range(8):
        header, arrays = opened(solve(tiny_model(seed), SPECS[name]))
        assert judge(header, arrays).valid
        for witness, claim in (("lower", "upper"), ("upper", "lower")):
            cut = {k: a for k, a in arrays.items() if k != f"witness.{witness}"}
            strong = arrays["upper"].min() < 1.0 if claim == "upper" else arrays["lower"].max() > 0
            assert judge(header, cut).valid == (not strong)


def test_a_missing_witness_of_steps():
    """The steps before an until start from what is known without one."""
    tried = 0
    for seed in range(12):
        header, arrays = opened(solve(tiny_model(seed), SPECS["late MAXMIN"]))
        header["status"] = "GAP_OPEN"
        del arrays["witness.upper"]
        for s in np.flatnonzero(arrays["lower"] > 0.0):
            forged = {**arrays, "upper": np.ones_like(arrays["upper"])}
            forged["lower"], forged["value"] = 0.0 * arrays["lower"], 0.0 * arrays["lower"]
            assert judge(header, forged).valid
            forged["upper"][s] = 0.5 * arrays["lower"][s]
            assert not judge(header, forged).valid
            tried += 1
    assert tried


def test_a_negative_upper_bound_alone():
    """One-sided results are checked as well."""
    header, arrays = opened(solve(walk(), REACH, inner=IntervalArithmetic()))
    assert judge(header, arrays).valid
    header, arrays = opened(replace(solve(walk(), REACH), lower=None, status=Status.GAP_OPEN))
    assert judge(header, arrays).valid
    arrays["upper"][:] = arrays["value"][:] = -0.8
    assert not judge(header, arrays).valid


def test_every_state_of_a_horizon_counts_by_itself():
    """A neighbour that pays 1e12 is no excuse."""
    rows = [[([0], [0, 1])], [([], [1])], [([], [2])]]
    rewards = {"r": Rewards(np.array([1.0, 0.0, 1e12]), np.zeros(3))}
    model = FactoredMDP.from_rows(rows, [Interval([0.2, 0.4], [0.6, 0.8])], rewards=rewards)
    header, arrays = opened(solve(model, Spec(Cumulative(3, "r"), MAX, MIN)))
    assert judge(header, arrays).valid
    for name, factor in (("lower", 1.0 + 3e-6), ("upper", 1.0 - 3e-6)):
        forged = {k: a.copy() for k, a in arrays.items()}
        forged[name][0] = arrays["value"][0] * factor
        forged["value"][0] = forged[name][0]
        assert not judge(header, forged).valid


def test_overflow_proves_nothing():
    """Rewards and bounds near the largest float."""
    rows = [[([0], [0, 1])], [([], [1])]]
    rewards = {"r": Rewards(np.ones(2), np.zeros(2))}
    model = FactoredMDP.from_rows(rows, [Singleton([0.5, 0.5])], rewards=rewards)
    header, arrays = opened(solve(model, Spec(Discounted(0.9, "r"), MAX, MIN)))
    assert judge(header, arrays).valid
    for name, state in (("state_reward", 1e308), ("row_reward", 1e308)):
        arrays[f"model.{name}.0"][:] = state
    assert not judge(header, arrays).valid
    arrays["model.row_reward.0"][:] = 0.0
    for name in ("lower", "upper", "value"):
        arrays[name][:] = 1.7e308
    assert not judge(header, arrays).valid


PAIRS = [
    Singleton([0.5, 0.5]),
    Interval([0.25, 0.25], [0.75, 0.75]),
    L1Ball([0.5, 0.5], 0.25),
    LpBall([0.5, 0.5], 0.1, 2.0),
    Polytope([[0.5, 0.5], [0.25, 0.75]]),
]


@pytest.mark.parametrize("uset", PAIRS, ids=lambda uset: type(uset).__name__)
def test_differences_that_overflow_were_a_proof(uset):
    """Bounds of 1.2e308 beside -1.2e308, while nothing is paid; the same of what is paid."""
    model = FactoredMDP.from_rows(
        [[([0], [1, 2])], [([], [1])], [([], [2])]],
        [uset],
        rewards={"r": Rewards(np.array([0.0, -1.0, 1.0]), np.zeros(3))},
    )
    for objective, agent, nature, side in itertools.product(
        (Discounted(0.5, "r"), Instantaneous(1, "r")), (MAX, MIN), (MAX, MIN), (-1, 1)
    ):
        header, arrays = opened(solve(model, Spec(objective, agent, nature)))
        header["status"] = "GAP_OPEN"
        name, other = ("upper", "lower") if side > 0 else ("lower", "upper")
        del arrays[other]
        forged = {k: a.copy() for k, a in arrays.items()}
        if isinstance(objective, Discounted):
            forged[name] = np.array([-side, side, side]) * 1.2e308
            arrays[name] = arrays["value"] = np.array([1.2e308, 3.0, 3.0]) * side
            assert judge(header, arrays).valid
        else:
            forged["model.state_reward.0"] *= 1.2e308
            forged[name] = np.array([-side, -1.0, 1.0]) * 1.2e308
        forged["value"] = forged[name]
        assert not judge(header, forged).valid


def test_sums_that_overflow_were_a_proof():
    """Two rewards of 1.2e308 were infinitely many, whatever was lost before."""
    rewards = {"r": Rewards(np.array([-1.0, 1.0, 1.0, 0.0]), np.zeros(4))}
    model = FactoredMDP.from_rows([[([], [k])] for k in (1, 2, 3, 3)], [], rewards=rewards)
    header, arrays = opened(solve(model, Spec(Cumulative(3, "r"), MAX, MIN)))
    header["status"] = "GAP_OPEN"
    arrays["model.state_reward.0"] *= 1.2e308
    arrays["lower"] = arrays["value"] = np.array([1.7e308, 1.5e308, 1.2e308, 0.0])
    del arrays["upper"]
    assert "must be at most 1e+100" in str(judge(header, arrays))


def test_certified_means_close():
    """A gap of .4 at a precision of 1e-6, and the same by absolute measure."""
    header, arrays = opened(solve(walk(), REACH))
    arrays["lower"] = np.maximum(arrays["lower"] - 0.4, 0.0)
    assert "as close as certified: does not hold" in str(judge(header, arrays))
    header["status"] = "SWEEP_LIMIT"
    assert judge(header, arrays).valid
    header["status"], header["precision"], header["measure"] = "CERTIFIED", 0.5, "ABSOLUTE"
    assert judge(header, arrays).valid


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf])
def test_values_lie_between_the_bounds(value):
    """What is printed as the value is part of the claim."""
    header, arrays = opened(solve(walk(), REACH))
    arrays["value"][3] = value
    assert not judge(header, arrays).valid


@pytest.mark.parametrize("discount", [1, 1.0, -5, 0.0, 2.0, "0.9", None, True, float("nan")])
def test_discounts_discount(discount):
    """An endless sum without one means nothing."""
    header, arrays = opened(solve(tiny_model(2), SPECS["discounted MAXMIN"]))
    assert judge(header, arrays).valid
    header["objective"]["discount"] = discount
    assert not judge(header, arrays).valid


def test_a_row_of_many_marginals():
    """Sizes that do not fit an integer are no sizes."""
    model = FactoredMDP.from_rows(
        [[([0], [0, 1])], [([], [1])]], [Singleton([0.5, 0.5])], labels={"goal": [False, True]}
    )
    header, arrays = opened(solve(model, Spec(Reach("goal"), MAX, MIN)))
    arrays["model.row_marginals"] = np.zeros(64, dtype=np.int32)
    arrays["model.marginal_ptr"] = np.array([0, 64, 64])
    arrays["model.successor_ptr"] = np.array([0, 0, 1])
    arrays["model.successors"] = np.array([1], dtype=np.int32)
    assert "product of the sizes" in str(judge(header, arrays))


def looping(uset, successors, nature=MIN):
    """Return one state that loops with the outcomes of a set: 0 itself, 1 goal, 2 sink."""
    rows = [[([0], successors)], [([], [1])], [([], [2])]]
    labels = {"goal": [False, True, False]}
    return FactoredMDP.from_rows(rows, [uset], labels=labels)


@pytest.mark.parametrize(
    ("uset", "successors", "value"),
    [
        (L1Ball([0.9, 0.1], 0.2 - 4e-13), [0, 1], 1.0),
        (L1Ball([0.875, 0.125], 0.25), [0, 1], 0.0),
        (Interval([0] * 4, [1, 1, 0.5, 0.5 - 5e-13]), [1, 1, 0, 0], 1.0),
        (LpBall([0.4, 0.3, 0.3], 0.45, 2000.0), [0, 1, 1], 1.0),
        (Interval([0.0] * 17, [1.0] + [2.0**-4] * 16), [0, *[1] * 16], 0.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("claim", [0.0, 1.0])
def test_what_nature_can_empty_is_decided_exactly(uset, successors, value, claim):
    """Values 0 and 1 that hang on one outcome: the true claim passes, the other does not."""
    model = looping(uset, successors)
    header, arrays = opened(solve(model, Spec(Reach("goal"), MAX, MIN)))
    header["status"], header["witness"] = "CERTIFIED", False
    for name in ("lower", "upper", "value"):
        arrays[name] = np.array([claim, 1.0, 0.0])
    assert judge(header, arrays).valid == (claim == value)


@pytest.mark.parametrize("nature", [MIN, MAX])
@pytest.mark.parametrize(
    "uset", [LpBall([0.5, 0.3, 0.2], 0.2, 1.5), LpBall([0.7, 0.3, 0.0], 0.2, 3.0)], ids=str
)
def test_sets_without_vertices(uset, nature):
    """Lp balls are proven by their duals, alone and in products."""
    rows = [[([0], [1, 0, 2])], [([], [1])], [([], [2])], [([0, 1], [1, 3, 2, 0, 2, 1])]]
    labels = {"goal": [False, True, False, False]}
    model = FactoredMDP.from_rows(rows, [uset, Interval([0.4, 0.4], [0.6, 0.6])], labels=labels)
    header, arrays = opened(solve(model, Spec(Reach("goal"), MAX, nature)))
    assert judge(header, arrays).valid
    for name, step in (("lower", 1e-5), ("upper", -1e-5)):
        for state in (3,):
            forged = {k: a.copy() for k, a in arrays.items()}
            forged[name][state] = forged["value"][state] = arrays["value"][state] + step
            assert not judge(header, forged).valid


@pytest.mark.parametrize(
    "objective", [Until("safe", "goal", None, 2), Globally("safe"), Globally("safe", None, 2)]
)
def test_turned_and_stepped_bounds_rest_on_the_witness(objective):
    """Raising a claim above what its witness proves is noticed, to the last bit of a complement."""
    tried = 0
    for seed in range(10):
        header, arrays = opened(solve(tiny_model(seed), Spec(objective, MAX, MIN)))
        header["status"] = "GAP_OPEN"
        proven = {"lower": arrays["lower"], "upper": arrays["upper"]}
        arrays["lower"], arrays["upper"] = arrays["lower"] * 0.0, arrays["upper"] * 0.0 + 1.0
        assert judge(header, arrays).valid
        inside = (proven["lower"] > 1e-6) & (proven["upper"] < 1.0 - 1e-6)
        moved = {"lower": proven["lower"] + 1e-5, "upper": proven["upper"] - 1e-5}
        if objective.earliest in (None, 0):  # the witness bounds the complement
            moved["lower"] = np.nextafter(1.0 - arrays["witness.upper"], np.inf)
            moved["upper"] = np.nextafter(1.0 - arrays["witness.lower"], -np.inf)
        for s, name in itertools.product(np.flatnonzero(inside), ("lower", "upper")):
            forged = {k: a.copy() for k, a in arrays.items()}
            forged[name][s] = forged["value"][s] = moved[name][s]
            assert not judge(header, forged).valid
            tried += 1
    assert tried


@pytest.mark.parametrize(
    ("objective", "field"),
    [(Until("safe", "goal", latest=3), "latest"), (Cumulative(3, "signed"), "steps"),
     (Instantaneous(3, "signed"), "step"), (Until("safe", "goal", earliest=2), "earliest")],
)  # fmt: skip
def test_any_number_of_steps_was_a_lack_of_memory(objective, field):
    """A horizon must be that of the policy, before it is counted with."""
    header, arrays = opened(solve(tiny_model(1), Spec(objective)))
    assert judge(header, arrays).valid
    for steps in (1, 5, 2**62, 2**200):
        header["objective"][field] = steps
        assert "must have a rule per step" in str(judge(header, arrays))


@pytest.mark.parametrize("bound", [np.inf, -np.inf])
@pytest.mark.parametrize("name", ["lower", "upper", "value"])
def test_infinite_bounds_of_staying_are_judged_without_a_word(name, bound):
    """Turned round they meet each other; the warning of a difference is no verdict."""
    header, arrays = opened(solve(tiny_model(1), Spec(Globally("safe", latest=3))))
    arrays[name][:] = bound
    header["status"] = "GAP_OPEN"
    verdict = judge(header, arrays)
    assert verdict.valid == (name != "value" and bound == (np.inf if name == "upper" else -np.inf))


def test_a_known_distribution_with_other_corners():
    """A file in which a known distribution has other corners is none of ours."""
    model = looping(Polytope([[0.5, 0.25, 0.25]]), [0, 1, 2])
    header, arrays = opened(solve(model, Spec(Reach("goal"), MAX, MIN)))
    assert judge(header, arrays).valid
    arrays["model.marginals.corners"] = np.array([0.5, 0.5, 0.0])
    for name in ("lower", "upper", "value"):
        arrays[name] = np.array([1.0, 1.0, 0.0])
    assert "corner_ptr" in str(judge(header, arrays))


def test_a_known_distribution_with_a_radius():
    """Who loads the model gets the distribution; the claim was proven of the ball."""
    header, arrays = opened(
        solve(looping(L1Ball([0.5, 0.25, 0.25], 0.25), [0, 1, 2]), Spec(Reach("goal"), MAX, MIN))
    )
    assert judge(header, arrays).valid
    arrays["model.marginals.kind"][0] = 0
    for name in ("lower", "upper"):
        arrays[f"model.marginals.{name}"] = arrays["model.marginals.nominal"].copy()
    assert "only balls have one" in str(judge(header, arrays))


@pytest.mark.parametrize("uset", [L1Ball([1.0], 0.5), LpBall([0.5, 0.25, 0.25], 1e-17, 2.0)])
def test_balls_that_are_known_distributions_are_read(uset):
    """They keep radius and exponent in the file."""
    model = looping(uset, list(range(uset.size)))
    assert model.marginals.kind.tolist() == [0]
    header, arrays = opened(solve(model, Spec(Reach("goal"), MAX, MIN)))
    assert not judge(header, arrays).failed


def test_a_label_hides_the_initial_states():
    """Bounds of 0 and 1 were certified in the states of a label `init` of the file's own."""
    header, arrays = opened(solve(walk(), REACH))
    header["model"]["labels"].append("init")
    count = len(header["model"]["labels"])
    arrays[f"model.label.{count - 1}"] = np.zeros(len(arrays["value"]), dtype=bool)
    assert judge(header, arrays).valid
    arrays["lower"], arrays["upper"] = 0.0 * arrays["lower"], 0.0 * arrays["upper"] + 1.0
    assert "as close as certified: does not hold" in str(judge(header, arrays))


def test_a_reward_without_a_name_was_called_invalid():
    """It is the first of several."""
    rows = [[([0], [0, 1])], [([], [1])]]
    rewards = {"a": Rewards(np.ones(2), np.zeros(2)), "b": Rewards(np.zeros(2), np.zeros(2))}
    model = FactoredMDP.from_rows(rows, [Interval([0.2, 0.4], [0.6, 0.8])], rewards=rewards)
    header, arrays = opened(solve(model, Spec(Cumulative(3), MAX, MIN)))
    assert judge(header, arrays).valid
    header["model"]["rewards"].reverse()
    for name in ("state", "row"):
        one, two = (f"model.{name}_reward.{i}" for i in range(2))
        arrays[one], arrays[two] = arrays[two], arrays[one]
    assert not judge(header, arrays).valid


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_a_budget_without_a_witness_was_no_verdict(side):
    """A file that lacks one side of it made an error of ours."""
    rows = [[([0], [0, 1])], [([], [1])]]
    rewards = {"cost": Rewards(np.zeros(2), np.array([1.0, 0.0]))}
    labels = {"stay": [True, True], "goal": [False, True]}
    model = FactoredMDP.from_rows(
        rows, [Interval([0.2, 0.4], [0.6, 0.8])], labels=labels, rewards=rewards
    )
    header, arrays = opened(solve(model, Spec(BudgetUntil("stay", "goal", 2, "cost"), MAX, MIN)))
    assert judge(header, arrays).valid
    del arrays[f"witness.{side}"]
    assert "must have the sides that are claimed" in str(judge(header, arrays))
