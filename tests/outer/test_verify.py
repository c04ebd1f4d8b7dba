"""The verifier passes genuine results of all objectives and refuses altered ones."""

from dataclasses import replace

import numpy as np
import pytest

from rfmdp.errors import FileError, UnsupportedError
from rfmdp.files import load, save
from rfmdp.inner import IntervalArithmetic
from rfmdp.objective import MAX, MIN, Reach, ReachReward, Spec
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Policy, Status
from rfmdp.solve import solve
from rfmdp.uncertainty.sets import LpBall
from rfmdp.verify import verify

from .random_specs import specs, tiny_model
from .test_laws import COST, REACH, walk

SPECS = list(specs())
NAMES = [name for name, _ in SPECS]


@pytest.mark.parametrize("chunk", range(4))
def test_genuine_results_pass(chunk):
    """Random models, all objectives and directions."""
    for seed in range(30 * chunk, 30 * (chunk + 1)):
        model = tiny_model(seed)
        for k in range(4):
            name, spec = SPECS[(7 * seed + 15 * k + 1) % len(SPECS)]
            verdict = verify(solve(model, spec, states=np.ones(model.states, bool)))
            assert verdict.valid, (seed, name, str(verdict))


# total reward with both maximising is 0 or infinite on all of these models: nothing to move
ALTERED = [(name, spec) for name, spec in SPECS if name != "total MAXMAX"]


@pytest.mark.parametrize(("name", "spec"), ALTERED, ids=[name for name, _ in ALTERED])
def test_altered_bounds_fail(name, spec):
    """A bound moved past the value at any one state is noticed, on either side."""
    tried = 0
    for seed in range(12):
        model = tiny_model(seed)
        found = solve(model, spec, states=np.ones(model.states, bool))
        for s in range(model.states):
            if not np.isfinite(found.value[s]):
                continue
            step = 1e-5 * max(1.0, abs(found.value[s]))
            lower, upper = found.lower.copy(), found.upper.copy()
            lower[s] += step
            upper[s] -= step
            raised = replace(found, lower=lower, upper=np.maximum(lower, found.upper))
            lowered = replace(found, upper=upper, lower=np.minimum(upper, found.lower))
            assert not verify(raised).valid, (seed, s)
            assert not verify(lowered).valid, (seed, s)
            tried += 1
    assert tried > 5


@pytest.mark.parametrize("spec", [REACH, COST], ids=["reach", "cost"])
def test_another_policy_fails(spec):
    """A policy that does not attain the guarantee is noticed, as is a row of another state."""
    found = solve(walk(), spec)
    assert verify(found).valid
    rows = found.policy.rows.copy()
    rows[0, 3] = 2 * walk().row_ptr[3] + 1 - rows[0, 3]
    worse = verify(replace(found, policy=Policy(rows)))
    assert "bound by induction" in str(worse)
    rows[0, 3] = 0
    assert "own rows" in str(verify(replace(found, policy=Policy(rows))))


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
    assert verify(solve(walk(), COST, outer=Limits(sweeps=1))).valid
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
    with pytest.raises(FileError, match="is a policy"):
        verify(tmp_path / "policy.rfmdp")


def test_sets_given_as_arrays_are_saved(tmp_path):
    """A target that is no label is stored with the solution."""
    goal = walk().label("goal")
    found = solve(walk(), Spec(Reach(goal), MAX, MIN))
    save(found, tmp_path / "s.rfmdp")
    assert verify(tmp_path / "s.rfmdp").valid
    assert np.array_equal(load(tmp_path / "s.rfmdp").spec.objective.target, goal)


def test_sets_without_vertices_are_refused():
    """The message names what is missing."""
    from rfmdp.model.arrays import FactoredMDP

    ball = LpBall([0.5, 0.5], 0.1, 2.0)
    rows = [[([0], [1, 2])], [([], [1])], [([], [2])]]
    model = FactoredMDP.from_rows(rows, [ball], labels={"goal": [False, True, False]})
    with pytest.raises(UnsupportedError, match="vertices"):
        verify(solve(model, REACH))


def test_progress_is_told():
    """Long checks say where they are."""
    seen = []
    verify(solve(walk(), REACH), progress=seen.append)
    assert seen == ["lower bound", "upper bound"]
