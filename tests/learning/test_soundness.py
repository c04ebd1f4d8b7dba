"""How often guarantees are wrong, by many runs at a large error probability (slow suite)."""

import pytest

from rfmdp.errors import AssumptionAlarm
from rfmdp.learning.confidence import (
    ClopperPearson,
    Mixture,
)
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import Doubling, Optimistic, StopWhen, UniformRandom
from set_twins import contains

from .tiny import REACH, AtTrajectories, bernoulli, distinct_factored, identified

BETA = 0.2
LOOKS = AtTrajectories(tuple(round(4 * 1.12**k) for k in range(42)))
RUNS = 150


def false_guarantees(confidence):
    """Stop as soon as the guarantee exceeds the truth; return the share of runs that do.

    A coin of probability 1/2, 42 looks at up to 400 samples. An alarm (nested sets that became
    empty) is the same failure, noticed.
    """
    failures = 0
    for seed in range(RUNS):
        try:
            run = learn(
                bernoulli(0.5), REACH, confidence=confidence, beta=BETA, seed=seed, length=1,
                points=LOOKS, schedule=Doubling(3.0),
                stop=StopWhen(400, guarantee=0.5 + 1e-9), exploration=UniformRandom(),
            )  # fmt: skip
        except AssumptionAlarm:
            failures += 1
        else:
            failures += run.guarantee > 0.5
    return failures / RUNS


@pytest.mark.slow
def test_stopping_at_a_target_breaks_clopper_pearson():
    """Read at every look and stopped when it suits, the paper's set fails too often."""
    assert false_guarantees(ClopperPearson()) > BETA


@pytest.mark.slow
def test_stopping_at_a_target_does_not_break_anytime_sets():
    """The same rule, with sets that allow it."""
    assert false_guarantees(Mixture()) <= BETA


@pytest.mark.slow
def test_coverage_of_the_true_model():
    """Nested sets hold the whole truth at all looks together in at least 1 - beta of the runs."""
    missed = 0
    for seed in range(RUNS):
        model = distinct_factored(seed % 10)
        truth = identified(model).model.marginals
        try:
            run = learn(
                model, REACH, beta=BETA, seed=seed, length=3, exploration=Optimistic(0.1),
                points=AtTrajectories(tuple(range(20, 401, 20))), stop=StopWhen(400),
                schedule=Doubling(0.5),
            )  # fmt: skip
        except AssumptionAlarm:
            missed += 1
            continue
        ptr = truth.outcome_ptr
        missed += not all(
            contains(uset, truth.nominal[ptr[j] : ptr[j + 1]])
            for j, uset in enumerate(run.model.marginals)
        )
    assert missed / RUNS <= BETA
