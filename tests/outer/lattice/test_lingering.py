"""Probabilities and rewards to a target of networks in which a play may last for ever."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rfmdp as rf

from .test_lattice import COIN, DIRECTIONS, KINDS, both, same_order, texts

pytestmark = pytest.mark.filterwarnings("ignore:.*no enabled command:rfmdp.errors.PrismWarning")

LIMITS = rf.Limits(precision=1e-6, measure=rf.Measure.ABSOLUTE)

# the agent may walk to and fro between x=0 and x=1, or try its luck once, with 0.3 at best
AGENT_LINGERS = """mdp
module walk
  x : [0..3];
  [go] x=0 -> (x'=1);
  [back] x=1 -> 0.5 : (x'=0) + 0.5 : (x'=1);
  [try] x=0 -> 0.2 : (x'=2) + 0.8 : (x'=3);
  [try] x=1 -> 0.3 : (x'=2) + 0.7 : (x'=3);
endmodule
module weather
  y : [0..2];
  [go] true -> 0.4 : (y'=0) + 0.6 : (y'=2);
  [back] y<2 -> 0.3 : (y'=y+1) + 0.7 : (y'=0);
  [back] y=2 -> true;
endmodule
label "goal" = x=2;"""

OBJECTIVES = st.sampled_from(
    [
        rf.Reach("goal"),
        rf.Until("far", "goal"),
        rf.Until("goal", "far"),
        rf.Globally("goal"),
        rf.Globally("far"),
    ]
)


def solved(model, objective, agent, nature) -> rf.Solution:
    """Return bounds of all states."""
    everywhere = np.ones(model.states, dtype=bool)
    spec = rf.Spec(objective, agent, nature)
    return rf.solve(model, spec, limits=LIMITS, states=everywhere)


@given(texts(), OBJECTIVES, DIRECTIONS, DIRECTIONS, st.sampled_from([0.0, 0.05, 0.3]), KINDS)
def test_bounds_are_those_of_the_written_model(text, objective, agent, nature, radius, kind):
    """Bounds overlap in every state, and are proven again; what claims more is not."""
    lattice, written = both(text, radius, kind)
    ours = solved(lattice, objective, agent, nature)
    theirs = solved(written, objective, agent, nature)
    order = same_order(lattice, written)
    assert np.all(ours.lower[order] <= theirs.upper)
    assert np.all(theirs.lower <= ours.upper[order])
    verdict = rf.verify(ours)
    assert verdict.valid, str(verdict)
    if radius == 0.0 or nature is (rf.MIN if isinstance(objective, rf.Globally) else rf.MAX):
        assert ours.status is rf.Status.CERTIFIED  # only she who hinders may need to empty edges
    if ours.witness is not None:
        for forged in _forged(ours):
            assert not rf.verify(forged).valid


def _forged(solution: rf.Solution) -> list[rf.Solution]:
    """Return claims of more than is true, as far as there is more to claim."""
    lower, upper = solution.witness
    turned = isinstance(solution.spec.objective, rf.Globally)
    claims = []
    for low, high in ((np.minimum(lower, upper - 1e-3), upper - 1e-3), (lower + 1e-3, upper)):
        low, high = np.clip(low, 0.0, 1.0), np.clip(np.maximum(high, low), 0.0, 1.0)
        wide = (solution.upper - solution.lower).max() > 1e-4
        if wide or (np.array_equal(low, lower) and np.array_equal(high, upper)):
            continue
        bounds = (1.0 - high, 1.0 - low) if turned else (low, high)
        claims.append(
            replace(solution, lower=bounds[0], upper=bounds[1], value=bounds[0],
                    witness=(low, high))
        )  # fmt: skip
    return claims


@pytest.mark.parametrize("nature", rf.Direction)
@pytest.mark.parametrize("agent", rf.Direction)
def test_an_agent_who_may_linger(agent, nature):
    """Walking for ever is worth nothing: the best is to try where the chance is best."""
    model = rf.parse_lattice(AGENT_LINGERS).with_radius(0.1)
    solution = rf.solve(model, rf.Spec(rf.Reach("goal"), agent, nature)).require_certified()
    best = 0.3 + 0.1 * nature.sign if agent is rf.MAX else 0.0
    assert solution.at_initial().lower <= best <= solution.at_initial().upper
    assert rf.verify(solution).valid
    walks = np.where(model.state_values(np.arange(model.states))[:, 0] == 1,
                     model.actions.index("back"), model.actions.index("go"))  # fmt: skip
    if agent is rf.MAX:  # a policy that walks for ever does not keep the guarantee
        rule = np.where(solution.lower > 0.1, walks, solution.policy.rows[0])
        assert not rf.verify(replace(solution, policy=rf.Policy(rule[None]))).valid


@pytest.mark.parametrize("agent", rf.Direction)
def test_a_nature_who_may_linger(agent):
    """A coin that may never fall on one side: she who helps does not linger, she who hinders may.

    That she can is not proven here, as it is a question of edges that she can empty.
    """
    model = rf.parse_lattice(COIN + 'label "up" = x=1;').with_radius(0.5)
    helps = rf.solve(model, rf.Spec(rf.Reach("up"), agent, rf.MAX)).require_certified()
    assert helps.at_initial().lower > 1.0 - 1e-6
    hinders = rf.solve(model, rf.Spec(rf.Reach("up"), agent, rf.MIN))
    assert hinders.status is rf.Status.GAP_OPEN
    assert hinders.at_initial() == rf.Bounds(0.0, 1.0)
    assert rf.verify(helps).valid
    assert rf.verify(hinders).valid


def test_bounds_below_zero_prove_nothing():
    """Any constant holds itself up where a play may linger; only from 0 on does that prove one."""
    model = rf.parse_lattice(AGENT_LINGERS)
    solution = rf.solve(model, rf.Spec(rf.Reach("goal"), rf.MAX, rf.MIN))
    upper = np.where(model.label("goal"), solution.upper, -1.0)
    forged = replace(solution, lower=None, upper=upper, value=upper, witness=(upper, upper))
    assert not rf.verify(forged).valid


@pytest.mark.parametrize("stop", range(1, 9))
def test_bounds_hold_after_a_stop(stop):
    """What was proven before is claimed, and proven again."""
    model = rf.parse_lattice(AGENT_LINGERS).with_radius(0.1)
    spec = rf.Spec(rf.Reach("goal"), rf.MAX, rf.MIN)
    solution = rf.solve(model, spec, limits=rf.Limits(sweeps=stop))
    assert solution.at_initial().lower <= 0.2 <= solution.at_initial().upper
    assert rf.verify(solution).valid, str(rf.verify(solution))


@given(texts(), st.sampled_from(["goal", "far"]), DIRECTIONS, DIRECTIONS,
       st.sampled_from([0.0, 0.05, 0.3]), st.integers(0, 1), KINDS)  # fmt: skip
def test_rewards_are_those_of_the_written_model(text, target, agent, nature, radius, least, kind):
    """Bounds overlap in every state, infinite or not, and are proven; what claims more is not."""
    text = re.sub(r"(?<=  true : ).*(?=;)", lambda total: f"max({least}, {total[0]})", text)
    text = re.sub(r"(\[\w+\]) (x0>=\d) : .*;", r"\1 \2 : 2;", text)
    lattice, written = both(text, radius, kind)
    ours = solved(lattice, rf.ReachReward(target), agent, nature)
    theirs = solved(written, rf.ReachReward(target), agent, nature)
    order = same_order(lattice, written)
    assert np.all(ours.lower[order] <= theirs.upper)
    assert np.all(theirs.lower <= ours.upper[order])
    verdict = rf.verify(ours)
    assert verdict.valid, str(verdict)
    if ours.witness is None:
        return
    lower, upper = ours.witness
    finite = (ours.upper < ours.lower + 1e-4) & ~lattice.label(target)
    claims = [
        (np.where(finite, np.minimum(lower, upper - 1e-3), lower), upper - 1e-3 * finite),
        (lower + 1e-3 * finite, np.where(finite, np.maximum(upper, lower + 1e-3), upper)),
    ]
    for low, high in claims if finite.any() else []:
        bounds = np.where(np.isinf(ours.lower), np.inf, low)
        forged = replace(ours, lower=bounds, upper=high, value=bounds, witness=(low, high))
        assert not rf.verify(forged).valid
    everywhere = np.where(np.isinf(theirs.upper[np.argsort(order)]), ours.lower, np.inf)
    if np.isinf(everywhere[finite]).any():
        upper = np.full(len(upper), np.inf)
        forged = replace(ours, lower=everywhere, upper=upper, value=everywhere,
                         witness=(lower, upper), status=rf.Status.GAP_OPEN)  # fmt: skip
        assert not rf.verify(forged).valid


def test_rewards_below_zero_are_not_bounded():
    """Where plays may last for ever, steps from 0 prove nothing of them: open, not refused."""
    model = rf.parse_lattice(COIN + 'label "up" = x=1; rewards "r" x=0 : -1; endrewards')
    model = model.with_radius(0.5)
    solution = rf.solve(model, rf.Spec(rf.ReachReward("up"), rf.MAX, rf.MIN))
    assert solution.status is rf.Status.GAP_OPEN
    assert solution.at_initial() == rf.Bounds(-np.inf, np.inf)
    assert rf.verify(solution).valid


@pytest.mark.parametrize("nature", rf.Direction)
@pytest.mark.parametrize("agent", rf.Direction)
def test_rewards_of_an_agent_who_may_linger(agent, nature):
    """Walking for ever pays infinitely much; who minimises tries until it works."""
    text = AGENT_LINGERS.replace("0.7 : (x'=3)", "0.7 : true").replace("0.8 : (x'=3)", "0.8 : true")
    model = rf.parse_lattice(text + ' rewards "r" true : 1; endrewards').with_radius(0.1)
    spec = rf.Spec(rf.ReachReward("goal"), agent, nature)
    solution = rf.solve(model, spec).require_certified()
    if agent is rf.MAX:
        assert solution.at_initial() == rf.Bounds(np.inf, np.inf)
        hurried = replace(solution, policy=rf.Policy(np.full((1, model.states), 2)))
        assert not rf.verify(hurried).valid
    else:
        chance = 0.3 - 0.1 * nature.sign
        bounds = solution.at(x=1, y=0)
        assert bounds.lower <= 1.0 / chance <= bounds.upper
    assert rf.verify(solution).valid, str(rf.verify(solution))


@pytest.mark.parametrize("stop", range(1, 40, 3))
@pytest.mark.parametrize("agent", rf.Direction)
def test_rewards_hold_after_a_stop(agent, stop):
    """What was proven before is claimed, and proven again."""
    text = AGENT_LINGERS.replace("0.7 : (x'=3)", "0.7 : true")
    model = rf.parse_lattice(text + ' rewards "r" true : 1; endrewards').with_radius(0.1)
    spec = rf.Spec(rf.ReachReward("goal"), agent, rf.MAX)
    solution = rf.solve(model, spec, limits=rf.Limits(sweeps=stop))
    assert rf.verify(solution).valid, str(rf.verify(solution))
