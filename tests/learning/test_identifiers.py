"""Identifiers: published counts, merging, ties, values that do not change."""

from functools import cache

import numpy as np
import pytest

from rfmdp import parse_prism
from rfmdp.domains import DOMAINS, domain, domain_spec
from rfmdp.errors import ModelError
from rfmdp.learning.identifiers import Granularity
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import StopWhen, find_method
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sets.families import Singleton
from rfmdp.solving import solve
from rfmdp.sources.trajectories import Tally

from .tiny import REACH, distinct_factored, identified, random_factored

PUBLISHED = {  # |Q|, U as the published experiments print them
    "aircraft": (1362, 6952),
    "frozen_lake": (512, 1520),
    "stock_trading": (746, 2936),
    "sysadmin": (7821, 11286),
    "drone": (1800, 5618),
}


@cache
def learned(name):
    """Return the learning instance of a domain."""
    return domain(name, instance="learning")


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name):
    """|Q| and U of the published experiments come out exactly."""
    ids = identified(learned(name), Granularity.LOCAL, local=DOMAINS[name].learning.local_states)
    assert (len(ids.counted), ids.counted.sum()) == PUBLISHED[name]
    assert len(set(ids.model.marginal_names)) == len(ids.model.marginals)


@pytest.mark.parametrize("granularity", Granularity)
def test_values_do_not_change(granularity):
    """The learning model of a domain has the optimum of the model itself."""
    model, known = learned("aircraft"), DOMAINS["aircraft"].learning
    ids = identified(model, granularity, local=known.local_states)
    bounds = [solve(m, domain_spec("aircraft")).at_initial() for m in (model, ids.model)]
    assert bounds[1].lower == pytest.approx(bounds[0].lower, abs=1e-10)
    # Storm (stormpy 2.0.0, sound value iteration): 0.84513206; printed with five digits
    assert all(b.lower - 1e-8 <= 0.84513206 <= b.upper + 1e-8 for b in bounds)
    assert known.optimum == pytest.approx(0.84513206, abs=5e-6)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("granularity", [Granularity.EFFECT, Granularity.FLAT])
def test_outcomes_are_identifiable(seed, granularity):
    """In a learning model the successor tells all outcomes, and values stay."""
    model = random_factored(seed)
    learning = identified(model, granularity).model
    for row in range(learning.rows):
        part = learning.successors[slice(*learning.successor_ptr[row : row + 2])]
        assert len(set(part.tolist())) == len(part)
    before, after = (solve(m, REACH).at_initial().lower for m in (model, learning))
    assert after == pytest.approx(before, abs=1e-9)


def test_walls_merge_outcomes_into_an_identifier_of_its_own():
    """A clamped row does not count for the free one."""
    walk = FactoredMDP.from_rows(
        [[([0], [1, 2, 3])], [([0], [2, 3, 3])], [([0], [3, 3, 3])], [([], [3])]],
        [Singleton([0.2, 0.3, 0.5])],
    )
    ids = identified(walk)
    assert ids.model.marginals.sizes.tolist() == [3, 2]
    assert ids.model.marginals.nominal.tolist() == pytest.approx([0.2, 0.3, 0.5, 0.2, 0.8])
    assert np.diff(ids.model.marginal_ptr).tolist() == [1, 1, 0, 0]
    assert ["merged" in name for name in ids.model.marginal_names] == [False, True]


def test_crossed_outcomes_become_a_joint_distribution():
    """Two coins of which only the sum is seen are one distribution over sums."""
    model = FactoredMDP.from_rows(
        [[([0, 1], [1, 2, 2, 3])], [([], [1])], [([], [2])], [([], [3])]],
        [Singleton([0.5, 0.5]), Singleton([0.25, 0.75])],
    )
    ids = identified(model)
    assert [name.partition(",")[0] for name in ids.model.marginal_names] == ["joint"]
    assert ids.model.marginals.nominal.tolist() == pytest.approx([0.125, 0.5, 0.375])


def test_ties_share_counts_and_are_checked():
    """Tied marginals are one identifier; different probabilities cannot be tied."""
    model = FactoredMDP.from_rows(
        [[([0], [0, 1], "a"), ([1], [0, 1], "b"), ([2], [0, 1], "c")], [([], [1])]],
        [Singleton([0.5, 0.5]), Singleton([0.5, 0.5]), Singleton([0.4, 0.6])],
    )
    assert len(identified(model).model.marginals) == 3
    assert len(identified(model, ties=[(0, 1)]).model.marginals) == 2
    with pytest.raises(ModelError, match="same probabilities"):
        identified(model, ties=[(0, 2)])
    with pytest.raises(ModelError, match="no marginal"):
        identified(model, ties=[("nobody", 0)])


def test_equal_marginals_can_be_tied_all_at_once():
    """`TIED` joins equal probabilities, in their order; merged ones stay apart."""
    model = FactoredMDP.from_rows(
        [
            [([0], [0, 1], "a"), ([1], [0, 1], "b"), ([2], [0, 1], "c"), ([3], [0, 1, 1], "d")],
            [([4], [0, 1, 2], "e")],
            [([3], [0, 1, 2], "f")],
        ],
        [
            Singleton([0.25, 0.75]), Singleton([0.25, 0.75]), Singleton([0.75, 0.25]),
            Singleton([0.5, 0.25, 0.25]), Singleton([0.5, 0.25, 0.25]),
        ],
    )  # fmt: skip
    ids = identified(model, Granularity.TIED)
    assert ids.model.marginals.sizes.tolist() == [2, 2, 2, 3]
    assert ids.model.row_marginals.tolist() == [0, 0, 1, 2, 3, 3]
    assert len(identified(model, Granularity.TIED, ties=[(0, 1)]).model.marginals) == 4


def test_tied_identifiers_of_sysadmin():
    """A machine fails with one of two probabilities: two unknowns.

    Untied, each of the eleven commands of all ten machines has its own pair.
    """
    model = domain("sysadmin", instance="learning", T=2)
    tied = identified(model, Granularity.TIED)
    assert len(tied.model.marginals) == 2
    assert len(identified(model).model.marginals) == 10 * 11 * 2


def test_flat_has_one_identifier_per_uncertain_row():
    """Flat learning shares nothing."""
    model = distinct_factored(0)
    ids = identified(model, Granularity.FLAT)
    uncertain = int(np.count_nonzero(np.diff(ids.model.successor_ptr) > 1))
    assert len(ids.model.marginals) == uncertain


@pytest.mark.parametrize("granularity", [Granularity.EFFECT, Granularity.FLAT])
def test_counts_from_transitions(granularity):
    """Counted transitions of every successor give one count per fibre; strangers are refused."""
    ids = identified(distinct_factored(0), granularity)
    model = ids.model
    rows = np.repeat(np.arange(model.rows), np.diff(model.successor_ptr))
    tally = Tally.empty(ids.model)
    tally.add(ids.model, rows, model.successors)
    counts = tally.counts
    expected = np.zeros(len(model.marginals.nominal), dtype=np.int64)
    for row in range(model.rows):
        own = model.row_marginals[slice(*model.marginal_ptr[row : row + 2])]
        size = int(np.prod(model.marginals.sizes[own]))
        for j in own:
            part = slice(*model.marginals.outcome_ptr[j : j + 2])
            expected[part] += size // model.marginals.sizes[j]
    assert np.array_equal(counts, expected)
    with pytest.raises(ModelError, match="void"):
        Tally.empty(ids.model).add(ids.model, np.array([0]), np.array([10]))


def test_rows_of_one_action_are_told_apart():
    """Joint identifiers of choices with the same action have names of their own."""
    model = domain("chain", M=3)
    names = identified(model, Granularity.FLAT).model.marginal_names
    assert len(set(names)) == len(names)
    run = learn(
        model, domain_spec("chain"), find_method("paper-flat"), stop=StopWhen(200), length=9
    )
    assert run.guarantee > 0.0


def test_outcomes_keep_their_names():
    """Learned sets are about outcomes by their names; outcomes that are merged have all of them."""
    walk = parse_prism(
        "dtmc module m x:[0..2]; [] x<2 -> 0.5:(x'=x+1) + 0.3:(x'=min(x+2,2)) + 0.2:true; "
        "[] x=2 -> true; endmodule"
    )
    names = identified(walk).model.outcome_names
    assert names == ("(x'=x+1)", "(x'=min(x+2, 2))", "true",
                     "(x'=x+1) or (x'=min(x+2, 2))", "true")  # fmt: skip
    assert identified(walk, Granularity.FLAT).model.outcome_names == ()
