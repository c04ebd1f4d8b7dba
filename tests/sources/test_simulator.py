"""Simulation: distributions, independence of batches, statistics."""

import numpy as np
import pytest

from learning.tiny import distinct_factored, two_arms
from rfmdp.errors import ModelError
from rfmdp.kernels import simulate as kernels
from rfmdp.sources import trajectories as simulator
from rfmdp.sources.trajectories import Behaviour, Simulator, Tally, Trajectories
from rfmdp.types import frozen


def run(model, trajectories=2000, first=0, seed=5, behaviour=None):
    chosen = behaviour or Behaviour.uniform(model)
    return Simulator(model).run(Trajectories(chosen, 4, trajectories, seed, first))


@pytest.mark.parametrize("d", [1, 2, 3, 7, 40])
def test_alias_tables_keep_the_distribution(d):
    """The mass of every outcome over all slots is its probability."""
    p = np.random.default_rng(d).dirichlet(np.full(d, 0.4))
    p[p < 1e-3] = 0.0
    p /= p.sum()
    accept, alias = np.empty(d), np.empty(d, dtype=np.int32)
    work = np.empty(d, dtype=np.int64)
    kernels.alias_tables(frozen(np.array([0, d])), frozen(p), work, accept, alias)  # as of a model
    mass = accept.copy()
    np.add.at(mass, alias, 1.0 - accept)
    assert mass / d == pytest.approx(p, abs=1e-12)


def test_counts_do_not_depend_on_batches():
    """The same trajectories give the same counts however they are cut."""
    model = distinct_factored(1)
    whole = run(model, 1001)
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
    wanted = Trajectories(behaviour, 4, 500, 5)
    done, steps = simulator.run_until(wanted, limit, tally)
    batch = simulator.run(wanted)
    assert (done, steps) == (500, batch.steps)
    assert np.array_equal(tally.counts, batch.counts)
    starts = model.marginals.outcome_ptr[:-1]
    assert np.array_equal(tally.totals, np.add.reduceat(tally.counts, starts))


def test_stops_after_the_trajectory_that_doubles():
    """A limit ends the run after the trajectory in which it is reached."""
    model = two_arms(0.5, 0.5)
    tally = Tally.empty(model)
    behaviour = Behaviour(model.row_ptr[None, :-1])
    done, _ = Simulator(model).run_until(
        Trajectories(behaviour, 3, 500, 1), np.array([16, 16]), tally
    )
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


def test_a_behaviour_is_checked():
    """Another row is taken with a probability."""
    with pytest.raises(ModelError, match="probability"):
        Behaviour(np.array([[0]]), other=2.0)


def test_ctrl_c_was_heard_only_after_the_last_trajectory(monkeypatch):
    """Kernels run for slices of bounded size, and after an interruption none begins."""
    model, begun = two_arms(0.5, 0.5), []

    def kernel(world, behaviour, wanted, *rest):
        length, _, _, count = wanted
        begun.append(count)
        assert length * count <= simulator.SLICE
        raise KeyboardInterrupt

    monkeypatch.setattr(kernels, "run_trajectories", kernel)
    with pytest.raises(KeyboardInterrupt):
        Simulator(model).run(Trajectories(Behaviour.uniform(model), 1000, 1_000_000, 5))
    assert len(begun) == 1
