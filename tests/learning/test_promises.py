"""What a statement of learning promises: identity, ledgers, ties, floors, policies, time."""

import math
import re
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from rfmdp import parse_prism, parse_property
from rfmdp.domains import domain, domain_spec
from rfmdp.errors import FileError, ModelError, UnsupportedError
from rfmdp.formats.files import load
from rfmdp.learning.confidence import ClopperPearson, Mixture, SetStore, Validity, Weissman
from rfmdp.learning.identifiers import Granularity
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import RewardRange, StopWhen, UniformRandom
from rfmdp.learning.setup import Budget, Shares
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import Cumulative, Reach, Spec, Until
from rfmdp.outer.solution import Status
from rfmdp.outer.task import Limits
from rfmdp.policies.explain import explain
from rfmdp.sets.families import Singleton
from rfmdp.solving import solve
from rfmdp.sources.log.source import read_log, table_of
from rfmdp.sources.source import Source, Structure
from rfmdp.sources.trajectories import record

from .tiny import REACH, AtTrajectories, bernoulli, distinct_factored, identified

TWINS = """mdp
module m1
  s : [0..2];
  [go] s=0 -> 0.3 : (s'=1) + 0.7 : (s'=2);
  [go] s>0 -> true;
endmodule
module m2 = m1 [s=t] endmodule
label "goal" = s=1 & t=1;
"""


def test_renamed_modules_have_unknowns_of_their_own():
    """A renamed module is a copy of text; nothing says that both machines are alike."""
    model = parse_prism(TWINS)
    assert len(identified(model).model.marginals) == 2
    assert identified(model).shared == ()
    run = learn(model, REACH, stop=StopWhen(50), length=1)
    assert "declared to be the same" not in run.statement()


def test_declared_ties_are_listed_by_name():
    """Ties of marginals, and of equal numbers, are named in the statement."""
    model = parse_prism(TWINS)
    names = ("m1: [go] line 4", "m2: [go] line 4")
    for asked in (
        {"ties": [names]},
        {"ties": [(0, 1)]},
        {"granularity": Granularity.TIED},
    ):
        run = learn(model, REACH, stop=StopWhen(50), length=1, **asked)
        assert len(run.model.marginals) == 1
        assert run.shared == (names,)
        assert "m1: [go] line 4 = m2: [go] line 4" in run.statement()


@pytest.mark.parametrize(
    "budget", [Budget.EVENTS, Budget.PROBABILITIES, Budget.COMPONENTS], ids=repr
)
@pytest.mark.parametrize("confidence", [Mixture(), Weissman(), ClopperPearson()], ids=repr)
def test_every_ledger_asks_the_set(budget, confidence):
    """Whatever set replaces a method's, all of its events are paid for, within beta."""
    wide = FactoredMDP.from_rows(
        [[([0], [1, 2, 3, 4, 5], "a"), ([1], [1, 2], "b")], *([([], [s])] for s in range(1, 6))],
        [Singleton([0.2] * 5), Singleton([0.5, 0.5])],
    )
    ids = identified(wide)
    ledger = budget.ledger(Shares(model=0.1), confidence, ids)
    needed = confidence.events(ids.model.marginals.sizes)
    assert np.array_equal(ledger.events, needed)
    cost = sum(Fraction(d) * int(e) for d, e in zip(ledger.delta, needed, strict=True))
    assert cost <= Fraction(0.1)
    assert np.all(ledger.delta > 0)


def test_floors_of_products_are_products_of_floors():
    """A floor of marginals says less about the rows that are learned as a whole."""
    coin = Singleton([0.9, 0.1])
    # the goal needs both coins to show their rare side: probability 0.01
    flat = FactoredMDP.from_rows(
        [[([0, 1], [1, 2, 3, 4])], *([([], [s])] for s in range(1, 5))],
        [coin, coin], labels={"goal": [False, False, False, False, True]},
    )  # fmt: skip
    # outcomes that cannot be told apart: one of the coins shows its rare side
    joint = FactoredMDP.from_rows(
        [[([0, 1], [1, 2, 2, 1])], [([], [1])], [([], [2])]],
        [coin, coin], labels={"goal": [False, False, True]},
    )  # fmt: skip
    for model, granularity in ((flat, Granularity.FLAT), (joint, Granularity.EFFECT)):
        truth = solve(model, REACH).at_initial().upper
        run = learn(model, REACH, granularity=granularity, length=1, stop=StopWhen(2000), p_min=0.1)
        assert all(point.guarantee <= truth for point in run.history)
    assert identified(flat, Granularity.FLAT).floors(0.1) == pytest.approx([0.01])
    assert identified(flat, Granularity.FLAT).floors(0.1)[0] <= Fraction(0.1) ** 2
    assert identified(flat).floors(0.1).tolist() == [0.1, 0.1]


def run_in(file, p=0.9, spec=REACH, **more):
    """Learn a coin with every setting by name."""
    asked = {"stop": StopWhen(200), "length": 1, "output": file, **more}
    return learn(bernoulli(p), spec, points=AtTrajectories((200, 400)), **asked)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the file of a run, to be copied."""
    file = tmp_path_factory.mktemp("promises") / "run.rfmdp"
    run_in(file)
    return file


@pytest.mark.parametrize(
    ("named", "other"),
    [
        ("probabilities", {"p": 0.2}),
        ("objective", {"spec": Spec(Until(np.ones(3, dtype=bool), "goal", 1))}),
        ("objective", {"spec": Spec(Reach("init"))}),
        ("seed", {"seed": 3}),
        ("beta", {"beta": 0.01}),
        ("confidence", {"confidence": Weissman()}),
        ("budget", {"budget": Budget.COMPONENTS}),
        ("p_min", {"p_min": 0.01}),
        ("granularity", {"granularity": Granularity.FLAT}),
        ("length", {"length": 2}),
        ("precision", {"limits": Limits(1e-3)}),
    ],
)
def test_a_run_goes_on_as_itself_only(saved, tmp_path, named, other):
    """Whatever the statement depends on must be asked for again; the message names it."""
    file = Path(shutil.copy(saved, tmp_path))
    with pytest.raises(ModelError, match=rf"Resume: .*{named} \(") as told:
        run_in(None, resume=file, **other)
    assert not re.search("[0-9a-f]{16}", str(told.value))  # words, no digests
    more = run_in(None, resume=file, stop=StopWhen(400))
    assert more.history[-1].trajectories == 400
    assert load(file).history[-1].trajectories == 400


def test_ties_are_part_of_the_identity(tmp_path):
    """A run with ties does not go on without them."""
    file, model = tmp_path / "run.rfmdp", parse_prism(TWINS)
    more = {"stop": StopWhen(50), "length": 1}
    learn(model, REACH, ties=[(0, 1)], output=file, **more)
    with pytest.raises(ModelError, match="ties"):
        learn(model, REACH, resume=file, **more)


def test_files_are_neither_lost_nor_invented(tmp_path):
    """A run is not written over, and one that is not there is not resumed."""
    file = tmp_path / "run.rfmdp"
    with pytest.raises(FileError, match="found no file"):
        run_in(None, resume=file)
    run_in(file)
    with pytest.raises(FileError, match="must not exist"):
        run_in(file)
    other = tmp_path / "other.rfmdp"
    run_in(other, resume=file, stop=StopWhen(400))
    assert load(other).history[-1].trajectories == 400
    assert load(file).history[-1].trajectories == 200


class Drifting(Source):
    """A coin that shows one side for a thousand trajectories, and the other one ever after."""

    structure = Structure.of(bernoulli(0.95))
    words: ClassVar[dict[str, str]] = {"source": "drifting"}

    def sampler(self, counted, evidence=None):
        return self.run_until

    def run_until(self, wanted, limit, tally):
        won = wanted.count if wanted.first < 1000 else 0
        tally.counts[:] += [won, wanted.count - won]
        tally.totals[:] += wanted.count
        return wanted.count, wanted.count


class LastingBalls:
    """L1 balls of somebody else, who says that they hold at any time; they are not intersected."""

    label, validity, assumptions = "balls", Validity.ANYTIME, ()
    events, sets = Weissman().events, Weissman().sets


def test_a_guarantee_beyond_the_optimistic_bound_is_an_alarm():
    """A source that changes makes the sides cross; then nothing is claimed."""
    run = learn(
        Drifting(), REACH, confidence=LastingBalls(), length=1, stop=StopWhen(30_000),
        points=AtTrajectories((1000, 2000, 30_000)),
    )  # fmt: skip
    assert run.stopped == "alarm"
    text = run.statement()
    assert any(line.startswith("ALARM: the guarantee") for line in text.splitlines())
    assert "With probability" not in text


def test_integers_are_a_range_of_rewards():
    """`RewardRange(0, 1)` means what `RewardRange(0.0, 1.0)` does."""
    model = bernoulli(0.5)
    paying = replace(model, rewards={"gain": Rewards(np.zeros(3), np.array([0.5, 0.25, 0.0]))})
    spec, more = Spec(Cumulative(3, "gain")), {"length": 3, "stop": StopWhen(400)}
    runs = [
        learn(paying, spec, rewards=RewardRange(*ends), **more) for ends in ((0, 1), (0.0, 1.0))
    ]
    assert runs[0].guarantee == runs[1].guarantee > 0.4


def test_thresholds_are_refused_with_advice():
    """A threshold is a question of yes or no; the value is what is learned."""
    for asked in ('Pmaxmin>=0.4 [ F "goal" ]', parse_property('Pmaxmin>=0.4 [ F "goal" ]')):
        with pytest.raises(UnsupportedError, match="StopWhen"):
            learn(bernoulli(0.5), asked, length=1, stop=StopWhen(10))


def test_time_is_kept_and_progress_reported():
    """A run ends with its time, whatever it is doing, and tells about it from the start."""
    told = []
    model, spec = domain("drone", instance="learning"), domain_spec("drone")
    run = learn(model, spec, stop=StopWhen(10**7, seconds=1.0), length=50, progress=told.append)
    assert run.stopped == "time is up"
    assert 0.0 <= run.guarantee <= run.history[-1].optimistic
    assert told[0].seconds < run.history[0].seconds
    assert told[-1].point == run.history[-1]


def test_a_saved_run_has_what_its_guarantee_rests_on(tmp_path):
    """The sets of the solved model are the intersection over the looks; its bound is reported."""
    file = tmp_path / "run.rfmdp"
    learn(distinct_factored(2), REACH, length=3, stop=StopWhen(2000), output=file)
    run = load(file)
    sets = run.model.marginals
    store = SetStore(Mixture(), sets.outcome_ptr, run.ledger.delta)
    for counts in run.looks:
        store.refresh(counts)
    assert np.array_equal(store.marginals().lower, sets.lower)
    assert np.array_equal(store.marginals().upper, sets.upper)
    assert run.solution.at_initial().lower == run.guarantee
    assert np.array_equal(run.looks[-1], run.counts)
    assert run.settings["confidence"] == {"kind": "mixture"}


def test_recorded_transitions_are_a_source():
    """Counts handed over give the guarantee of the counts that were drawn."""
    coin = "mdp module m x:[0..2]; [go] x=0 -> 0.6:(x'=1) + 0.4:(x'=2); [go] x>0 -> true; endmodule"
    model, goal = parse_prism(coin), "Pmaxmin=? [ F x=1 ]"
    data = table_of(model, record(model, None, steps=3, trajectories=500, seed=4))
    log = read_log(model, data, selection="none")
    run = learn(log, goal)
    assert run.stopped == "all data used"
    assert math.isnan(run.history[-1].performance)
    assert run.guarantee <= solve(model, goal).at_initial().lower
    drawn = learn(
        model, goal, exploration=UniformRandom(), length=3, seed=4,
        stop=StopWhen(500), points=AtTrajectories((500,)),
    )  # fmt: skip
    assert np.array_equal(run.counts, drawn.counts)
    assert run.guarantee == drawn.guarantee


def test_a_saved_run_names_its_property_and_system(tmp_path):
    """The statement, the explanation and the file speak of what was asked, in its own words."""
    text = "mdp module m x:[0..1]; [go] x=0 -> 0.9:(x'=1) + 0.1:true; [end] x=1 -> true; endmodule"
    file = tmp_path / "run.rfmdp"
    asked = "Pmaxmin=? [ F<=4 (x>0) ]"
    learn(parse_prism(text), asked, stop=StopWhen(50), length=4, output=file, name="a press")
    run = load(file)
    assert run.statement().startswith(f"Learned: {asked} of a press, 2 states and 2 choices.")
    assert explain(run.solution, 0).property == asked


def test_a_goal_must_not_hide_probabilities():
    """What is not proven yet would pass for false, and its negation for true."""
    coin = parse_prism(
        "dtmc module m x:[0..2]; [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2); [] x>0 -> true; endmodule"
    )
    goal = "Pmaxmin=? [ F<=1 (x=0 & !P>=0.4 [ X x=1 ]) ]"
    assert solve(coin, goal).at_initial().upper == 0.0
    with pytest.raises(UnsupportedError, match="must not depend on probabilities"):
        learn(coin, goal, stop=StopWhen(trajectories=200), length=2)


def test_a_true_value_that_was_not_found_in_time_is_unknown(monkeypatch):
    """It used to be where the sweeps were when the time was over."""
    cut = SimpleNamespace(status=Status.TIME_LIMIT, value=np.zeros(3))
    monkeypatch.setattr("rfmdp.learning.evaluation.evaluate", lambda *_, **__: cut)
    run = learn(bernoulli(0.9), REACH, length=3, stop=StopWhen(200))
    assert run.guarantee > 0.0
    assert math.isnan(run.history[-1].performance)
