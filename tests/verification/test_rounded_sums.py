"""Rewards of states and rows are added exactly; closeness is that of the answer; zero steps."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from rfmdp.answers.answer import check
from rfmdp.inner import METHODS
from rfmdp.language.lattice import parse_lattice
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Cumulative, Discounted, Globally, ReachReward, Spec, Total
from rfmdp.outer.solution import Status
from rfmdp.sets.families import Singleton
from rfmdp.solving import evaluate, solve
from rfmdp.verification.solution import verify

OBJECTIVES = [Cumulative(2), Cumulative(2, discount=0.5), Discounted(0.5)]


def chain(state, row):
    """Return 0 -> 1 -> 2, where nothing is paid, with these rewards of states and rows."""
    ends = np.array([False, False, True])
    rewards = {"r": Rewards(np.array([*state, 0.0]), np.array([*row, 0.0]))}
    rows = [[([], [1])], [([], [2])], [([], [2])]]
    return FactoredMDP.from_rows(rows, [], labels={"end": ends}, rewards=rewards)


def truth(objective, state, row):
    """Return the exact value at the start: two payments."""
    rate = Fraction(getattr(objective, "discount", 1.0))
    first, second = (Fraction(s) + Fraction(r) for s, r in zip(state, row, strict=True))
    return first + rate * second


def forged(solution, value):
    """Return a solution that claims a value at the start and nothing elsewhere."""
    lower, upper = solution.lower.copy(), solution.upper.copy()
    lower[0] = upper[0] = value
    middle = solution.value.copy()
    middle[0] = value
    return replace(solution, lower=lower, upper=upper, value=middle)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
@pytest.mark.parametrize(
    ("state", "row"),
    [((1e16, -1e16), (1.0, 0.0)), ((1.0, 0.0), (1e16, -2e16)), ((0.1, 0.7), (0.2, 0.1)),
     ((1e16, 0.0), (3.0, -5.0)), ((1e-3, -1e-3), (1e15, -1e15))],
)  # fmt: skip
@pytest.mark.parametrize("agent", [MAX, MIN])
def test_sums_of_rewards_lose_nothing(objective, state, row, agent):
    """The true value, in fractions, is within what is called a bound and what is proven again."""
    solution = solve(chain(state, row), Spec(objective, agent=agent, nature=MIN))
    exact = truth(objective, state, row)
    assert Fraction(float(solution.lower[0])) <= exact <= Fraction(float(solution.upper[0]))
    assert verify(solution).valid, str(verify(solution))


def test_forged_bounds_of_a_lost_unit_are_not_valid():
    """1e16 + 1 and then -1e16 is worth 1; in floats it looks like 0."""
    solution = solve(chain((1e16, -1e16), (1.0, 0.0)), Spec(Cumulative(2), agent=MAX, nature=MIN))
    assert not verify(forged(solution, 0.0)).valid
    endless = solve(chain((1e16, -2e16), (1.0, 0.0)), Spec(Discounted(0.5), agent=MAX, nature=MIN))
    assert not verify(forged(endless, 0.0)).valid


@pytest.mark.parametrize("objective", [Cumulative(1), ReachReward("end")], ids=str)
@pytest.mark.parametrize(("state", "row"), [("0.1", "0.2"), ("1e-17", "1"), ("-1e-17", "1")])
def test_networks_lose_nothing_either(objective, state, row):
    """The last step pays a sum that no float holds: the rounded sum is forged on one side."""
    model = parse_lattice(
        "mdp module a x:[0..1]; [go] x=0 -> (x'=1); [go] x=1 -> true; endmodule "
        f'label "end" = x=1; rewards "r" x=0 : {state}; [go] x=0 : {row}; endrewards'
    )
    solution = solve(model, Spec(objective, agent=MAX, nature=MIN))
    exact, rounded = Fraction(float(state)) + Fraction(float(row)), float(state) + float(row)
    assert Fraction(float(solution.lower[0])) <= exact <= Fraction(float(solution.upper[0]))
    assert verify(solution).valid, str(verify(solution))
    lower, upper = solution.lower.copy(), solution.upper.copy()
    (lower if rounded > exact else upper)[0] = rounded
    middle = np.clip(solution.value, lower, upper)
    assert not verify(replace(solution, lower=lower, upper=upper, value=middle)).valid


@pytest.mark.parametrize("objective", [ReachReward("end"), Total()], ids=str)
def test_rewards_to_a_target_are_off_by_a_share(objective):
    """0.1 + 0.2 is not 0.3 in floats; the exact sums are between the bounds."""
    state, row = (0.1, 0.7), (0.2, 0.1)
    solution = solve(chain(state, row), Spec(objective, agent=MIN, nature=MAX))
    exact = truth(objective, state, row)
    assert Fraction(float(solution.lower[0])) <= exact <= Fraction(float(solution.upper[0]))
    assert solution.status is Status.CERTIFIED
    assert verify(solution).valid, str(verify(solution))
    assert not verify(forged(solution, float(0.1 + 0.2) + float(0.7 + 0.1) + 1e-15)).valid


def test_thresholds_are_decided_by_exact_sums():
    """The two payments are 1 together, exactly: at least 1 is true, more is false."""
    model = chain((1e16, -1e16), (1.0, 0.0))
    assert check(model, "R>=1 [ C<=2 ]").value is True
    assert check(model, "R<1 [ C<=2 ]").value is False


def leaving(chance):
    """Return a model that leaves a safe state for ever with a small chance, once."""
    safe = np.array([True, True, False])
    rows = [[([0], [1, 2])], [([], [1])], [([], [2])]]
    return FactoredMDP.from_rows(rows, [Singleton([1.0 - chance, chance])], labels={"safe": safe})


def test_staying_is_as_close_as_it_is_itself():
    """A result that is close is valid; one that is close on its complement only is not."""
    spec = Spec(Globally("safe"), agent=MAX, nature=MIN)
    rare = solve(leaving(1e-7), spec)
    assert rare.status is Status.CERTIFIED
    wide = replace(rare, lower=np.nextafter(rare.lower - 5e-7, 0.0), witness=(
        rare.witness[0], np.minimum(rare.witness[1] + 6e-7, 1.0)))  # fmt: skip
    assert "close" not in " ".join(verify(wide).failed)
    sure = solve(leaving(1.0 - 2.0**-30), spec)  # stays with 9.3e-10
    vague = replace(sure, lower=np.zeros(3), upper=np.minimum(sure.upper + 9e-7, 1.0))
    assert any("close" in line for line in verify(vague).failed)


@pytest.mark.parametrize(
    "text",
    ['Pmaxmin=? [ F<=0 "end" ]', 'Pmaxmin=? [ G<=0 !"end" ]', "Rmaxmin=? [ C<=0 ]",
     "Rminmax=? [ I=0 ]"],
)  # fmt: skip
@pytest.mark.parametrize("inner", ["exact", "interval"])
def test_results_over_zero_steps_are_valid(text, inner):
    """Nothing is to be done, by both methods, of the optimum and of a policy."""
    model = chain((1.0, 2.0), (0.0, 0.0))
    solution = solve(model, text, inner=METHODS[inner]())
    assert verify(solution).valid, str(verify(solution))
    fixed = evaluate(model, solution.policy, text)
    assert verify(fixed).valid, str(verify(fixed))
