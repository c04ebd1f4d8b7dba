"""Until within a budget, against a plain recursion over amounts paid, Storm, and forged files."""

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from narrow import require_narrow
from oracles.storm import storm_value
from rfmdp.errors import ModelError
from rfmdp.formats.files import load, save
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, BudgetUntil, Spec, Until
from rfmdp.outer.solution import Policy
from rfmdp.policies.explain import explain, values_after
from rfmdp.policies.induced import without_budget
from rfmdp.report.page import explorer
from rfmdp.solving import evaluate, solve
from rfmdp.verification.solution import verify

from .games import corner_members, explicit, random_model
from .random_specs import PAIRS
from .test_storm import random_mdp

ROUNDS = 200


def with_costs(seed: int, least: int) -> FactoredMDP:
    """Return a tiny random model with whole costs, a target and states to stay in."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, 4)
    cost = Rewards(np.zeros(model.states), rng.integers(least, 3, model.rows).astype(float))
    sets = {
        name: rng.random(model.states) < share for name, share in (("goal", 0.3), ("stay", 0.8))
    }
    return replace(model, rewards={"cost": cost}, labels=sets)


def spent(model: FactoredMDP, budget: int, agent, nature, rounds: int) -> np.ndarray:
    """Return the probability by so many sweeps from below, of every amount paid and state."""
    game = explicit(model, members=corner_members)
    cost = model.rewards["cost"].row.astype(int)
    opt = {MAX: max, MIN: min}
    value = np.zeros((budget + 1, model.states))
    value[:, model.labels["goal"]] = 1.0
    for _ in range(rounds):
        for paid in range(budget, -1, -1):
            for s in np.flatnonzero(model.labels["stay"] & ~model.labels["goal"]):
                worth = [
                    opt[nature](float(p @ value[paid + cost[r]]) for p in game.moves[r])
                    if paid + cost[r] <= budget
                    else 0.0
                    for r in game.rows[s]
                ]
                value[paid, s] = opt[agent](worth)
    return value


@given(st.integers(0, 10**6), st.integers(0, 4), st.sampled_from(PAIRS), st.integers(0, 1))
@settings(max_examples=40, deadline=None)
def test_bounds_enclose_the_recursion(seed, budget, pair, least):
    """Sweeps from below stay below; where every row pays, one sweep is the value. All is valid."""
    model = with_costs(seed, least)
    spec = Spec(BudgetUntil("stay", "goal", budget, "cost"), *pair)
    solution = solve(model, spec, states=np.ones(model.states, bool))
    value = spent(model, budget, *pair, ROUNDS if least == 0 else 1)[0]
    rounding = 1e-13  # of sums of a dozen products below one, per sweep that adds to them
    assert np.all(value <= solution.upper + rounding)
    if least:
        assert np.all(solution.lower <= value + rounding)
    assert verify(solution).valid, str(verify(solution))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("word", ["max", "min"])
def test_plain_models_have_storms_values(seed, word):
    """Storm unfolds as well; its sound value lies between the bounds.

    Not of `"safe" U ...`: where the first state is not safe, Storm 1.14 says 1.
    """
    model = random_mdp(seed)
    value = storm_value(model, f'P{word}=? [F{{"cost"}}<=25 "goal"]', initial=True)
    agent = MAX if word == "max" else MIN
    spec = Spec(BudgetUntil(np.ones(12, bool), "goal", 25, "cost"), agent, MIN)
    bounds = require_narrow(solve(model, spec)).at_initial()
    assert bounds.lower <= value[0] + 1e-8  # what the oracle is precise to, and some
    assert value[0] <= bounds.upper + 1e-8


def test_a_budget_of_steps_is_a_bound_on_steps():
    """Where every row pays one, the budget counts steps."""
    model = random_mdp(4, radius=0.05)
    ones = Rewards(np.zeros(model.states), np.ones(model.rows))
    model = with_rewards(model, ones)
    budget = require_narrow(solve(model, Spec(BudgetUntil("safe", "goal", 6), MAX, MIN)))
    steps = require_narrow(solve(model, Spec(Until("safe", "goal", 6), MAX, MIN)))
    assert np.all(budget.lower <= steps.upper)
    assert np.all(steps.lower <= budget.upper)
    again = evaluate(model, budget.policy, Spec(BudgetUntil("safe", "goal", 6), MAX, MIN))
    assert again.lower[0] == pytest.approx(budget.lower[0], abs=1e-9)
    assert verify(again).valid


def with_rewards(model, rewards):
    return replace(model, rewards={"cost": rewards})


@lru_cache
def solved():
    return solve(random_mdp(1, radius=0.1), Spec(BudgetUntil("safe", "goal", 5, "cost"), MAX, MIN))


def test_a_file_holds_the_proof(tmp_path):
    """What is saved comes back, and proves itself."""
    save(solved(), tmp_path / "a.rfmdp")
    again = load(tmp_path / "a.rfmdp")
    assert np.array_equal(again.witness[0], solved().witness[0])
    assert verify(tmp_path / "a.rfmdp").valid


@pytest.mark.parametrize("side", [0, 1])
def test_forged_bounds_are_invalid(side):
    """A bound that claims more than its witness, and a witness that claims more than is true."""
    solution = solved()
    shift = 0.01 if side == 0 else -0.01
    ends = [solution.lower, solution.upper]
    moved = np.clip(ends[side] + shift, 0.0, 1.0)
    ends[side] = moved
    beyond = replace(solution, lower=ends[0], upper=ends[1], value=moved, status=solution.status)
    assert verify(beyond).failed
    witness = list(solution.witness)
    witness[side] = np.clip(witness[side] + shift, 0.0, 1.0)
    assert verify(replace(beyond, witness=tuple(witness))).failed


def test_a_policy_for_another_budget_is_invalid():
    """There must be a rule per amount."""
    solution = solved()
    assert verify(replace(solution, policy=Policy(solution.policy.rows[:1]))).failed


def test_rewards_that_are_no_counts_are_refused():
    """The row is named."""
    model = with_rewards(random_mdp(1), Rewards(np.zeros(12), np.full(random_mdp(1).rows, 0.5)))
    with pytest.raises(ModelError, match=r"whole numbers >= 0; .* pays 0.5"):
        solve(model, Spec(BudgetUntil("safe", "goal", 5), MAX, MIN))


def test_a_table_has_the_values_after_payments():
    """The more was paid, the less can be reached; the first rule has the bounds of the solution."""
    solution = solved()
    lower = [values_after(solution, paid)[0] for paid in range(6)]
    assert np.array_equal(lower[0], solution.lower)
    assert all(np.all(more >= less - 1e-6) for more, less in pairwise(lower))


@pytest.mark.parametrize("seed", range(4))
def test_states_that_know_what_was_paid_have_the_values(seed):
    """Unfolded, a solution says of every amount what it said before; `explain` shows it."""
    model = with_costs(seed, 0)
    spec = Spec(BudgetUntil("stay", "goal", 3, "cost"), MAX, MIN)
    solution = solve(model, spec)
    flat = without_budget(solution)
    assert [v.name for v in flat.model.variables][-1] == "paid"
    again = evaluate(flat.model, flat.policy, flat.spec, states=np.ones(flat.model.states, bool))
    assert np.all(again.lower <= flat.upper + 1e-6)
    assert np.all(flat.lower <= again.upper + 1e-6)
    for paid in range(4):
        low, high = values_after(solution, paid)
        bounds = explain(solution, 0, step=paid).value
        assert low[0] - 1e-6 <= bounds.lower <= bounds.upper <= high[0] + 1e-6
    with pytest.raises(ModelError, match="in 0"):
        explain(solution, 0, step=4)
    assert len(explorer(solution)) > 0
