"""Limits end the work wherever it is, and leave bounds that hold."""

import numpy as np
import pytest

from narrow import require_narrow
from rfmdp.inner.protocol import OneSided
from rfmdp.inner.solvers import Exact, IntervalArithmetic
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Cumulative, Discounted, Globally, Reach, Spec, Total, Until
from rfmdp.outer import plain, task
from rfmdp.outer.certify import Certifier
from rfmdp.outer.solution import Status
from rfmdp.outer.task import Limits, Measure
from rfmdp.sets.families import Singleton
from rfmdp.solving import evaluate, solve

from .test_laws import COST, REACH, walk

TASKS = {
    "reach": REACH,
    "cost": COST,
    "total": Spec(Total("cost"), MAX, MIN),
    "discounted": Spec(Discounted(0.99, "cost"), MIN, MAX),
    "steps": Spec(Cumulative(60, "cost"), MAX, MIN),
    "late": Spec(Until(np.ones(40, bool), "goal", None, 5), MAX, MIN),
}


def line(size, radius):
    """Return a line with one factor, whose ends are left for good: rows of one box each."""
    slow, fast = Singleton([0.5, 0.5]), Singleton([0.48, 0.52])
    rows = [[([0], [s - 1, s + 1]), ([1], [s - 1, s + 1])] for s in range(1, size - 1)]
    rows = [[([], [0])], *rows, [([], [size - 1])]]
    ends = np.isin(np.arange(size), (0, size - 1))
    cost = Rewards(np.where(ends, 0.0, 1.0), np.zeros(2 * size - 2))
    model = FactoredMDP.from_rows(
        rows, [slow, fast], initial=size // 2, labels={"ends": ends}, rewards={"cost": cost}
    )
    return model.with_radius(radius) if radius else model


class Watch:
    """A clock that goes on by one second whenever somebody looks at it."""

    def __init__(self) -> None:
        self.now = 0

    def monotonic(self) -> float:
        """Return the seconds so far."""
        self.now += 1
        return float(self.now)


@pytest.mark.parametrize("name", TASKS)
def test_work_ends_soon_after_the_time(name, monkeypatch):
    """Whatever the phase, only a last proof or two look at the clock after the end."""
    whole = require_narrow(solve(walk(size=40), TASKS[name]))
    for seconds in (1, 3, 6, 12):
        watch = Watch()
        monkeypatch.setattr(task, "time", watch)
        found = solve(walk(size=40), TASKS[name], limits=Limits(seconds=seconds))
        assert watch.now <= seconds + 8
        assert found.status in (Status.TIME_LIMIT, Status.CERTIFIED)
        assert found.status is Status.TIME_LIMIT or require_narrow(found)
        assert np.all(found.lower <= whole.upper)
        assert np.all(found.upper >= whole.lower)


@pytest.mark.parametrize("name", TASKS)
def test_interrupts_anywhere_leave_proven_bounds(name):
    """Ctrl-C in any sweep: whatever was proven is returned, with its policy."""
    whole = require_narrow(solve(walk(size=40), TASKS[name]))
    for last in range(1, 12, 2):
        stopped = []

        def stop(phase, sweeps, residual, last=last, stopped=stopped):
            if sweeps >= last:
                stopped.append(sweeps)
                raise KeyboardInterrupt

        found = solve(walk(size=40), TASKS[name], limits=Limits(progress=stop))
        assert stopped or last > 1
        if found.status is not Status.INTERRUPTED:  # a last proof may close the bounds
            assert found.status is Status.CERTIFIED
            require_narrow(found)
        else:
            assert stopped
        assert np.all(found.lower <= whole.upper)
        assert np.all(found.upper >= whole.lower)


def test_bounds_after_a_few_sweeps_are_worth_having():
    """A guess that has not settled is proven to the residual that it has."""
    whole = solve(walk(size=40), COST).at_initial()
    widths = []
    for sweeps in (2, 4, 8):
        found = solve(walk(size=40), COST, limits=Limits(sweeps=sweeps, precision=1e-9))
        widths.append(found.at_initial().upper - whole.lower)
    assert widths[-1] < 1e-3 * whole.upper
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("radius", [0.0, 0.005, 0.01])
def test_a_limit_in_compiled_sweeps_leaves_a_finite_bound(radius, monkeypatch):
    """Costs of one line, to and fro: coarse bounds are proven when most of the time is over.

    Found with limits below the time to settle: the upper bound was infinite up to the end.
    """
    model = line(size=200, radius=radius)
    monkeypatch.setattr(plain, "BUDGET", 10_000)  # entries between two looks at the clock
    monkeypatch.setattr(plain, "DIRECT", 0)  # nothing is eliminated: sweeps alone
    watch = Watch()
    monkeypatch.setattr(task, "time", watch)
    whole = solve(model, COST).require_certified().at_initial()
    needed = watch.now
    assert needed > 50
    for share in (0.2, 0.5, 0.9):
        watch.now = 0
        limits = Limits(seconds=share * needed)
        result = solve(model, COST, limits=limits)
        bounds = result.at_initial()
        assert watch.now <= share * needed + 8
        assert bounds.lower <= whole.upper
        assert whole.lower <= bounds.upper < np.inf
        kept = evaluate(model, result.policy, COST).at_initial()
        assert kept.lower <= bounds.upper


def test_precision_is_relative_or_absolute():
    """A rare event is resolved relatively by default; absolutely it is closed at once."""
    rare = Spec(Reach("goal"), MIN, MIN)
    model = walk(size=30)
    relative = solve(model, rare).require_certified()
    where = int(model.initial[0])
    assert relative.upper[where] - relative.lower[where] <= 1e-6 * relative.upper[where]
    limits = Limits(precision=0.1, measure=Measure.ABSOLUTE)
    absolute = solve(model, rare, limits=limits).require_certified()
    assert absolute.upper[where] - absolute.lower[where] <= 0.1


@pytest.mark.parametrize("inner", [Exact(), OneSided(Exact()), IntervalArithmetic()], ids=repr)
@pytest.mark.parametrize("failures", [1, 2])
def test_a_proof_that_fails_is_tried_again(inner, failures, monkeypatch):
    """The precision says when to stop trying; that nothing is proven yet is no reason.

    Found with one side only: an upper bound that was still infinite counted as close to a value,
    and a coarser precision was answered worse than a finer one.
    """
    calls = []

    def bound(certifier, value, choice, side, lead=None):
        if side > 0.0:
            calls.append(side)
        if len(calls) <= failures:
            return None
        return original(certifier, value, choice, side, lead)

    original = Certifier.bound
    model = walk(size=12)
    whole = solve(model, COST, inner=inner).at_initial()
    assert whole.upper < np.inf
    monkeypatch.setattr(Certifier, "bound", bound)
    for precision in (1e-2, 1e-4, 1e-6):
        calls.clear()
        result = solve(model, COST, inner=inner, limits=Limits(precision=precision)).at_initial()
        assert whole.lower <= result.upper <= (1.0 + precision) * whole.upper


@pytest.mark.parametrize("measure", Measure)
@pytest.mark.parametrize("precision", [1e-6, 1e-9, 1e-12, 1e-15])
def test_a_certified_width_is_within_the_precision_that_is_said(precision, measure):
    """Where the floor of the arithmetic counts as closed, the solution says what is left of it."""
    model = walk(size=30)
    for spec in (REACH, COST, Spec(Reach("goal"), MIN, MIN), Spec(Globally("init"), MAX, MIN)):
        limits = Limits(precision=precision, measure=measure)
        result = solve(model, spec, limits=limits)
        bounds = result.at_initial()
        size = bounds.upper if measure is Measure.RELATIVE else 1.0
        if result.status is Status.CERTIFIED or precision == 1e-6:
            assert bounds.width <= result.precision * size
        assert result.precision >= precision
        assert result.precision == precision or result.status is Status.CERTIFIED


def test_seconds_by_phase():
    """Every phase counts its own time, and together they are the whole."""
    found = solve(walk(size=40), COST)
    assert set(found.stats.seconds) == {"prepare", "graph", "solve", "certify"}
    assert min(found.stats.seconds.values()) > 0.0
