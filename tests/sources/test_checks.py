"""Checks of assumptions: e-values by the book, alarms where they belong, and hardly elsewhere."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import betaln

import rfmdp as rf
from learning.tiny import identified
from rfmdp.sources.checks import (
    INDEPENDENCE,
    MARKOV,
    SHARING,
    SPREADS,
    STATIONARITY,
    Evidence,
    log_e_values,
)
from rfmdp.sources.log.source import read_log, table_of
from rfmdp.sources.trajectories import record

from .logs import machines

COIN = rf.Singleton([0.5, 0.5])


@pytest.fixture(scope="module")
def coins():
    """Return two coins that are thrown together in two states; the pair is the next state."""
    rows = [([0, 1], [0, 1, 2, 3])]
    return rf.FactoredMDP.from_rows([rows] * 4, [COIN, COIN])


def log_martingale(p, contexts):
    """Return ln M(p), by its definition; contexts are pairs (x, n)."""
    total = sum(x for x, _ in contexts)
    rest = sum(n - x for x, n in contexts)
    spread = [
        sum(
            betaln(k * p + x, k * (1 - p) + n - x) - betaln(k * p, k * (1 - p)) for x, n in contexts
        )
        for k in SPREADS
    ]
    null = total * math.log(p) + rest * math.log1p(-p)
    return np.logaddexp.reduce(spread) - math.log(len(SPREADS)) - null


def least_martingale(contexts):
    """Return the least ln M(p) of all p."""
    if sum(x for x, _ in contexts) in (0, sum(n for _, n in contexts)):
        return 0.0
    words = {"bounds": (1e-9, 1.0 - 1e-9), "method": "bounded", "options": {"xatol": 1e-12}}
    return float(minimize_scalar(lambda p: log_martingale(p, contexts), **words).fun)


def test_e_values_by_the_book():
    """Never above the least martingale, and close to it where there is evidence."""
    rng = np.random.default_rng(0)
    cases = []
    for _ in range(150):
        size = int(rng.integers(2, 6))
        draws = rng.integers(1, 3000, size=size)
        chance = np.clip(rng.beta(2, 2) + rng.normal(0, rng.choice([0, 0.05, 0.3]), size), 0, 1)
        cases.append(list(zip(rng.binomial(draws, chance).tolist(), draws.tolist(), strict=True)))
    x, n = np.array([cell for case in cases for cell in case], dtype=np.float64).T
    ptr = np.concatenate([[0], np.cumsum([len(case) for case in cases])])
    for case, found in zip(cases, log_e_values(x, n, ptr), strict=True):
        least = least_martingale(case)
        assert found <= least + 1e-7
        assert least <= 1.0 or found > least - 0.1


@pytest.mark.parametrize("p", [0.5, 0.9])
def test_the_mean_of_an_e_value_is_at_most_one(p):
    """Exactly, over all that two contexts with six draws each can show."""
    mean = 0.0
    for x, y in itertools.product(range(7), repeat=2):
        chance = math.prod(math.comb(6, k) * p**k * (1 - p) ** (6 - k) for k in (x, y))
        cells = np.array([x, y], dtype=np.float64), np.array([6.0, 6.0])
        mean += chance * math.exp(log_e_values(*cells, np.array([0, 2]))[0])
    assert mean <= 1.0


def alarms(found):
    return [check.assumption for check in found if check.alarm]


def seen(model, successors, before=-1, followed=True):
    """Return the checks of one throw after the other, all from state 0."""
    evidence = Evidence(model, followed)
    count = len(successors)
    nothing = np.zeros(count, dtype=np.int64)
    evidence.add(nothing, successors, np.full(count, before), nothing)
    return evidence.checks(0.04)


def test_coins_that_fall_alike_are_not_independent(coins):
    """The pair is tested, and named."""
    thrown = np.random.default_rng(0).permutation(np.repeat(np.arange(4), [80, 2, 4, 74]))
    checks = seen(coins, thrown)
    assert alarms(checks) == [INDEPENDENCE]
    assert checks[0].tested == 1
    assert checks[0].worst.startswith("marginal 0 with marginal 1")


def test_halves_that_differ_are_not_stationary(coins):
    """Early heads, late tails, of one coin."""
    rng = np.random.default_rng(0)
    halves = [np.repeat(np.arange(4), n) for n in ([160, 160, 20, 20], [20, 20, 160, 160])]
    checks = seen(coins, np.concatenate([rng.permutation(half) for half in halves]))
    assert alarms(checks) == [STATIONARITY]
    assert checks[1].worst.startswith("marginal 0")


def test_what_was_not_tested_says_so(coins):
    """Where nobody knows what was before."""
    checks = seen(coins, np.tile(np.arange(4), 9), followed=False)
    assert (checks[3].assumption, checks[3].tested) == (MARKOV, 0)
    assert "not tested, nothing to compare" in str(checks[3])
    assert "no alarm" in str(checks[0])


def test_too_many_counts_are_left_out(coins, monkeypatch):
    """The largest tables are not made, and named."""
    from rfmdp.sources import checks as module

    monkeypatch.setattr(module, "MOST", 400)
    evidence = Evidence(coins)
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 4, size=200)
    evidence.add(rows, np.roll(rows, -1), np.roll(rows, 1), np.arange(200))
    found = evidence.checks(0.01)
    assert found[3].omitted == ("the steps since the start",)
    assert "not tested, too many counts: the steps since the start" in str(found[3])
    assert found[1].tested == 2


def test_evidence_is_counted_in_parts(coins):
    """In whatever batches transitions come, and after saving, checks are the same."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 4, size=400)
    columns = rows, np.roll(rows, -1), np.roll(rows, 1), np.arange(400) % 7
    whole, parts = Evidence(coins), Evidence(coins)
    whole.add(*columns)
    for begin in range(0, 400, 50):
        parts.add(*(column[begin : begin + 50] for column in columns))
        again = Evidence(coins)
        for name, array in again.arrays.items():
            array[...] = parts.arrays[name]
        parts = again
    assert parts.checks(0.01) == whole.checks(0.01)


def table(rng, rows, shock=0.0, late=0.0, memory=0.0):
    """Return a log of the two machines.

    `shock` couples them, `late` wears the first out later, `memory` after it was fixed.
    """
    m, content = 0, []
    for i in range(rows):
        fixed = memory if content and content[-1][2] == "fix" else 0.0
        wear = rng.random() < (0.3 if i < rows / 2 else 0.3 + late) + fixed
        broken = wear if rng.random() < shock else rng.random() < 0.2
        action = "fix" if m == 2 else "run"
        after = (0 if rng.random() < 0.9 else 2) if action == "fix" else m + wear
        b = int(content[-1][-1]) if content else 0
        content.append((m, b, action, after, b if action == "fix" else int(broken)))
        m = after
    content = [(*row, 0, t) for t, row in enumerate(content)]
    names = ("m", "b", "action", "next_m", "next_b", "episode", "t")
    return dict(zip(names, zip(*content, strict=True), strict=True))


@pytest.mark.parametrize(
    ("words", "alarmed"),
    [
        ({}, []),
        ({"shock": 0.5}, [INDEPENDENCE]),
        ({"late": 0.3}, [STATIONARITY, MARKOV]),  # late is long after the only start
        ({"memory": 0.5}, [SHARING, MARKOV]),  # a machine is new after it was fixed
    ],
)
def test_alarms_where_they_belong(words, alarmed):
    """Data that contradict assumptions raise their alarms and no other; nothing is claimed then."""
    pytest.importorskip("pyarrow")
    model = machines({})
    rows = table(np.random.default_rng(1), 1500, **words)
    log = read_log(model, rows, selection="none")
    assert alarms(log.check(identified(model).model)) == alarmed
    run = rf.learn(log, 'Pmaxmin=? [ G<=3 !"down" ]')
    assert len(run.alarms) == len(alarmed)
    assert len(run.checks) == 4
    assert ("ALARM" in run.statement()) == bool(alarmed)
    assert ("With probability" in run.statement()) != bool(alarmed)


# 20 and 200 are expected at most; so many have probability below 1e-3
@pytest.mark.parametrize(
    ("logs", "too_many"), [(100, 34), pytest.param(1000, 241, marks=pytest.mark.slow)]
)
def test_false_alarms_are_rare(logs, too_many):
    """Over many logs, at level 0.2, right assumptions raise at most as many alarms as they may."""
    pytest.importorskip("pyarrow")
    model = machines({})
    counted = identified(model).model
    false = 0
    for seed in range(logs):
        rows = table(np.random.default_rng(seed), 60)
        log = read_log(model, rows, selection="none", level=0.2)
        false += any(check.alarm for check in log.check(counted))
    assert false < too_many


def sales(parents, chances=None):
    """Return a stock that sells by the demand, beside a counter that does not matter."""
    domains = {"stock": (0, 1), "demand": (0, 1), "counter": (0, 511)}
    move = rf.unknown_move(domains, "stock", parents=parents)
    sets = move.marginals if chances is None else [rf.Singleton([1 - p, p]) for p in chances]
    coin = [rf.Singleton([0.5, 0.5])] if chances else [rf.unknown(2)]
    demand = rf.Move("demand", coin, lambda s, identifier, outcome: {"demand": outcome})
    action = rf.Action(
        "sell", [rf.Move("stock", sets, move.effect, move.identify), demand], None,
        lambda s: {"counter": (s.counter + 1) % 512},
    )  # fmt: skip
    return rf.build(domains, [action], initial={"stock": 0, "demand": 0, "counter": 0})


def test_a_missing_parent_is_named_beside_one_that_does_not_matter():
    """Each undeclared variable has a test of its own: 512 values drown nothing but their own."""
    truth = sales(["stock", "demand"], [0.3, 0.7, 0.2, 0.8])
    data = record(truth, None, 100, 200, seed=1)
    wrong, right = (
        read_log(sales(parents), table_of(truth, data), selection="none")
        for parents in (["stock"], ["stock", "demand"])
    )
    run = rf.learn(wrong, "Pmaxmin=? [ F<=3 stock=1 ]")
    assert any(SHARING in alarm and "by demand" in alarm for alarm in run.alarms)
    assert rf.learn(right, "Pmaxmin=? [ F<=3 stock=1 ]").alarms == ()
