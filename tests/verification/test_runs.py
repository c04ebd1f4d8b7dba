"""Learning runs are checked from counts to guarantee; what was altered is noticed."""

import copy
import json

import numpy as np
import pytest

from learning.tiny import COST, REACH, AtTrajectories, distinct_factored, loop_to_goal, two_arms
from rfmdp.learning.confidence import ClopperPearson, Mixture, Weissman
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import METHODS, StopWhen
from rfmdp.learning.run import run_to_record
from rfmdp.sets.families import Interval, Singleton
from rfmdp.sets.marginals import Marginals
from rfmdp.sources.source import Simulated
from rfmdp.verification.solution import verdict_of

SETS = [Mixture(), ClopperPearson(), Weissman()]


def record(model, spec=REACH, **more):
    """Return header and arrays of a short run."""
    stop = StopWhen(trajectories=400)
    points = AtTrajectories((100, 400))
    run = learn(model, spec, **{"length": 6, "points": points, "stop": stop, "beta": 0.1, **more})
    _, header, arrays = run_to_record(run)
    return json.loads(json.dumps(header)), {k: np.array(a) for k, a in arrays.items()}


def judge(header, arrays):
    """Return the verdict about a run, as if its file were signed anew."""
    return verdict_of("learning run", header, arrays)


@pytest.mark.parametrize("confidence", SETS, ids=repr)
def test_genuine_runs_pass_and_narrower_sets_fail(confidence):
    """All confidence sets; half the error probability or fewer samples give other sets."""
    header, arrays = record(distinct_factored(3), confidence=confidence)
    assert judge(header, arrays).valid, str(judge(header, arrays))
    fewer = {**arrays, "ledger/delta": arrays["ledger/delta"] * 0.5}
    assert "sets from counts: marginal" in str(judge(header, fewer))
    looks = arrays["looks"].copy()
    looks[:, : looks.shape[1] // 2] //= 2
    assert "sets from counts: marginal" in str(judge(header, {**arrays, "looks": looks}))


def altered(header, arrays, change):
    """Return a run that was changed in place."""
    header, arrays = copy.deepcopy(header), {k: a.copy() for k, a in arrays.items()}
    change(header, arrays)
    return header, arrays


def drop(*words):
    """Return a change that leaves out assumptions by their words."""

    def change(header, arrays):
        header["assumptions"] = [a for a in header["assumptions"] if a["kind"] not in words]

    return change


CHANGES = {
    "beta": lambda h, a: h["settings"].update(beta=0.01),
    "events": lambda h, a: a["ledger/events"].fill(0),
    "delta": lambda h, a: a["ledger/delta"].__imul__(2.0),
    "shares": lambda h, a: a["ledger/shares"].fill(0.5),
    "guarantee": lambda h, a: h["history"][-1].update(guarantee=0.999),
    "optimistic": lambda h, a: h["history"][-1].update(optimistic=0.0),
    "agent": lambda h, a: h.update(agent="MIN"),
    "policy": lambda h, a: a["policy"].__iadd__(1),
    "counts": lambda h, a: a["counts"].fill(0),
    "bound": lambda h, a: a["solution/lower"].__setitem__(0, 0.999),
    "set": lambda h, a: a["solution/model.marginals.lower"].__setitem__(0, 0.5),
    "alarm": lambda h, a: h.update(alarms=["the guarantee lies beyond the optimistic bound"]),
    "validity": lambda h, a: h.update(validity="SINGLE_LOOK"),
    "draws": drop("draws"),
    "product": drop("product"),
    "structure": drop("structure", "rewards"),
    "ledger": drop("ledger"),
    "looks": lambda h, a: a["looks"].__setitem__(slice(None), a["looks"][::-1].copy()),
    "settings": lambda h, a: h["settings"].pop("confidence"),
    "no history": lambda h, a: h.update(history=[]),
    "floors": lambda h, a: a["floors"].fill(0.1),
    "no floors": lambda h, a: a.pop("floors"),
}


@pytest.fixture(scope="module")
def genuine():
    """Return a run that passes, not to be changed in place."""
    run = record(two_arms(0.3, 0.6))
    assert judge(*run).valid
    return run


@pytest.mark.parametrize("name", CHANGES)
def test_altered_runs_fail(name, genuine):
    """One part of the chain from counts to guarantee does not fit the others."""
    assert not judge(*altered(*genuine, CHANGES[name])).valid


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("confidence", {"kind": "oracle"}),
        ("confidence", {"kind": "__import__('os').system('true')"}),
        ("rewards", {"kind": "guessed"}),
        ("source", {"kind": "hearsay"}),
    ],
)
def test_what_is_not_known_is_not_valid(name, change, genuine):
    """It is said to be not checked."""
    verdict = judge(*altered(*genuine, lambda h, a: h["settings"].update({name: change})))
    assert not verdict.valid
    assert "not checked here" in str(verdict)


def test_other_methods_and_objectives():
    """Costs, flat rows and ties are checked alike."""
    assert judge(*record(loop_to_goal(0.4), COST)).valid
    assert judge(*record(distinct_factored(3), method=METHODS["paper-flat"])).valid
    assert judge(*record(distinct_factored(3), method=METHODS["tied"])).valid


def test_floors_are_an_assumption_that_is_named():
    """A least probability narrows the sets, on both sides; without its sentence it does not."""
    header, arrays = record(two_arms(0.3, 0.6), p_min=0.25)
    assert judge(header, arrays).valid, str(judge(header, arrays))
    assert not judge(*altered(header, arrays, drop("declared-floor"))).valid
    assert "sets from counts: marginal" in str(
        judge(*altered(header, arrays, lambda h, a: a["floors"].fill(0.0)))
    )
    for floor in (0.26, 0.0, -1.0, 1.5, np.nan, "0.25", None, True):
        assert not judge(
            *altered(header, arrays, lambda h, a, x=floor: h["settings"].update(p_min=x))
        ).valid
    for change in (0.26, -1.0, np.nan, np.inf):
        assert not judge(*altered(header, arrays, lambda h, a, x=change: a["floors"].fill(x))).valid
    whole = record(distinct_factored(3), p_min=0.05, method=METHODS["paper-flat"])
    assert judge(*whole).valid
    assert (whole[1]["floors"] < 0.05).any()


def test_prior_knowledge_is_an_assumption_that_is_named():
    """Declared sets narrow the learned ones; without their sentence they do not."""
    truth = two_arms(0.3, 0.6)
    boxes = [Interval([0.2, 0.6], [0.4, 0.8]), Interval([0.0, 0.0], [1.0, 1.0])]
    known = truth.with_marginals(Marginals.from_sets(boxes))
    header, arrays = record(Simulated(truth, known))
    assert judge(header, arrays).valid, str(judge(header, arrays))
    assert not judge(*altered(header, arrays, drop("prior"))).valid
    wider = altered(header, arrays, lambda h, a: a["prior_lower"].fill(0.0))
    assert "sets from counts: marginal" in str(judge(*wider))
    for name, value in (("prior_upper", 2.0), ("prior_lower", np.nan)):
        assert not judge(*altered(header, arrays, lambda h, a, n=name, x=value: a[n].fill(x))).valid
    hidden = altered(header, arrays, lambda h, a: h["settings"].update(prior=None))
    assert not judge(*hidden).valid
    points = [Singleton([0.3, 0.7]), Interval([0.0, 0.0], [1.0, 1.0])]
    exact = record(Simulated(truth, truth.with_marginals(Marginals.from_sets(points))))
    assert judge(*exact).valid, str(judge(*exact))


def test_bounds_do_not_prove_each_other(genuine):
    """A lower bound that only follows from an upper one that follows from it is no bound."""

    def narrowed(header, arrays):
        lower, upper = (arrays[f"solution/model.marginals.{n}"] for n in ("lower", "upper"))
        lower[:2] = upper[:2] = arrays["solution/model.marginals.nominal"][:2]
        lower[0], upper[1] = lower[0] - 1e-6, upper[1] + 1e-6

    assert "sets from counts: marginal" in str(judge(*altered(*genuine, narrowed)))
