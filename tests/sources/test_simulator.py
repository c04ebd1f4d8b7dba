"""Simulation: distributions, independence of threads and batches, statistics."""

import numpy as np
import pytest

from learning.tiny import REACH, distinct_factored, loop_to_goal, two_arms
from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.kernels import simulate as kernels
from rfmdp.learning.tally import Tally
from rfmdp.outer.solution import Policy
from rfmdp.solving import solve
from rfmdp.sources.simulator import Behaviour, Simulator, simulate


def run(model, trajectories=2000, first=0, threads=1, seed=5, behaviour=None):
    chosen = behaviour or Behaviour.uniform(model)
    return Simulator(model).run(chosen, 4, first, trajectories, seed, threads=threads)


@pytest.mark.parametrize("d", [1, 2, 3, 7, 40])
def test_alias_tables_keep_the_distribution(d):
    """The mass of every outcome over all slots is its probability."""
    p = np.random.default_rng(d).dirichlet(np.full(d, 0.4))
    p[p < 1e-3] = 0.0
    p /= p.sum()
    accept, alias = np.empty(d), np.empty(d, dtype=np.int32)
    kernels.alias_tables(np.array([0, d]), p, accept, alias)
    mass = accept.copy()
    np.add.at(mass, alias, 1.0 - accept)
    assert mass / d == pytest.approx(p, abs=1e-12)


def test_counts_do_not_depend_on_threads_or_batches():
    """The same trajectories give the same counts however they are cut."""
    model = distinct_factored(1)
    whole = run(model, 1001)
    assert np.array_equal(run(model, 1001, threads=2).counts, whole.counts)
    parts = run(model, 300).counts + run(model, 701, first=300).counts
    assert np.array_equal(parts, whole.counts)
    assert not np.array_equal(run(model, 1001, seed=6).counts, whole.counts)


def test_compiled_and_plain_kernels_agree():
    """Sequential trajectories with limits are the same as those side by side."""
    model = distinct_factored(2)
    simulator = Simulator(model)
    tally = Tally.empty(model)
    limit = np.full(len(tally.totals), 10**9)
    behaviour = Behaviour(model.row_ptr[None, :-1], other=0.3)
    done, steps = simulator.run_until(behaviour, 4, 0, 500, 5, limit, tally)
    batch = simulator.run(behaviour, 4, 0, 500, 5)
    assert (done, steps) == (500, batch.steps)
    assert np.array_equal(tally.counts, batch.counts)
    starts = model.marginals.outcome_ptr[:-1]
    assert np.array_equal(tally.totals, np.add.reduceat(tally.counts, starts))


def test_stops_after_the_trajectory_that_doubles():
    """A limit ends the run after the trajectory in which it is reached."""
    model = two_arms(0.5, 0.5)
    tally = Tally.empty(model)
    behaviour = Behaviour(model.row_ptr[None, :-1])
    done, _ = Simulator(model).run_until(behaviour, 3, 0, 500, 1, np.array([16, 16]), tally)
    assert done == 16
    assert tally.totals.tolist() == [16, 0]


def test_frequencies_match_probabilities():
    """Every outcome is within five standard deviations of its expected count."""
    model = distinct_factored(3)
    batch = run(model, 20_000)
    p, pointers = model.marginals.nominal, model.marginals.outcome_ptr
    n = np.repeat(np.add.reduceat(batch.counts, pointers[:-1]), np.diff(pointers))
    assert np.all(np.abs(batch.counts - n * p) <= 5.0 * np.sqrt(n * p * (1 - p)) + 1)


def test_other_rows_are_taken_as_often_as_asked():
    """Another row than the policy's is taken with the given probability."""
    model = two_arms(0.5, 0.5)
    batch = run(model, 20_000, behaviour=Behaviour(model.row_ptr[None, :-1], other=0.1))
    assert batch.counts[2:].sum() / 20_000 == pytest.approx(0.1, abs=0.01)


def test_statistics_agree_with_the_solver():
    """The mean of simulated returns and label shares match computed values."""
    model = loop_to_goal(0.25)
    result = simulate(model, None, 400, 20_000, seed=3, stop=model.label("goal"))
    assert result.mean == pytest.approx(4.0, abs=5 * result.half_width / 1.96)
    assert result.ended["goal"] == 1.0
    grid = distinct_factored(4)
    solution = solve(grid, REACH)
    reached = simulate(grid, solution.policy, 5, 20_000, seed=1).ended["goal"]
    assert reached == pytest.approx(solution.at_initial().lower, abs=0.02)


def test_bad_requests_are_refused():
    """Policies of other models and empty runs are named."""
    model = loop_to_goal(0.5)
    with pytest.raises(UnsupportedError, match="policy"):
        simulate(model, Policy(np.array([[7, 7]])), 1, 1)
    with pytest.raises(ModelError, match="at least 1"):
        simulate(model, None, 0, 1)
    with pytest.raises(ModelError, match="probability"):
        Behaviour(np.array([[0]]), other=2.0)
