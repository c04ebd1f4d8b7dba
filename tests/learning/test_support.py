"""Unknown supports: the missing-mass bound and the floor."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rfmdp.errors import ModelError
from rfmdp.learning.confidence import SUPPORT, ClopperPearson, Mixture
from rfmdp.learning.support import (
    DeclaredSupport,
    DiscoveredOutcomes,
    SparseSupport,
    discovery_delta,
    missing_mass,
    samples_needed,
)
from rfmdp.sets.boxes import tighten


def test_reference_value():
    """Printed digits of the reference value."""
    assert missing_mass(3, 1000, 1e-7) == pytest.approx(0.0184310344771, abs=6e-14)


def test_nothing_seen_nothing_known():
    """Before the first sample, and right after a discovery, everything may be missing."""
    assert_allclose(missing_mass([0, 1, 4], [0, 0, 0], 0.1), 1.0)


@pytest.mark.parametrize("unseen", [0.3, 0.05, 0.01])
def test_missing_mass_is_valid_at_all_times(unseen):
    """Exact: one frequent outcome and one rare one; failure means waiting too long for it."""
    delta = 0.1
    waits = np.arange(1, 2000)
    bound = missing_mass(1, waits, delta)
    fails = np.flatnonzero(bound < unseen)
    first = waits[fails[0]]
    # the rare outcome comes first, or the wait for it is longer than `first`; by symmetry the
    # frequent one may be the unseen one, after fewer samples
    rare_missing = (1 - unseen) * (1 - unseen) ** first
    rest = waits[np.flatnonzero(bound < 1 - unseen)[0]]
    assert rare_missing + unseen * unseen**rest < delta


def test_missing_mass_simulated():
    """Geometric outcomes: the bound fails at some time in at most delta of the runs."""
    rng = np.random.default_rng(1)
    delta, runs, length, failed = 0.2, 300, 300, 0
    for _ in range(runs):
        draws = rng.geometric(0.5, size=length)
        fresh = np.zeros(length, dtype=bool)
        fresh[np.unique(draws, return_index=True)[1]] = True
        time = np.arange(length)
        since = time - np.maximum.accumulate(np.where(fresh, time, 0))
        missing = 1 - np.cumsum(np.where(fresh, 0.5**draws, 0.0))
        failed += np.any(missing_mass(np.cumsum(fresh), since, delta) < missing - 1e-12)
    assert failed <= delta * runs


def test_floor_completes_the_support():
    """Needs ln(1/delta_r) / -ln(1 - p_min) samples without a new outcome."""
    needed = float(samples_needed(3, 1e-6, 0.05))
    assert needed == np.ceil(np.log(1e-6 / 12) / np.log(0.95))
    assert missing_mass(3, needed - 1, 1e-6, 0.05) == missing_mass(3, needed - 1, 1e-6) >= 0.05
    assert missing_mass(3, needed, 1e-6, 0.05) == 0.0
    assert missing_mass(0, 0, 1e-6, 0.05) == 1.0
    assert "0.05" in " ".join(SparseSupport(0.05).assumptions)


def test_seen_outcomes_share_their_delta():
    """Ranks 1, 2, ... cost delta together, and only sequences may be used."""
    ranks = np.arange(1, 1000)
    assert discovery_delta(0.1, ranks).sum() <= 0.1
    ptr, counts, first = np.array([0, 3]), np.array([41, 31, 28]), np.array([1, 10, 20])
    found = DiscoveredOutcomes(Mixture(), SparseSupport()).discovered(
        ptr, counts, first, np.array([0.2]), np.zeros(1)
    )
    expected = Mixture().interval([40, 30, 27], [99, 90, 80], 0.1 / np.array([2, 6, 12]))
    assert_allclose([found.lower, found.upper], tighten(ptr, *expected))
    with pytest.raises(ModelError, match="anytime"):
        DiscoveredOutcomes(ClopperPearson(), SparseSupport())


@pytest.mark.parametrize("support", [DeclaredSupport(), SparseSupport(), SparseSupport(0.1)])
def test_every_support_says_what_it_assumes(support):
    """Assumptions are there to be printed."""
    assert support.assumptions


def test_bad_input_is_named():
    """Ranks and floors are checked."""
    with pytest.raises(ModelError, match="start at 1"):
        discovery_delta(0.1, 0)
    with pytest.raises(ModelError, match="p_min"):
        SparseSupport(1.5)


def test_few_of_the_listed_outcomes_happen():
    """Sets hold the truth, over seeds; with a floor, what never happened becomes impossible."""
    truth = np.array([0.0, 0.7, 0.0, 0.0, 0.3, 0.0, 0.0, 0.0])
    ptr, delta = np.array([0, 8]), np.array([0.1])
    misses = 0
    for seed in range(200):
        draws = np.random.default_rng(seed).choice(8, size=60, p=truth)
        counts = np.bincount(draws, minlength=8)
        first = np.zeros(8, dtype=np.int64)
        for outcome in np.unique(draws):
            first[outcome] = int(np.argmax(draws == outcome)) + 1
        sets = DiscoveredOutcomes(Mixture(), SparseSupport()).discovered(
            ptr, counts, first, delta, np.zeros(1)
        )
        floored = DiscoveredOutcomes(Mixture(), SparseSupport(0.2)).discovered(
            ptr, counts, first, delta, np.full(1, 0.2)
        )
        misses += bool(np.any((truth < sets.lower) | (truth > sets.upper)))
        misses += bool(np.any((truth < floored.lower) | (truth > floored.upper)))
        assert floored.upper[truth == 0.0].max() == 0.0 < sets.upper[truth == 0.0].min()
    assert misses <= 20
    with pytest.raises(ModelError, match=r"SparseSupport: p_min must lie in \[0, 1\)"):
        SparseSupport(1.0)
    assert SUPPORT in DiscoveredOutcomes(Mixture(), SparseSupport()).assumptions
