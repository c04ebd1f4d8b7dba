"""What a learner may know of a model, and what it never sees."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from learning.tiny import REACH, bernoulli, random_factored, two_arms
from rfmdp.errors import AssumptionAlarm, ModelError, UnsupportedError
from rfmdp.language.build import parse_prism
from rfmdp.learning.confidence import Weissman
from rfmdp.learning.identifiers import Granularity, identify
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import TIED, StopWhen
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import joint_successors
from rfmdp.sets.families import Interval, LpBall, Singleton
from rfmdp.solving import solve
from rfmdp.sources import trajectories as transitions
from rfmdp.sources.source import Simulated, Structure, counted_truth, unknown
from rfmdp.sources.trajectories import Index

COIN = """mdp
module m
  x : [0..2] init 0;
  [risky] x=0 -> [0,1]:(x'=1) + [0,1]:(x'=2);
  [known] x=0 -> [0.3,0.6]:(x'=1) + [0.4,0.7]:(x'=2);
endmodule
label "goal" = x=1;
"""


def coin():
    """Return the structure of a PRISM file: an unknown coin and one that is roughly known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parse_prism(COIN)


def truth_of(model, *points):
    return model.with_marginals(type(model.marginals).from_sets([Singleton(p) for p in points]))


def learned(source, **rest):
    return learn(source, REACH, stop=StopWhen(trajectories=2_000), length=3, **rest)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("granularity", [Granularity.EFFECT, Granularity.TIED, Granularity.FLAT])
def test_a_learner_sees_no_probability_and_the_simulator_still_has_them(seed, granularity):
    """Structures of two truths are the same; merged probabilities are the truth's."""
    model = random_factored(seed)
    ids = identify(Structure.of(model), granularity)
    hidden = ids.model
    assert ids.prior is None
    assert_allclose(hidden.marginals.nominal, 1.0 / np.repeat(*[hidden.marginals.sizes] * 2))
    plain, truth = (
        joint_successors(m, np.arange(m.rows), m.marginals.nominal)
        for m in (model, counted_truth(model, hidden))
    )
    for of_row, of_truth in zip(plain[:2], truth[:2], strict=True):
        assert_array_equal(of_truth, of_row)
    assert_allclose(truth[2], plain[2], rtol=0, atol=1e-15)


def test_a_truth_of_another_structure_is_refused():
    """Its successors show no outcome."""
    other = FactoredMDP.from_rows(
        [[([0], [2, 0], "try")], [([], [1], "stay")], [([], [2], "stay")]], [Singleton([0.5, 0.5])]
    )
    with pytest.raises(ModelError, match="declared successor"):
        counted_truth(other, identify(Structure.of(bernoulli(0.5))).model)
    with pytest.raises(ModelError, match="states, rows and successors"):
        Simulated(bernoulli(0.5), other)


def test_prior_knowledge_is_where_learning_starts():
    """Before data say more, the guarantee is that of the structure; the statement names it."""
    known = coin()
    floor = solve(known, REACH).at_initial().lower
    run = learned(Simulated(truth_of(known, [0.2, 0.8], [0.5, 0.5]), known))
    assert floor == pytest.approx(0.3)
    assert 0.3 < run.guarantee <= 0.5
    assert "1 of 2 marginals lie in the sets of the model" in run.statement()
    assert run.settings["prior"]["informed"] == 1
    blind = learned(truth_of(known, [0.2, 0.8], [0.5, 0.5]))
    assert blind.settings["prior"] is None
    assert_array_equal(run.counts.sum(), blind.counts.sum())


def test_a_simulation_of_sets_says_which_probabilities_it_draws_from():
    """A structure is no system; its nominal members are."""
    run = learned(coin())
    assert "a simulation, with the nominal members of the model's sets" in run.statement()
    assert run.guarantee > 0.3


def test_data_against_prior_knowledge_raise_the_alarm():
    """The truth lies outside what was declared."""
    known = coin()
    with pytest.raises(
        AssumptionAlarm,
        match=r"^Marginal .*, with counts \d+, \d+: its box .* the model declares are right",
    ):
        learned(Simulated(truth_of(known, [0.2, 0.8], [0.95, 0.05]), known))


def test_prior_knowledge_of_merged_outcomes_adds_up():
    """Two outcomes that nobody can tell apart have the sum of their bounds."""
    model = FactoredMDP.from_rows(
        [[([0], [1, 2, 2], "try")], [([], [1], "stay")], [([], [2], "stay")]],
        [Interval([0.1, 0.2, 0.3], [0.4, 0.5, 0.6])],
    )
    sets = identify(Structure.of(model)).prior
    assert_allclose(sets.lower, [0.1, 0.6], atol=1e-12)
    assert_allclose(sets.upper, [0.4, 0.9], atol=1e-12)
    assert sets.lower[1] <= 0.6
    assert sets.upper[1] >= 0.9


def test_other_sets_are_known_by_their_bounds_and_need_boxes():
    """An L1 ball is its bounding box; balls of other methods cannot be intersected with it."""
    ball = LpBall([0.2, 0.3, 0.1, 0.4], 0.2, 1.0)
    rows = [[([0], [1, 2, 3, 4], "try")], *([([], [s], "stay")] for s in range(1, 5))]
    model = FactoredMDP.from_rows(rows, [ball], labels={"goal": [s == 1 for s in range(5)]})
    assert_allclose(Structure.of(model).model.marginals.upper, [0.3, 0.4, 0.2, 0.5])
    with pytest.raises(UnsupportedError, match="needs boxes"):
        learned(Simulated(model), confidence=Weissman())


def test_equal_numbers_are_told_and_equal_sets_are_no_tie():
    """TIED needs numbers; sets that are alike may be different unknowns."""
    assert_array_equal(Structure.of(two_arms(0.3, 0.3)).alike, [0, 0])
    assert_array_equal(Structure.of(two_arms(0.3, 0.4)).alike, [0, 1])
    unknowns = two_arms(0.3, 0.3).with_marginals(
        type(two_arms(0.3, 0.3).marginals).from_sets([unknown(2), unknown(2)])
    )
    with pytest.raises(UnsupportedError, match="declare `ties`"):
        learned(Simulated(unknowns), method=TIED)
    assert len(identify(Structure.of(unknowns), ties=[(0, 1)]).model.marginals) == 1
    with pytest.raises(ModelError, match="at least one outcome"):
        unknown(0)


@pytest.mark.parametrize("dense", [transitions.DENSE, 0])
def test_index_finds_states_and_rows(dense, monkeypatch):
    """It agrees with `find`, by a table and by searching, and says -1 where there is nothing."""
    monkeypatch.setattr(transitions, "DENSE", dense)
    model = coin()
    index = Index(model)
    found = [index.state([x]) for x in (0, 1, 2, 3, -1)]
    assert found == [*(model.find(x=x) for x in range(3)), -1, -1]
    risky = model.actions.index("risky")
    row = int(index.rows[model.find(x=0), risky])
    assert model.row_name(row) == "(x=0), action risky"
    assert index.rows[model.find(x=1), risky] == -1


def test_two_choices_of_one_name_cannot_be_observed():
    """The index names the place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = parse_prism(COIN.replace("[known]", "[risky]"))
    with pytest.raises(ModelError, match=r"\(x=0\), action risky must be one choice"):
        Index(model)
