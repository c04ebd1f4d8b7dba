"""Checks of assumptions: e-values by the book, alarms where they belong, and hardly elsewhere."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import rfmdp as rf
from learning.tiny import identified
from rfmdp.sources.checks import INDEPENDENCE, MARKOV, SHARING, STATIONARITY, checks
from rfmdp.sources.log.manifest import Manifest
from rfmdp.sources.log.source import read_log

from .logs import machines

COIN = rf.Singleton([0.5, 0.5])
NOWHERE = np.empty((0, 4), dtype=np.int64)  # nothing is known of what was before


@pytest.fixture(scope="module")
def coins():
    """Return two coins that are thrown together in two states; the pair is the next state."""
    rows = [([0, 1], [0, 1, 2, 3])]
    return rf.FactoredMDP.from_rows([rows] * 4, [COIN, COIN])


def krichevsky_trofimov(counts):
    """Return the probability of a sequence, symbol by symbol."""
    seen, p = [0] * len(counts), 1.0
    for symbol, number in enumerate(counts):
        for _ in range(int(number)):
            p *= (seen[symbol] + 0.5) / (sum(seen) + 0.5 * len(counts))
            seen[symbol] += 1
    return p


def best(counts):
    """Return the largest probability of a sequence."""
    n = sum(counts)
    return math.prod((x / n) ** x for x in counts if x)


def test_e_values_by_the_book(coins):
    """Logarithms are those of ratios that are computed one sample at a time."""
    early = np.array([3, 1, 0, 2])
    late = np.array([0, 2, 5, 1])
    rows, successors = np.zeros(4, np.int64), np.arange(4)
    found = {c.assumption: c for c in checks(coins, rows, successors, early, late, NOWHERE, 0.04)}
    joint = early + late
    first = [joint[:2].sum(), joint[2:].sum()]
    second = [joint[::2].sum(), joint[1::2].sum()]
    ratio = krichevsky_trofimov(joint) / (best(first) * best(second))
    assert found[INDEPENDENCE].tested == 1
    assert found[INDEPENDENCE].log_e_value == pytest.approx(math.log(ratio))
    halves = [[part[:2].sum(), part[2:].sum()] for part in (early, late)]
    others = [[part[::2].sum(), part[1::2].sum()] for part in (early, late)]
    ratios = [
        math.prod(map(krichevsky_trofimov, pair)) / best(whole)
        for pair, whole in ((halves, first), (others, second))
    ]
    assert found[STATIONARITY].log_e_value == pytest.approx(math.log(np.mean(ratios)))
    assert found[STATIONARITY].level == pytest.approx(0.01)


def test_rows_that_share_by_the_book(coins):
    """Two states with the same coin: one distribution each against one for both."""
    rows = np.array([0, 0, 1, 1])
    successors = np.array([0, 3, 0, 3])
    times = np.array([4, 1, 0, 5])
    found = checks(coins, rows, successors, times, 0 * times, NOWHERE, 0.04)[2]
    ratio = krichevsky_trofimov([4, 1]) * krichevsky_trofimov([0, 5]) / best([4, 6])
    assert (found.assumption, found.tested) == (SHARING, 2)
    assert found.log_e_value == pytest.approx(math.log(ratio))


def test_what_was_before_by_the_book(coins):
    """One distribution per context against one for all."""
    rows, successors = np.zeros(4, np.int64), np.array([0, 1, 2, 3])
    contexts = np.array([[4, 0, 1, 0], [0, 0, 5, 0], [0, 0, 0, 0]])
    times = contexts.sum(axis=0)
    found = checks(coins, rows, successors, times, 0 * times, contexts, 0.04)[3]
    first = krichevsky_trofimov([4, 1]) * krichevsky_trofimov([0, 5]) / best([4, 6])
    second = krichevsky_trofimov([5, 0]) * krichevsky_trofimov([5, 0])
    assert (found.assumption, found.tested) == (MARKOV, 2)
    assert found.log_e_value == pytest.approx(math.log((first + second) / 2))


def test_the_mean_under_the_assumption_is_at_most_one(coins):
    """Exactly, over all sequences of four throws of unfair, independent coins."""
    p = np.outer([0.3, 0.7], [0.9, 0.1]).ravel()
    mean = dict.fromkeys((INDEPENDENCE, STATIONARITY), 0.0)
    for sequence in itertools.product(range(4), repeat=4):
        halves = [np.bincount(part, minlength=4) for part in (sequence[:2], sequence[2:])]
        chance = math.prod(p[symbol] for symbol in sequence)
        rows, successors = np.zeros(4, np.int64), np.arange(4)
        for check in checks(coins, rows, successors, *halves, NOWHERE, 0.04)[:2]:
            mean[check.assumption] += chance * math.exp(check.log_e_value)
    assert 0.0 < mean[INDEPENDENCE] <= 1.0
    assert 0.0 < mean[STATIONARITY] <= 1.0


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
    ("words", "alarms"),
    [
        ({}, []),
        ({"shock": 0.5}, [INDEPENDENCE]),
        ({"late": 0.3}, [STATIONARITY]),
        ({"memory": 0.5}, [SHARING, MARKOV]),  # a machine is new after it was fixed
    ],
)
def test_alarms_where_they_belong(words, alarms):
    """Data that contradict assumptions raise their alarms and no other; nothing is claimed then."""
    pytest.importorskip("pyarrow")
    model = machines({})
    rows = table(np.random.default_rng(1), 1500, **words)
    log = read_log(model, rows, manifest=Manifest("none"))
    found = log.check(identified(model).model)
    assert [c.assumption for c in found if c.alarm] == alarms
    run = rf.learn(log, 'Pmaxmin=? [ G<=3 !"down" ]')
    assert len(run.alarms) == len(alarms)
    assert ("ALARM" in run.statement()) == bool(alarms)
    assert ("With probability" in run.statement()) != bool(alarms)


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
        log = read_log(model, rows, manifest=Manifest("none"), level=0.2)
        false += any(check.alarm for check in log.check(counted))
    assert false < too_many
