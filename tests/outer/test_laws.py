"""Laws that every solution obeys, limits, interruption, one-sided methods, evaluation."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from narrow import require_narrow
from rfmdp.errors import ModelError, NotCertifiedError
from rfmdp.inner.mccormick import McCormick
from rfmdp.inner.solvers import IntervalArithmetic, Sequential
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import (
    MAX,
    MIN,
    Cumulative,
    Discounted,
    Globally,
    Reach,
    ReachReward,
    Spec,
    Total,
    Until,
)
from rfmdp.outer.solution import Policy, Status
from rfmdp.outer.task import Limits, Measure
from rfmdp.sets.families import Interval, Singleton
from rfmdp.solving import evaluate, solve
from true_values import true_value

from .random_specs import specs, tiny_model

SPECS = list(specs())


def walk(size=6, radius=0.05):
    """Return a walk of two factors to and fro, with a row that is fast and one that is safe."""
    fast, safe = Singleton([0.3, 0.4, 0.3]), Singleton([0.1, 0.3, 0.6])
    side = Singleton([0.5, 0.5])
    rows = []
    for s in range(size):
        if s in (0, size - 1):
            rows.append([([], [s])])
            continue
        down, up = max(s - 1, 0), min(s + 1, size - 1)
        jump = min(s + 2, size - 1)
        rows.append([
            ([0, 2], [down, down, s, up, up, jump], "fast"),
            ([1, 2], [down, s, s, s, s, up], "safe"),
        ])  # fmt: skip
    goal = np.arange(size) == size - 1
    ends = goal | (np.arange(size) == 0)
    count = sum(map(len, rows))
    model = FactoredMDP.from_rows(
        rows, [fast, safe, side], initial=size // 2, labels={"goal": goal, "ends": ends},
        rewards={"cost": Rewards(np.where(ends, 0.0, 1.0), np.zeros(count))},
    )  # fmt: skip
    return model.with_radius(radius) if radius else model


REACH = Spec(Reach("goal"), MAX, MIN)
COST = Spec(ReachReward("ends", "cost"), MIN, MAX)


@pytest.mark.parametrize("objective", [Reach("goal"), ReachReward("ends", "cost"), Total("cost"),
                                       Discounted(0.9, "cost"), Cumulative(5, "cost")])  # fmt: skip
def test_larger_sets_help_nature(objective):
    """With the radius the value moves nature's way, by more than the bounds are apart."""
    for agent, nature in itertools.product((MAX, MIN), repeat=2):
        spec = Spec(objective, agent, nature)
        ends = [solve(walk(radius=r), spec).require_certified().at_initial()
                for r in (0.0, 0.02, 0.05, 0.1)]  # fmt: skip
        for small, large in itertools.pairwise(ends):
            if nature is MAX:
                assert small.upper < large.lower
            else:
                assert large.upper < small.lower


def test_radius_zero_is_the_plain_model():
    """All directions of nature agree without uncertainty."""
    plain = walk(radius=0.0)
    one = require_narrow(solve(plain, REACH)).at_initial()
    for nature in (MAX, MIN):
        spec = Spec(Reach("goal"), MAX, nature)
        other = require_narrow(solve(plain.with_radius(0.0), spec)).at_initial()
        assert other.lower <= one.upper
        assert one.lower <= other.upper


@pytest.mark.parametrize("seed", range(20))
def test_relabelling_states_changes_nothing(seed):
    """A permutation of the states permutes the bounds, up to the precision."""
    model = tiny_model(seed)
    order = np.random.default_rng(seed).permutation(model.states)
    place = np.argsort(order)
    lines = []
    for s in order:
        line = []
        for r in range(model.row_ptr[s], model.row_ptr[s + 1]):
            ids = model.row_marginals[model.marginal_ptr[r] : model.marginal_ptr[r + 1]]
            end = model.successors[model.successor_ptr[r] : model.successor_ptr[r + 1]]
            line.append((ids.tolist(), place[end].tolist()))
        lines.append(line)
    labels = {name: where[order] for name, where in model.labels.items()}
    other = FactoredMDP.from_rows(lines, model.marginals, labels=labels)
    for agent in (MAX, MIN):
        spec = Spec(Until("safe", "goal"), agent, MIN)
        here = require_narrow(solve(model, spec, states=np.ones(model.states, bool)))
        there = require_narrow(solve(other, spec, states=np.ones(model.states, bool)))
        assert np.all(there.lower <= here.upper[order])
        assert np.all(here.lower[order] <= there.upper)


@pytest.mark.parametrize("spec", [REACH, COST], ids=["reach", "cost"])
def test_warm_start_proves_the_same(spec):
    """Whatever the start, bounds are proven and close."""
    model = walk()
    cold = solve(model, spec)
    for warm in (cold, np.zeros(model.states), np.full(model.states, 0.7)):
        result = require_narrow(solve(model, spec, warm=warm)).at_initial()
        assert result.lower <= cold.at_initial().upper
        assert result.upper >= cold.at_initial().lower


WARM_SPECS = [
    REACH,
    COST,
    Spec(Globally("calm"), MAX, MIN),
    Spec(Discounted(0.9, "cost"), MIN, MAX),
    Spec(Total("cost"), MIN, MAX),
    Spec(Cumulative(6, "cost"), MAX, MIN),
]


@pytest.mark.parametrize("spec", WARM_SPECS, ids=str)
def test_wild_warm_starts_prove_the_same(spec):
    """Numbers that are no values at all, or too large to compute with, are no starts."""
    model = walk(size=12)
    calm = np.arange(model.states) != 3
    model = replace(model, labels={**model.labels, "calm": calm})
    cold = require_narrow(solve(model, spec)).at_initial()
    for number in (np.inf, -np.inf, 1e308, -1e308, 1e200, -1e16, 1e16):
        for start in (np.full(model.states, number), np.where(calm, 0.5, number)):
            result = require_narrow(solve(model, spec, warm=start)).at_initial()
            assert result.lower <= cold.upper, number
            assert result.upper >= cold.lower, number


def test_absolute_precision():
    """A coarse absolute width is enough if asked for."""
    limits = Limits(precision=1e-3, measure=Measure.ABSOLUTE)
    assert solve(walk(), COST, limits=limits).require_certified().at_initial().width <= 1e-3


@pytest.mark.parametrize("spec", [s for _, s in SPECS], ids=[n for n, _ in SPECS])
def test_sweep_limit_leaves_proven_bounds(spec):
    """After one sweep the bounds may be wide, but hold, and the status says why."""
    for seed in (4, 9, 11):
        model = tiny_model(seed)
        truth = true_value(model, spec)
        result = solve(model, spec, limits=Limits(sweeps=1))
        assert result.status in (Status.CERTIFIED, Status.SWEEP_LIMIT)
        assert result.status is Status.SWEEP_LIMIT or require_narrow(result)
        assert np.all(result.lower <= truth + 1e-9)
        assert np.all(truth <= result.upper + 1e-9)


@pytest.mark.parametrize("spec", [REACH, COST], ids=["reach", "cost"])
def test_sweep_limits_are_kept(spec):
    """A model that takes many sweeps is not solved in one, and no more than allowed are made."""
    model = walk(size=40)
    whole = solve(model, spec, limits=Limits(precision=1e-12))
    result = solve(model, spec, limits=Limits(precision=1e-12, sweeps=1))
    assert whole.stats.robust_sweeps > 2
    assert result.status is Status.SWEEP_LIMIT
    assert result.stats.robust_sweeps < whole.stats.robust_sweeps
    assert result.at_initial().width > whole.at_initial().width


def test_time_limit_leaves_proven_bounds():
    """A limit that is over at once gives TIME_LIMIT, not an exception."""
    result = solve(walk(size=40), COST, limits=Limits(seconds=1e-9))
    best = require_narrow(solve(walk(size=40), COST))
    assert result.status is Status.TIME_LIMIT
    assert result.lower[20] <= best.upper[20]
    assert result.upper[20] >= best.lower[20]


@pytest.mark.parametrize("spec", [REACH, COST, Spec(Cumulative(6, "cost"), MAX, MIN),
                                  Spec(Discounted(0.9, "cost"), MIN, MAX)])  # fmt: skip
def test_interrupt_gives_proven_bounds(spec):
    """Ctrl-C, here out of the progress callback, ends with the bounds so far."""

    def stop(phase, sweeps, residual):
        raise KeyboardInterrupt

    found = solve(walk(), spec, limits=Limits(progress=stop))
    truth = require_narrow(solve(walk(), spec))
    assert found.status is Status.INTERRUPTED
    assert np.all(found.lower <= truth.upper)
    assert np.all(found.upper >= truth.lower)
    with pytest.raises(NotCertifiedError, match="interrupted"):
        found.require_certified()


def test_progress_is_called():
    """The callback sees a phase, the number of sweeps and a residual."""
    seen = []
    solve(walk(), REACH, limits=Limits(progress=lambda *args: seen.append(args)))
    assert seen
    assert [sweeps for _, sweeps, _ in seen] == list(range(1, len(seen) + 1))
    assert {phase for phase, _, _ in seen} <= {"solve", "certify", "approach", "steps"}


@pytest.mark.parametrize(
    "inner", [IntervalArithmetic(), Sequential(), McCormick()], ids=lambda i: i.name
)
@pytest.mark.parametrize("spec", [REACH, COST, Spec(Discounted(0.9, "cost"), MAX, MIN),
                                  Spec(Cumulative(4, "cost"), MIN, MAX),
                                  Spec(Until("init", "goal", None, 1), MAX, MIN)])  # fmt: skip
def test_one_sided_methods_leave_the_other_side_open(inner, spec):
    """A relaxation proves nature's far side alone."""
    model = walk()
    exact = solve(model, spec, states=np.ones(model.states, bool)).require_certified()
    result = solve(model, spec, inner=inner, states=np.ones(model.states, bool))
    if spec.nature is MAX:
        proven, missing, near = result.upper, result.lower, exact.lower
        assert np.all(proven >= near)
    else:
        proven, missing, near = result.lower, result.upper, exact.upper
        assert np.all(proven <= near)
    assert missing is None
    assert result.status is Status.GAP_OPEN
    # the only side is as close to the method's fixed point as asked for, hence not 0, 1 or infinite
    limits = Limits()
    assert np.all(np.abs(proven - result.value) <= limits.tolerance(result.value, 8.0))
    assert 0.0 < proven[model.initial[0]] < np.inf


def test_guarantee_of_a_missing_side_is_refused():
    """A relaxation proves no guarantee where nature helps."""
    spec = replace(REACH, nature=MAX)
    with pytest.raises(NotCertifiedError, match="lower"):
        _ = solve(walk(), spec, inner=Sequential()).guarantee


@pytest.mark.parametrize("seed", range(30))
def test_evaluating_the_optimal_policy_gives_the_value(seed):
    """Against worst nature the policy attains the guarantee, stationary or not."""
    model = tiny_model(seed)
    for k in range(4):
        name, spec = SPECS[(11 * seed + 17 * k) % len(SPECS)]
        states = np.ones(model.states, dtype=bool)
        best = solve(model, spec, states=states)
        attained = evaluate(model, best.policy, spec, states=states)
        side = best.guarantee
        if spec.agent is MAX:  # at least what is guaranteed, at most the optimum
            assert np.all(attained.upper >= side), (name, seed)
            assert np.all(attained.lower <= best.upper), (name, seed)
        else:
            assert np.all(attained.lower <= side), (name, seed)
            assert np.all(attained.upper >= best.lower), (name, seed)
        for result in (best, attained):
            close = result.upper == result.lower  # both infinite, say
            wide = result.upper[~close] - result.lower[~close]
            assert np.all(wide <= 1e-5 * np.maximum(1.0, np.abs(result.lower[~close])))


def test_evaluate_under_each_nature_is_ordered():
    """Worst <= nominal <= best for a maximising agent."""
    model = walk()
    policy = solve(model, REACH).policy
    worst = evaluate(model, policy, REACH).at_initial()
    best = evaluate(model, policy, REACH, nature=MAX).at_initial()
    nominal = evaluate(model.nominal(), policy, REACH).at_initial()
    assert worst.lower < nominal.lower < best.lower


def test_evaluate_refuses_rules_that_do_not_fit():
    """Two rules for three steps, or rows of other states."""
    model = walk()
    rows = model.row_ptr[:-1]
    with pytest.raises(ModelError, match="needs 3, the policy has 2"):
        evaluate(model, Policy(np.stack([rows, rows])), Spec(Cumulative(3, "cost"), MAX, MIN))
    with pytest.raises(ModelError, match="one of the rows of each state"):
        evaluate(model, Policy(np.zeros((1, model.states), dtype=np.int64)), REACH)


def test_several_initial_states_need_a_choice():
    """`at_initial` names them; bounds of each are there."""
    move = Interval([0.2, 0.4], [0.6, 0.8])
    rows = [[([0], [1, 2])], [([], [1])], [([], [2])]]
    model = FactoredMDP.from_rows(
        rows, [move], initial=[0, 2], labels={"goal": [False, True, False]}
    )
    found = solve(model, REACH)
    with pytest.raises(ModelError, match=r"2 initial states \(state 0, state 2\)"):
        found.at_initial()
    assert found.at(2).upper == 0.0
    assert found.at(0).lower <= 0.2 <= found.at(0).upper  # the least chance of the goal
    assert found.at(0).width < 1e-6
