"""Guarantees from logs: how often they are false, what they cover, what to collect next."""

from __future__ import annotations

import numpy as np
import pytest

import rfmdp as rf
from sources.logs import TRUTH, log_table, machines

pytest.importorskip("pyarrow")
DOWN = 'Pmaxmin=? [ F<=6 "down" ]'
COIN = """mdp module m x : [0..2];
  [toss] x=0 -> {} : (x'=1) + {} : (x'=2);
  [stay] x>0 -> true;
endmodule label "goal" = x=1;"""


def adversary(rng, p, most):
    """Return tosses of a coin up to where they look best: sets that hold at all times allow it."""
    wins = rng.random(most) < p
    n = np.arange(1, most + 1)
    score = (np.cumsum(wins) - p * n) / np.sqrt(n * p * (1 - p))
    return wins[: int(np.argmax(np.where(n >= 5, score, -np.inf))) + 1]


def false_guarantees(seeds, beta, p=0.4, most=400):
    """Return how many of some logs of the adversary gave a guarantee above the truth."""
    model, false = rf.parse_prism(COIN.format("[0,1]", "[0,1]")), 0
    for seed in range(seeds):
        wins = adversary(np.random.default_rng(seed), p, most)
        rows = {"x": np.zeros(len(wins), int), "action": ["toss"] * len(wins),
                "next_x": np.where(wins, 1, 2)}  # fmt: skip
        log = rf.read_log(model, rows, selection="none")
        run = rf.learn(log, 'Pmaxmin=? [ F<=1 "goal" ]', beta=beta)
        false += not run.alarms and run.guarantee > p
    return false


def test_few_guarantees_are_false_however_logs_were_stopped():
    """At beta = 0.2, of 30 logs that stopped when they looked best at most 12 may be wrong."""
    # 6 are expected at most; 13 or more have probability below 4e-3
    assert false_guarantees(30, beta=0.2) < 13


@pytest.mark.slow
def test_many_logs_keep_their_promise():
    """The same with 1000 logs: 200 are expected at most, 241 have probability below 1e-3."""
    assert false_guarantees(1000, beta=0.2) < 241


@pytest.mark.slow
def test_logs_of_two_machines_keep_their_promise():
    """At beta = 0.3, of 400 logs of random choices at most 120 + 28 guarantee too much."""
    truth, structure, false = machines(), machines({}), 0
    for seed in range(400):
        log = rf.read_log(structure, log_table(15, 8, seed), selection="none")
        run = rf.learn(log, DOWN, beta=0.3)
        value = rf.evaluate(truth, run.policy, DOWN).at_initial()
        false += run.guarantee > value.upper
    assert false < 148


def test_a_log_gives_the_guarantee_of_its_counts():
    """No more than the policy is worth."""
    log = rf.read_log(machines({}), log_table(), selection="none")
    run = rf.learn(log, DOWN)
    assert 0.0 < run.guarantee <= rf.evaluate(machines(), run.policy, DOWN).at_initial().upper


def test_what_to_collect_next_is_what_helps():
    """The gain of an identifier is what the guarantee gains if it is known; most first."""
    log = rf.read_log(machines({}), log_table(60, 12), selection="none")
    run = rf.learn(log, DOWN)
    worth = rf.collect_next(run)
    assert [w.gain for w in worth] == sorted((w.gain for w in worth), reverse=True)
    assert worth[0].gain > 0.0
    assert all(0.0 < one.width < 1.0 for one in worth)
    assert sum(one.samples for one in worth) <= run.counts.sum()
    best = next(
        j
        for j in range(len(run.model.marginals))
        if run.model.marginal_name(j) == worth[0].identifier
    )
    sets = [run.model.marginals[i] for i in range(len(run.model.marginals))]
    ptr = run.model.marginals.outcome_ptr
    sets[best] = rf.Singleton(run.model.marginals.nominal[ptr[best] : ptr[best + 1]])
    known = run.model.with_marginals(rf.Marginals.from_sets(sets))
    better = rf.solve(known, run.solution.spec).at_initial().lower
    assert better - run.guarantee == pytest.approx(worth[0].gain, abs=1e-5)


def test_prior_knowledge_and_data():
    """Intervals of the structure are assumed: they narrow what is learned, and are named."""
    told = machines({"wear": "[0.28,1]", "keep": "[0,0.72]"})
    logs = [rf.read_log(m, log_table(60, 12), selection="none") for m in (machines({}), told)]
    runs = [rf.learn(log, DOWN) for log in logs]
    assert runs[1].guarantee > runs[0].guarantee
    assert any("lie in the sets of the model" in line for line in runs[1].assumptions)
    assert TRUTH["wear"] >= 0.28


COST = 'R{"cost"}minmax=? [ C<=4 ]'
WALK = """mdp module m x : [0..1];
  [work] true -> {} : (x'=1) + {} : (x'=0);
  [rest] true -> true;
endmodule rewards "cost" true : 1; endrewards"""


def paid_log(rng, rows, pays, **columns):
    """Return a log of a walk whose rows pay what `pays(x, action)` says."""
    x, lines = 0, []
    for _ in range(rows):
        action = ["work", "rest"][int(rng.integers(2))]
        after = int(rng.random() < 0.5) if action == "work" else x
        lines.append((x, action, after, pays(x, action)))
        x = after
    table = dict(zip(("x", "action", "next_x", "paid"), zip(*lines, strict=True), strict=True))
    model = rf.parse_prism(WALK.format("[0,1]", "[0,1]"))
    return rf.read_log(model, table, selection="none", columns={"reward": "paid", **columns})


def test_rewards_are_learned_from_their_column():
    """They are bounded, and no better than true."""
    rng, span = np.random.default_rng(0), rf.RewardRange(0.0, 1.0)
    loose = paid_log(rng, 4000, lambda x, action: float(rng.random() < 0.25))
    run = rf.learn(loose, COST, rewards=span)
    assert 1.0 < run.guarantee < 2.0
    assert rf.verify(run).valid
    assert any("every reward lies in [0, 1]" in line for line in run.assumptions)


@pytest.mark.parametrize(
    ("pays", "error", "message"),
    [
        (lambda rng: 3.0, rf.ModelError, r"must lie in \[0, 1\]"),
        (lambda rng: None, rf.DataError, "have no number in column 'paid'"),
        (lambda rng: "x", rf.DataError, "have no number in column 'paid'"),
        (lambda rng: np.inf, rf.DataError, "have no number in column 'paid'"),
    ],
)
def test_rewards_that_are_not_as_declared(pays, error, message):
    """Rewards that leave their range or are none are told."""
    rng = np.random.default_rng(0)
    with pytest.raises(error, match=message):
        rf.learn(
            paid_log(rng, 50, lambda x, action: pays(rng)), COST,
            rewards=rf.RewardRange(0.0, 1.0),
        )  # fmt: skip


def test_rewards_need_a_column():
    """Nobody guesses which one it is."""
    log = rf.read_log(machines({}), log_table(5, 5), selection="none")
    with pytest.raises(rf.DataError, match="say which column has them"):
        rf.learn(log, COST, rewards=rf.RewardRange(0.0, 1.0))
