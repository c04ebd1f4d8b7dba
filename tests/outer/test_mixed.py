"""Rewards of both signs to a target, against all pairs of memoryless strategies."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rfmdp.answers.answer import check
from rfmdp.errors import ModelError
from rfmdp.formats.files import load, save
from rfmdp.language.build import parse_prism
from rfmdp.model.arrays import Rewards
from rfmdp.objective import MAX, MIN, ReachReward, Spec
from rfmdp.outer.solution import Status
from rfmdp.solving import evaluate, solve
from rfmdp.verification.solution import verify

from .games import combinations, corner_members, explicit, random_model
from .random_specs import PAIRS

MOST = 3000  # pairs of strategies of a game that is enumerated

BOTH_WAYS = """dtmc
label "target" = s=2;
module test
  s : [0..2] init 0;
  [] s=0 -> 0.9 : (s'=1) + (0.1) : (s'=2);
  [] s=1 -> 0.9 : (s'=0) + (0.1) : (s'=2);
  [] s=2 -> true;
endmodule
rewards "reward" [] true : -10; endrewards
"""

ROUND = """mdp
module m s : [0..2];
  [go] s=0 -> 0.5 : (s'=2) + 0.5 : true;
  [out] s=0 -> (s'=1);
  [back] s=1 -> (s'=0);
  [] s=2 -> true;
endmodule
rewards [go] true : -3; [out] true : OUT; [back] true : -1; endrewards
"""


def recurrent_classes(matrix: np.ndarray) -> list[np.ndarray]:
    """Return the sets of states that a chain never leaves."""
    size = len(matrix)
    step = (matrix > 0) | np.eye(size, dtype=bool)
    for _ in range(size):
        step = step @ step
    classes = {tuple(np.flatnonzero(step[s])) for s in range(size)}
    return [np.array(c) for c in classes if all(set(np.flatnonzero(step[s])) == set(c) for s in c)]


def mean_reward(matrix: np.ndarray, reward: np.ndarray, states: np.ndarray) -> float:
    """Return the mean reward of a step in a recurrent class."""
    block = matrix[np.ix_(states, states)]
    size = len(states)
    balance = np.vstack([block.T - np.eye(size), np.ones(size)])
    share = np.linalg.lstsq(balance, np.append(np.zeros(size), 1.0), rcond=None)[0]
    return float(share @ reward[states])


def to_target(matrix, reward, target):
    """Return what a chain pays before the target, infinite where it may be missed, and its means.

    The second value are the mean rewards of all ways to go on for ever.
    """
    matrix = np.where(target[:, None], np.eye(len(target)), matrix)
    classes = [c for c in recurrent_classes(matrix) if not target[c].any()]
    step = (matrix > 0) | np.eye(len(target), dtype=bool)
    for _ in range(len(target)):
        step = step @ step
    missed = np.zeros(len(target), dtype=bool)
    for c in classes:
        missed |= step[:, c].any(axis=1)
    value = np.where(missed, np.inf, 0.0)
    rest = ~missed & ~target
    value[rest] = np.linalg.solve(np.eye(rest.sum()) - matrix[np.ix_(rest, rest)], reward[rest])
    return value, [mean_reward(matrix, reward, c) for c in classes]


def enumerated(model, target, pair):
    """Return the value by trying all pairs, and whether going on for ever always costs."""
    game = explicit(model, members=corner_members)
    if combinations(game) > MOST:
        return None
    paid = model.rewards["r"].row
    opt = {MAX: np.max, MIN: np.min}
    answers, tame = [], True
    for policy in itertools.product(*game.rows):
        values = []
        for matrix in itertools.product(*(game.moves[r] for r in policy)):
            value, means = to_target(np.array(matrix), paid[list(policy)], target)
            tame &= all(mean > 1e-6 for mean in means)
            values.append(value)
        answers.append(opt[pair[1]](values, axis=0))
    return opt[pair[0]](answers, axis=0), tame


def random_case(seed):
    rng = np.random.default_rng(seed)
    model = random_model(seed, 4)
    target = rng.random(model.states) < 0.4
    paid = rng.choice([-2.0, -1.0, 0.0, 1.0, 3.0], model.rows)
    return replace(model, rewards={"r": Rewards(np.zeros(model.states), paid)}), target


@given(st.integers(0, 10**6), st.sampled_from(PAIRS))
@settings(max_examples=60, deadline=None)
def test_bounds_enclose_all_pairs_of_strategies(seed, pair):
    """Where going on for ever costs, whoever does it, the bounds are certified and right."""
    model, target = random_case(seed)
    reference = enumerated(model, target, pair)
    if reference is None:
        return
    value, tame = reference
    everywhere = np.ones(model.states, bool)
    try:
        solution = solve(model, Spec(ReachReward(target, "r"), *pair), states=everywhere)
    except ModelError:
        assert not tame
        return
    assert verify(solution).valid, str(verify(solution))
    if tame:
        assert solution.status is Status.CERTIFIED
        slack = 1e-9 * (1.0 + np.abs(np.where(np.isfinite(value), value, 0.0)))  # of elimination
        assert np.all(solution.lower <= value + slack)
        assert np.all(value <= solution.upper + slack)


@pytest.mark.parametrize("sign", ["-", ""])
def test_a_chain_that_storm_gets_wrong(sign):
    """Ten steps on average at 10 each: -100, where Storm 1.10 says 0, or -59.5 with --sound."""
    model = parse_prism(BOTH_WAYS.replace(": -10", f": {sign}10"))
    answer = check(model, 'R=? [ F "target" ]')
    value = -100.0 if sign else 100.0
    assert answer.lower <= value <= answer.upper
    assert answer.status is Status.CERTIFIED
    assert verify(answer.solution).valid


def test_going_round_at_a_cost_is_not_worth_it():
    """Two tries at -3 each; the way round costs 1, so nobody takes it."""
    answer = check(parse_prism(ROUND.replace("OUT", "2")), "Rmin=? [ F s=2 ]")
    assert answer.lower <= -6.0 <= answer.upper
    assert answer.status is Status.CERTIFIED
    assert verify(answer.solution).valid


@pytest.mark.parametrize("out", ["1", "0"])
def test_going_round_for_nothing_is_refused(out):
    """At no mean cost there is no proof from below; at a gain the value is minus infinity."""
    with pytest.raises(ModelError, match=r"the agent must not .* from \(s=[01]\)"):
        check(parse_prism(ROUND.replace("OUT", out)), "Rmin=? [ F s=2 ]")


def test_who_maximises_may_miss_the_target():
    """That is worth infinity, whatever is paid on the way."""
    answer = check(parse_prism(ROUND.replace("OUT", "0")), "Rmax=? [ F s=2 ]")
    assert answer.lower == np.inf


def test_a_file_proves_itself_and_forged_ones_do_not(tmp_path):
    """A bound moved inwards, and a policy that never arrives."""
    model = parse_prism(ROUND.replace("OUT", "2"))
    solution = solve(model, "Rmin=? [ F s=2 ]")
    save(solution, tmp_path / "a.rfmdp")
    assert verify(tmp_path / "a.rfmdp").valid
    assert np.array_equal(load(tmp_path / "a.rfmdp").lower, solution.lower)
    moved = solution.upper - 0.1 * (solution.model.row_ptr[:-1] < 3)
    assert verify(replace(solution, upper=moved, lower=solution.lower - 1, value=moved)).failed
    raised = solution.lower + 0.1
    assert verify(replace(solution, lower=raised, upper=solution.upper + 1, value=raised)).failed
    rows = solution.policy.rows.copy()
    rows[0, 0] += 1
    away = replace(solution, policy=replace(solution.policy, rows=rows))
    assert verify(away).failed


def test_a_policy_is_evaluated():
    """The same value by the policy alone."""
    model = parse_prism(ROUND.replace("OUT", "2"))
    solution = solve(model, "Rmin=? [ F s=2 ]")
    again = evaluate(model, solution.policy, "Rmin=? [ F s=2 ]")
    assert again.at_initial().lower <= -6.0 <= again.at_initial().upper
