"""The verifier passes genuine results of all objectives and refuses altered ones."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from outer.random_specs import specs, tiny_model
from outer.test_laws import COST, REACH, walk
from rfmdp.cli.main import run
from rfmdp.domains import domain, domain_spec
from rfmdp.errors import FileError
from rfmdp.formats.files import load, save
from rfmdp.inner.solvers import IntervalArithmetic
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.derived import restrict
from rfmdp.objective import (
    MAX,
    MIN,
    Cumulative,
    Globally,
    Instantaneous,
    Reach,
    ReachReward,
    Spec,
    Until,
)
from rfmdp.outer.solution import Policy, Status
from rfmdp.outer.task import Limits
from rfmdp.sets.families import Interval, L1Ball, Polytope
from rfmdp.solving import evaluate, solve
from rfmdp.verification import products
from rfmdp.verification.solution import verify
from true_values import true_value

SPECS = list(specs())
NAMES = [name for name, _ in SPECS]


@cache
def solved(seed, name):
    """Return the result of a tiny model at all its states, the same for all that alter it."""
    model = tiny_model(seed)
    return solve(model, dict(SPECS)[name], states=np.ones(model.states, bool))


@pytest.mark.parametrize(
    "chunk", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 3))]
)
def test_genuine_results_pass(chunk):
    """Random models, all objectives and directions."""
    for seed in range(15 * chunk, 15 * (chunk + 1)):
        model = tiny_model(seed)
        for k in range(4):
            name, spec = SPECS[(7 * seed + 15 * k + 1) % len(SPECS)]
            verdict = verify(solve(model, spec, states=np.ones(model.states, bool)))
            assert verdict.valid, (seed, name, str(verdict))


# total reward with both maximising is 0 or infinite on all of these models: nothing to move
ALTERED = [name for name in NAMES if name != "total MAXMAX"]


@pytest.mark.parametrize("each", [8, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ALTERED)
def test_altered_bounds_fail(name, each):
    """A bound moved past the value at any one state is noticed, on either side."""
    models = [solved(seed, name) for seed in range(6)]
    places = [(found, s) for found in models for s in np.flatnonzero(np.isfinite(found.value))]
    assert places
    for found, s in places[::each]:
        step = 1e-5 * max(1.0, abs(found.value[s]))
        lower, upper = found.lower.copy(), found.upper.copy()
        lower[s] += step
        upper[s] -= step
        value = found.value
        raised = replace(found, lower=lower, upper=np.maximum(lower, found.upper),
                         value=np.maximum(value, lower))  # fmt: skip
        lowered = replace(found, upper=upper, lower=np.minimum(upper, found.lower),
                          value=np.minimum(value, upper))  # fmt: skip
        assert not verify(raised).valid, s
        assert not verify(lowered).valid, s


@pytest.mark.parametrize("spec", [REACH, COST], ids=["reach", "cost"])
def test_another_policy_fails(spec):
    """A policy that does not attain the guarantee is noticed, as is a row of another state."""
    found = solve(walk(), spec)
    assert verify(found).valid
    rows = found.policy.rows.copy()
    rows[0, 3] = 2 * walk().row_ptr[3] + 1 - rows[0, 3]
    worse = verify(replace(found, policy=Policy(rows)))
    assert "bound by induction: does not hold" in str(worse)
    rows[0, 3] = 0
    assert "rows of the state itself" in str(verify(replace(found, policy=Policy(rows))))


def test_infinite_claims_are_checked():
    """An infinite bound where the value is finite, and the other way round."""
    for seed in range(40):
        model = tiny_model(seed)
        found = solve(model, Spec(ReachReward("goal", "some"), MAX, MIN))
        for s in np.flatnonzero(np.isfinite(found.value)):
            lower, upper = found.lower.copy(), found.upper.copy()
            lower[s] = upper[s] = np.inf
            assert not verify(replace(found, lower=lower, upper=upper)).valid
        for s in np.flatnonzero(np.isinf(found.value)):
            lower, upper = found.lower.copy(), found.upper.copy()
            lower[s] = upper[s] = 50.0
            assert not verify(replace(found, lower=lower, upper=upper)).valid


def test_open_and_one_sided_results_pass():
    """What is proven of them is checked; a missing side is not."""
    assert verify(solve(walk(), REACH, inner=IntervalArithmetic())).valid
    assert verify(solve(walk(), COST, limits=Limits(sweeps=1))).valid
    claimed = replace(solve(walk(), REACH, inner=IntervalArithmetic()), status=Status.CERTIFIED)
    assert "both sides" in str(verify(claimed))


def test_files_are_verified(tmp_path):
    """From the file alone; saved and loaded solutions are the same."""
    for name in ("reach MAXMIN", "globally late MINMAX", "bounded MAXMIN", "to target MINMAX"):
        found = solve(tiny_model(3), dict(SPECS)[name])
        path = tmp_path / "solution.rfmdp"
        save(found, path)
        assert verify(path).valid
        again = load(path)
        assert np.array_equal(again.lower, found.lower)
        assert np.array_equal(again.policy.rows, found.policy.rows)
        assert (again.status, again.spec, again.method) == (found.status, found.spec, found.method)
        assert again.stats == found.stats


def test_policies_are_saved(tmp_path):
    """A policy alone is a file, but nothing to verify."""
    policy = solve(walk(), REACH).policy
    save(policy, tmp_path / "policy.rfmdp")
    assert np.array_equal(load(tmp_path / "policy.rfmdp").rows, policy.rows)
    with pytest.raises(FileError, match="holds a policy"):
        verify(tmp_path / "policy.rfmdp")


def test_sets_given_as_arrays_are_saved(tmp_path):
    """A target that is no label is stored with the solution."""
    goal = walk().label("goal")
    found = solve(walk(), Spec(Reach(goal), MAX, MIN))
    save(found, tmp_path / "s.rfmdp")
    assert verify(tmp_path / "s.rfmdp").valid
    assert np.array_equal(load(tmp_path / "s.rfmdp").spec.objective.target, goal)


def test_progress_is_told():
    """Long checks say where they are."""
    seen = []
    verify(solve(walk(), REACH), progress=seen.append)
    assert seen == ["lower bound", "upper bound"]


WITNESSED = [name for name in NAMES if name.startswith(("late", "globally M", "globally late"))]


@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 12), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WITNESSED)
def test_altered_witnesses_fail(name, seeds):
    """Where bounds rest on others, these are numbers to check as well, on either side."""
    tried = 0
    for seed in seeds:
        found = solved(seed, name)
        lower, upper = found.witness
        for s in range(found.model.states):
            raised, lowered = lower.copy(), upper.copy()
            raised[s] += 1e-5
            lowered[s] -= 1e-5
            if upper[s] < 1.0 - 2e-5:
                assert not verify(replace(found, witness=(raised, upper))).valid, (seed, s)
                tried += 1
            if lower[s] > 2e-5:
                assert not verify(replace(found, witness=(lower, lowered))).valid, (seed, s)
                tried += 1
    assert tried > 5


STATIONARY = ("reach", "until", "globally M", "next", "to target", "discounted", "total")


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(STATIONARY)])
def test_worse_policies_fail(name):
    """A row exchanged for one that does not attain the guarantee is noticed."""
    tried, spec = 0, dict(SPECS)[name]
    for seed in range(6):
        found = solved(seed, name)
        assert found.policy.stationary
        model = found.model
        for s in np.flatnonzero(np.diff(model.row_ptr) > 1):
            rows = found.policy.rows.copy()
            rows[0, s] = 2 * model.row_ptr[s] + 1 - rows[0, s]
            attained = true_value(restrict(model, rows[0]), spec)
            ours, theirs = np.minimum(found.guarantee, 1e9), np.minimum(attained, 1e9)
            worse = spec.agent.sign * (ours - theirs) > 1e-4
            if worse.any():
                assert not verify(replace(found, policy=Policy(rows))).valid, (seed, s)
                tried += 1
    assert tried > 0


def test_altered_files_fail(tmp_path):
    """One number changed in a saved solution: the command says so and fails, however saved."""
    path = tmp_path / "solution.rfmdp"
    found = solve(walk(), REACH)
    upper = found.upper.copy()
    upper[3] -= 1e-4
    save(replace(found, upper=upper, lower=np.minimum(found.lower, upper)), path)
    assert run(["verify", str(path)]) == 1
    save(found, path)
    assert run(["verify", str(path)]) == 0
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    assert run(["verify", str(path)]) == 1


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith(("discounted", "reach"))])
def test_infinite_bounds_prove_nothing(name):
    """Minus infinity below is no step to more than the value, and plus infinity no lower bound."""
    for seed in range(5):
        found = solved(seed, name)
        states = found.model.states
        for s in range(states):
            lower = np.full(states, -np.inf)
            lower[s] = found.upper[s] + 1.0
            assert not verify(replace(found, lower=lower, upper=found.upper + 2.0)).valid, (seed, s)
        for same in (np.full(states, np.inf), np.full(states, -np.inf)):
            assert not verify(replace(found, lower=same, upper=same)).valid, seed


def alter_one(found):
    """Yield the solution with a bound moved past the value at a state that is not settled."""
    inside = (found.value > 0.1) & (found.value < 0.9)
    inside[found.model.initial] = False  # there, the claim to be certified fails first
    s = int(np.argmax(inside))
    for lower, upper in ((found.upper[s] + 1e-6, 1.0), (0.0, found.lower[s] - 1e-6)):
        new = found.lower.copy(), found.upper.copy()
        new[0][s], new[1][s] = lower, upper
        yield replace(found, lower=new[0], upper=new[1], value=np.clip(found.value, *new))


@pytest.mark.parametrize(
    "sizes",
    [{"maxX": 8, "maxY": 5, "height": 2}, pytest.param({}, marks=pytest.mark.slow)],
    ids=str,
)
def test_aircraft(sizes):
    """Rows with hundreds of thousands of products pass, and an altered bound is noticed."""
    model = domain("aircraft", **sizes).with_radius(0.025)
    found = solve(model, domain_spec("aircraft"))
    assert verify(found).valid
    for altered in alter_one(found):
        assert "bound by induction: does not hold" in str(verify(altered))


@pytest.mark.parametrize(
    "objective",
    [Until("safe", "goal", latest=3), Globally("safe", latest=2), Cumulative(3, "signed"),
     Until("safe", "goal", earliest=2), Instantaneous(2, "signed")],
    ids=lambda o: type(o).__name__,
)  # fmt: skip
@pytest.mark.parametrize(("agent", "nature"), [(MAX, MIN), (MIN, MAX), (MAX, MAX)])
def test_bounds_of_a_policy_by_steps_were_called_invalid(objective, agent, nature):
    """`evaluate` bounds the policy, not the optimum, and says so; the claims do not mix."""
    mixed = 0
    for seed in range(2, 5):
        model, spec = tiny_model(seed), Spec(objective, agent, nature)
        truth = solve(model, spec, states=np.ones(model.states, bool))
        rng = np.random.default_rng(seed)
        rows = rng.integers(model.row_ptr[:-1], model.row_ptr[1:], truth.policy.rows.shape)
        found = evaluate(model, Policy(rows), spec)
        assert found.subject == "policy"
        assert verify(found).valid, str(verify(found))
        far = np.abs(truth.value - found.value).max() > 1e-3
        assert verify(replace(found, subject="optimum")).valid != far
        mixed += far
        for side, name in ((-1, "lower"), (1, "upper")):
            moved = replace(found, **{name: getattr(found, name) - side * 0.5})
            assert not verify(moved).valid
    assert mixed


def draws(stations, numbers):
    """Return a model in which the one who draws the largest number alone wins; else once more."""
    drawn = np.array(list(np.ndindex(*[numbers] * stations)))
    unique = (drawn == drawn.max(axis=1, keepdims=True)).sum(axis=1) == 1
    sets = [Interval(np.full(numbers, 0.105), np.full(numbers, 0.145)) for _ in range(stations)]
    return FactoredMDP.from_rows(
        [[(list(range(stations)), np.where(unique, 1, 0))], [([], [1])]],
        sets,
        labels={"elected": [False, True]},
        rewards={"rounds": Rewards(np.array([1.0, 0.0]), np.zeros(2))},
    )


@pytest.mark.parametrize(
    "objective", [Until(np.ones(2, bool), "elected", 2), ReachReward("elected", "rounds")], ids=str
)
def test_many_products_of_vertices_were_called_invalid(objective, monkeypatch):
    """Equal boxes have 560 vertices each, up to rounding 70; what is not decided is not refuted."""
    found = solve(draws(4, 8), Spec(objective, MAX, MIN))
    assert verify(found).valid, str(verify(found))
    moved = replace(found, lower=found.lower + 1e-3 * (found.lower < 1.0), status=Status.GAP_OPEN)
    moved = replace(moved, value=np.clip(found.value, moved.lower, None), upper=None)
    assert verify(moved).failed
    monkeypatch.setattr(products, "NODES", 0)
    undecided = verify(found)
    assert not undecided.valid
    assert not undecided.failed


@pytest.mark.parametrize("cost", [1e-20, 1e-3, 1e7])
def test_values_beside_infinite_ones_were_called_invalid(cost):
    """The bounds of a value of 1e280 and more hold where nature can avoid an infinite one."""
    goal = np.array([False, True, False])
    stay = ([0, 1], [0, 0, 0, 0, 2, 0, 1, 2, 0])  # for nothing, or for ever away from the goal
    model = FactoredMDP.from_rows(
        [[stay, ([2], [1, 0])], [([], [1])], [([], [2])]],
        [
            Interval([0.0] * 3, [1.0] * 3),
            Interval([0.5, 0.3125, 0.0], [1.0] * 3),
            Interval([1e-300, 1.0], [1e-300, 1.0]),
        ],
        labels={"goal": goal},
        rewards={"cost": Rewards(np.zeros(3), np.array([0.0, cost, 0.0, 0.0]))},
    )
    solution = solve(model, Spec(ReachReward("goal", "cost"), MIN, MIN))
    assert 0.0 <= solution.lower[0] <= cost * 1e300
    assert np.isposinf(solution.lower[2])
    assert verify(solution).valid


@pytest.mark.parametrize(
    "uset",
    [
        Interval([0.5, 0.0], [1.0, 0.5]),
        L1Ball([0.75, 0.25], 0.5),
        Polytope([[0.5, 0.5], [1.0, 0.0]]),
    ],
    ids=lambda uset: type(uset).__name__,
)
def test_values_that_a_helping_nature_attains_exactly_were_called_invalid(uset):
    """It may avoid the goal, but that would be a loss; so it does not."""
    lines = [[([0], [2, 1])], [([], [1])], [([], [2])], [([0, 1], [2, 2, 2, 0])]]
    sets = [uset, Interval([0.5, 0.0], [1.0, 0.5])]
    model = FactoredMDP.from_rows(lines, sets, labels={"goal": [False, True, False, False]})
    found = solve(model, Spec(Reach("goal"), MAX, MAX))
    for value, valid in ((0.5, True), (np.nextafter(0.5, 1.0), False)):
        exact = np.array([value, 1.0, 0.0, 0.25 * value])
        claim = replace(found, lower=exact, value=exact, upper=None, status=Status.GAP_OPEN)
        assert verify(claim).valid == valid
    # through a toll that is paid, or not, before the end
    lines = [[([0], [2, 1])], [([], [3])], [([], [3])], [([], [3])]]
    model = FactoredMDP.from_rows(
        lines,
        [uset],
        labels={"end": [False, False, False, True]},
        rewards={"cost": Rewards(np.array([0.0, 1.0, 2.0, 0.0]), np.zeros(4))},
    )
    found = solve(model, Spec(ReachReward("end", "cost"), MIN, MIN))
    for value, valid in ((1.5, True), (np.nextafter(1.5, 1.0), False)):
        exact = np.array([value, 1.0, 2.0, 0.0])
        claim = replace(found, upper=exact, value=exact, lower=None, status=Status.GAP_OPEN)
        assert verify(claim).valid == valid
