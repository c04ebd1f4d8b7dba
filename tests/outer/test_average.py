"""Means in the long run, against all pairs of memoryless strategies, Storm, and forged files."""

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from narrow import require_narrow
from oracles.storm import storm_value
from rfmdp.answers.answer import check
from rfmdp.formats.files import load, save
from rfmdp.inner.solvers import Exact
from rfmdp.language.build import parse_prism
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, LongRunAverage, LongRunShare, Reach, Spec
from rfmdp.outer.average import GainIteration, Gains
from rfmdp.outer.problem import pose
from rfmdp.outer.solution import Status
from rfmdp.outer.task import Limits, Measure, prepare
from rfmdp.policies.explain import decisions
from rfmdp.sets.families import Interval, Singleton
from rfmdp.solving import evaluate, solve
from rfmdp.verification.solution import verify

from .games import random_model
from .pairs import MeanPairs, pairs_of
from .random_specs import PAIRS
from .test_storm import random_mdp

QUEUE = """mdp
const int N = 12;
module queue
  x : [0..N];
  [slow] true -> 0.3 : (x'=min(x+1,N)) + 0.35 : (x'=max(x-1,0)) + 0.35 : true;
  [fast] true -> 0.3 : (x'=min(x+1,N)) + 0.6 : (x'=max(x-1,0)) + 0.1 : true;
endmodule
rewards "cost" true : x; [fast] true : 5; endrewards
"""


def enclosed(model, paid, objective, pair):
    """Check that a solution encloses the enumerated value, is close to it, and proves itself."""
    pairs = pairs_of(MeanPairs, model, paid, *pair)
    if pairs is None:
        return
    limits = Limits(precision=1e-5, measure=Measure.ABSOLUTE)  # many values are exactly 0
    everywhere = np.ones(model.states, bool)
    solution = solve(model, Spec(objective, *pair), limits=limits, states=everywhere)
    assert pairs.within(solution.lower, solution.upper)
    assert solution.status is Status.CERTIFIED
    assert verify(solution).valid, str(verify(solution))


def check_seed(seed, pair):
    rng = np.random.default_rng(seed)
    model = random_model(seed, 4)
    paid = rng.choice([-2.0, 0.0, 1.0, 3.0], model.rows)
    model = replace(model, rewards={"r": Rewards(np.zeros(model.states), paid)})
    enclosed(model, paid, LongRunAverage("r"), pair)


@given(st.integers(0, 10**6), st.sampled_from(PAIRS))
@settings(max_examples=60, deadline=None)
def test_bounds_enclose_all_pairs_of_strategies(seed, pair):
    """Of games in which nature can empty edges, with one to three factors."""
    check_seed(seed, pair)


@pytest.mark.parametrize("seed", [641, 764, 1273, 2096])
def test_ties_of_means_are_told(seed):
    """A row may keep its mean exactly; these games stayed open where a margin had to tell."""
    for pair in PAIRS:
        check_seed(seed, pair)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2500, 250))
def test_ten_thousand_games(first):
    """All four pairs of directions of 2,500 games; none is outside of its bounds."""
    for seed in range(first, first + 250):
        for pair in PAIRS:
            check_seed(seed, pair)


@given(st.integers(0, 10**6), st.sampled_from(PAIRS))
@settings(max_examples=20, deadline=None)
def test_shares_are_means_of_ones(seed, pair):
    """The share of time in some states is the mean of a reward of one there."""
    model = random_model(seed, 4)
    inside = np.random.default_rng(seed).random(model.states) < 0.5
    enclosed(model, inside[model.row_states].astype(float), LongRunShare(inside), pair)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("formula", "objective"),
    [('R{{"cost"}}{}=? [LRA]', LongRunAverage("cost")), ('LRA{}=? ["goal"]', LongRunShare("goal"))],
)
def test_plain_models_have_storms_values(formula, objective, seed):
    """Storm's value lies between the bounds, up to what its value iteration leaves open."""
    model = random_mdp(seed)
    for agent, word in ((MAX, "max"), (MIN, "min")):
        value = storm_value(model, formula.format(word))
        solution = solve(model, Spec(objective, agent, MIN), states=np.ones(model.states, bool))
        require_narrow(solution)
        assert np.all(solution.lower <= value + 1e-6)
        assert np.all(value <= solution.upper + 1e-6)


def test_an_edge_that_nature_can_empty():
    """Nature leaves the good state at once or never, whatever is worse: 0 or 1."""
    leave = Interval([0.0, 0.0], [1.0, 1.0])
    model = FactoredMDP.from_rows(
        [[([0], [0, 1])], [([], [1])]], [leave], labels={"good": [True, False]}
    )
    for nature, value in ((MIN, 0.0), (MAX, 1.0)):
        solution = require_narrow(solve(model, Spec(LongRunShare("good"), MAX, nature)))
        assert solution.at_initial().lower <= value <= solution.at_initial().upper
        assert verify(solution).valid


def test_a_lottery_between_two_ends():
    """A coin leads to 3 or to 0 for ever: 1.5 on average; a coin of 0.4 to 0.6: 1.2 or 1.8."""
    for coin, values in ((Singleton([0.5, 0.5]), (1.5, 1.5)), (Interval([0.4, 0.4], [0.6, 0.6]),
                                                             (1.2, 1.8))):  # fmt: skip
        model = FactoredMDP.from_rows([[([0], [1, 2])], [([], [1])], [([], [2])]], [coin],
                                      rewards={"r": Rewards(np.array([7.0, 3.0, 0.0]),
                                                            np.zeros(3))})  # fmt: skip
        for nature, value in zip((MIN, MAX), values, strict=True):
            bounds = solve(model, Spec(LongRunAverage(), MAX, nature)).at_initial()
            assert bounds.lower <= value <= bounds.upper
            assert bounds.width <= 1e-5


def test_words_of_prism_and_storm():
    """All forms are answered on a queue; costs are positive shares."""
    model = parse_prism(QUEUE).with_radius(0.02)
    answers = [check(model, text) for text in ("Rminmax=? [ S ]", "Rminmax=? [ LRA ]")]
    assert answers[0].value == answers[1].value
    assert answers[0].status is Status.CERTIFIED
    share = check(model, "Sminmax=? [ x=N ]")
    assert share.lower == check(model, "LRAminmax=? [ x=N ]").lower
    assert check(model, f"Smin>={share.lower / 2} [ x=N ]").value in (True, False)
    assert check(model, "Smaxmin<=1 [ x=N ]").value is True


@lru_cache
def solved():
    return solve(parse_prism(QUEUE).with_radius(0.02), "Rminmax=? [ S ]")


def test_a_policy_is_evaluated_and_nature_fixed():
    """The policy alone has the upper bound; nature's answers to it make a chain of that mean."""
    solution = solved()
    alone = evaluate(solution.model, solution.policy, "Rminmax=? [ S ]")
    assert alone.at_initial().lower <= solution.at_initial().upper
    assert solution.at_initial().lower <= alone.at_initial().upper
    chain = solve(solution.nature().chain(), "Rminmax=? [ S ]").at_initial()
    assert abs(chain.upper - solution.at_initial().upper) <= 1e-5 * chain.upper


def test_a_file_proves_itself_and_forged_ones_do_not(tmp_path):
    """A bound moved inwards, another witness, another policy, no witness."""
    solution = solved()
    save(solution, tmp_path / "a.rfmdp")
    assert verify(tmp_path / "a.rfmdp").valid
    assert np.array_equal(load(tmp_path / "a.rfmdp").witness[1], solution.witness[1])
    low, high = solution.lower, solution.upper
    forged = [
        replace(solution, lower=low + 0.01, upper=high + 1, value=high + 1, precision=9.0),
        replace(solution, lower=low - 1, upper=high - 0.01, value=high - 0.01, precision=9.0),
        replace(solution, witness=(solution.witness[0], 0.0 * high)),
        replace(solution, witness=(solution.witness[0][::-1].copy(), solution.witness[1])),
        replace(solution, witness=(None, solution.witness[1])),
        replace(solution, policy=replace(solution.policy, rows=solution.policy.rows ^ 1)),
    ]
    for result in forged:
        assert verify(result).failed


def test_one_action_does_not_change_a_mean():
    """What is shown of an action is the mean after it: here the same for all."""
    solution = solved()
    shown = decisions(solution, np.arange(solution.model.states))
    assert np.all(shown.lower <= solution.upper[0])
    assert np.all(solution.lower[0] <= shown.upper)


@pytest.mark.parametrize("scale", [1.0, 1e-150])
@pytest.mark.parametrize(
    ("state", "row"), [(0.1, 1e9 + 1), (1e-17, 1.0), (-1e-17, 1.0), (0.1, 0.2)]
)
def test_a_sum_of_rewards_that_no_float_holds_is_paid_for(state, row, scale):
    """What a sum loses is often too little to move a float; bounds are moved all the same."""
    paid = Rewards(np.array([state * scale]), np.array([row * scale]))
    model = FactoredMDP.from_rows([[([], [0])]], [], rewards={"r": paid})
    value = Fraction(state * scale) + Fraction(row * scale)
    for agent in (MAX, MIN):
        for limits in (Limits(), Limits(sweeps=1)):  # found, and what holds before any work
            solution = solve(model, Spec(LongRunAverage("r"), agent, MIN), limits=limits)
            assert Fraction(solution.lower[0]) <= value <= Fraction(solution.upper[0])
            assert verify(solution).valid


def test_wrong_gains_are_not_proven():
    """A climb that moves no float is none: nature can stay at the worst for ever."""
    stay = Interval([0.0, 0.0], [1.0, 1.0])
    model = FactoredMDP.from_rows(
        [[([0], [0, 1])], [([], [1])]], [stay],
        rewards={"r": Rewards(np.array([5.0, 0.0]), np.zeros(2))},
    )  # fmt: skip
    for side, nature in ((1.0, MAX), (-1.0, MIN)):
        turned = replace(model, rewards={"r": Rewards(side * np.array([5.0, 0.0]), np.zeros(2))})
        problem = pose(turned, Spec(LongRunAverage("r"), nature, nature))
        task = prepare(problem, Exact(), Limits(precision=1e-30), np.ones(2, bool))
        search = GainIteration(task)
        search.gain = side * np.array([1.0, 0.5])  # that of the first state is 5
        bound = Gains(task, search, side).prove()
        assert bound is None or side * bound[0] >= 5.0


PASSED = """mdp
module walk
  t : [0..8]; x : [0..1];
  [a] t<8 -> 0.5 : (t'=t+1) & (x'=1) + 0.5 : (t'=t+1) & (x'=0);
  [b] t<8 -> 0.6 : (t'=t+1) + 0.4 : (t'=t+1) & (x'=1-x);
  [] t=8 -> true;
endmodule
rewards "before" t<8 : 7 + x; endrewards
rewards "after" t<8 : 3; t=8 : x; endrewards
"""


@pytest.mark.parametrize(("agent", "nature"), PAIRS)
def test_what_is_passed_once_counts_for_nothing(agent, nature):
    """The rewards of a first phase leave the mean exactly 0; a lottery in it is the mean."""
    model = parse_prism(PASSED).with_radius(0.1)
    spec = Spec(LongRunAverage("before"), agent, nature)
    solution = solve(model, spec).require_certified()
    assert solution.at_initial().lower == solution.at_initial().upper == 0.0
    after = Spec(LongRunAverage("after"), agent, nature)
    for question in (after, replace(after, agent=agent.opposite)):
        bounds = solve(model, question).require_certified()
        assert verify(bounds).valid
    x = model.valuations[:, [v.name for v in model.variables].index("x")]
    reach = Spec(Reach(x.astype(bool) & model_end(model)), agent, nature)
    value = solve(model, reach).at_initial().lower
    bounds = solve(model, after).at_initial()
    assert bounds.lower - 1e-5 <= value <= bounds.upper + 1e-5


def model_end(model):
    """Return the states in which the clock has stopped."""
    return model.valuations[:, [v.name for v in model.variables].index("t")] == 8


@pytest.mark.parametrize("states", [300, 3000])
def test_slow_mixing_is_solved_for(states):
    """A long queue mixes slowly, and what a chain pays is an equation, not many steps."""
    model = parse_prism(QUEUE.replace("N = 12", f"N = {states}"))
    bounds = solve(model, "Rmin=? [ S ]").require_certified().at_initial()
    assert bounds.lower <= 2.6871165643 <= bounds.upper


def test_what_is_paid_on_the_way_is_nothing():
    """Coins are thrown at first only: the mean is exactly 0, though states come back for long."""
    die = parse_prism("dtmc module die s:[0..2]; [] s=0 -> 0.5:(s'=1)+0.5:(s'=2); "
                      "[] s=1 -> 0.5:(s'=0)+0.5:(s'=2); [] s=2 -> true; endmodule "
                      'rewards "coins" s<2 : 1; endrewards')  # fmt: skip
    solution = solve(die, 'R{"coins"}=? [ LRA ]').require_certified()
    assert solution.at_initial().lower == solution.at_initial().upper == 0.0
    assert verify(solution).valid
