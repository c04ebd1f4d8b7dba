"""Bernoulli intervals: reference values, slow twins, laws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import betaln, logsumexp

from rfmdp.errors import ModelError
from rfmdp.learning import confidence

ALL = [confidence.clopper_pearson, confidence.mixture]

# STATISTICS section 9: x, n, delta, then (lower, upper) of CP, MIX to 12 digits
REFERENCE = [
    (0, 50, 1e-6, (0, 0.251865986611), (0, 0.274206829279)),
    (7, 10, 1e-2, (0.264886014713, 0.962992778904), (0.144253938223, 0.995670300774)),
    (300, 1000, 1e-8, (0.221538671774, 0.387335706662), (0.210478817957, 0.400728280862)),
    (99990, 100000, 1e-10, (0.999525697704, 0.999995602313), (0.999462085948, 0.999998215515)),
]


@st.composite
def counts(draw, largest=10_000):
    n = draw(st.integers(1, largest))
    return draw(st.integers(0, n)), n


deltas = st.floats(-12, -0.05).map(lambda e: 10.0**e)


def mixture_twin(x, n, delta):
    """Lower end by 200 bisections of the formula as printed."""
    kappa, weight = np.array(confidence.MIXTURE_SIZES), np.array(confidence.MIXTURE_WEIGHTS)

    def log_martingale(p):
        ratio = betaln(kappa * p + x, kappa * (1 - p) + n - x) - betaln(kappa * p, kappa * (1 - p))
        return logsumexp(ratio, b=weight) - x * np.log(p) - (n - x) * np.log1p(-p)

    low, high = 1e-300, x / n
    for _ in range(200):
        middle = 0.5 * (low + high)
        if log_martingale(middle) >= -np.log(delta):
            low = middle
        else:
            high = middle
    return low


@pytest.mark.parametrize(("x", "n", "delta", "cp", "mix"), REFERENCE)
def test_reference_values(x, n, delta, cp, mix):
    """All printed digits of the reference table come out."""
    assert confidence.clopper_pearson(x, n, delta) == pytest.approx(cp, abs=6e-13)
    assert confidence.mixture(x, n, delta) == pytest.approx(mix, abs=6e-13)


@given(counts(), deltas)
def test_mixture_equals_the_printed_formula(pair, delta):
    """The compiled search finds the same end as plain bisection, never inside it."""
    x, n = pair
    low = float(confidence.mixture(x, n, delta)[0])
    if x <= 1:
        assert low == 0.0
    elif x < n:
        twin = mixture_twin(x, n, delta)
        assert low == pytest.approx(twin, rel=1e-6, abs=1e-12)
        assert low <= twin * (1 + 1e-7)


@pytest.mark.parametrize(
    ("x", "n"), [(2, 10), (7, 10), (300, 1000), (9, 50_000), (60_000, 200_000)]
)
@pytest.mark.parametrize("delta", [0.1, 1e-8])
def test_mixture_end_is_certainly_rejected(x, n, delta):
    """Martingale terms summed one by one, without cancellation, reach 1/delta at the end."""
    p = float(confidence.mixture(x, n, delta)[0])

    def rising(a, y):
        return math.fsum(np.log1p(np.arange(y) / a))

    terms = [
        rising(kappa * p, x) + rising(kappa * (1 - p), n - x) - rising(kappa, n)
        for kappa in confidence.MIXTURE_SIZES
    ]
    evidence = logsumexp(terms, b=confidence.MIXTURE_WEIGHTS)
    assert -1e-13 <= evidence - np.log(1 / delta) <= 1e-8


@given(counts(60), deltas)
def test_clopper_pearson_keeps_its_promise_exactly(pair, delta):
    """P(X >= x) <= delta/2 at the lower end, in exact fractions, and nearly equal."""
    x, n = pair
    low = Fraction(float(confidence.clopper_pearson(x, n, delta)[0]))
    tail = sum(math.comb(n, k) * low**k * (1 - low) ** (n - k) for k in range(x, n + 1))
    if x == 0:
        assert low == 0
    else:
        half = Fraction(delta) / 2
        assert half * (1 - Fraction(1, 10**9)) <= tail <= half


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
@given(counts(), deltas)
def test_mirrored_counts_mirror_the_interval(function, pair, delta):
    """Heads and tails are one event."""
    x, n = pair
    low, high = map(float, function(x, n, delta))
    mirrored_low, mirrored_high = map(float, function(n - x, n, delta))
    assert 0 <= low <= x / n <= high <= 1
    assert 1 - mirrored_high == pytest.approx(low, abs=5e-16)
    assert 1 - mirrored_low == pytest.approx(high, abs=5e-16)


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_ends_grow_with_successes(function):
    """The crossing tests search the acceptance region by this."""
    n = 300
    low, high = function(np.arange(n + 1), n, 1e-3)
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) >= 0)


@given(counts(), deltas)
def test_anytime_intervals_are_wider(pair, delta):
    """Soundness at every n costs width, from ten samples on, if both outcomes were seen."""
    x, n = pair
    if n >= 10 and 0 < x < n:
        low, high = confidence.clopper_pearson(x, n, delta)
        mix_low, mix_high = confidence.mixture(x, n, delta)
        assert mix_high - mix_low >= (high - low) * (1 - 1e-9)


def test_mixture_is_narrower_for_an_outcome_never_seen():
    """At x = 0 the mixture spends all of delta on one side, Clopper-Pearson half of it."""
    assert confidence.mixture(0, 1000, 1e-2)[1] < confidence.clopper_pearson(0, 1000, 1e-2)[1]


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_no_samples_no_knowledge(function):
    """Zero samples give [0, 1], also inside an array."""
    low, high = function(np.array([0, 3]), np.array([0, 5]), 0.1)
    assert (low[0], high[0]) == (0.0, 1.0)


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_arrays_equal_single_calls(function):
    """Broadcasting and the sharing of equal counts change nothing."""
    rng = np.random.default_rng(0)
    n = rng.integers(1, 50, size=(4, 30))
    x = rng.integers(0, n + 1)
    delta = np.array([[0.1], [1e-3], [1e-6], [1e-12]])
    low, high = function(x, n, delta)
    assert low.shape == n.shape
    for i in (0, 1, 2, 3):
        assert (low[i, 7], high[i, 7]) == function(x[i, 7], n[i, 7], delta[i, 0])


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("delta", [1e-12, 1e-60, 1e-300])
def test_tiny_errors_and_large_counts(function, delta):
    """Ends stay ordered and finite far outside the usual range."""
    for n in (10, 10**4, 10**7):
        x = np.array([0, 1, 2, n // 3, n - 1, n])
        low, high = function(x, n, delta)
        assert np.all((low >= 0) & (low <= x / n) & (x / n <= high) & (high <= 1))


@given(st.integers(2, 500), st.floats(0, 1), deltas)
def test_fractional_counts_lie_between_whole_ones(n, fraction, delta):
    """Sums of rewards are allowed as counts; the ends interpolate monotonically."""
    x = fraction * n
    low, high = confidence.mixture([np.floor(x), x, np.ceil(x)], n, delta)
    assert low[0] <= low[1] + 1e-12 <= low[2] + 2e-12
    assert high[0] <= high[1] + 1e-12 <= high[2] + 2e-12


@pytest.mark.parametrize(
    ("x", "n", "delta", "message"),
    [(3, 2, 0.1, "0 <= x <= n"), (-1, 2, 0.1, "0 <= x"), (1, 2, 0.0, "0 < delta < 1")],
)
def test_bad_input_is_named(x, n, delta, message):
    """The message says what must hold."""
    with pytest.raises(ModelError, match=message):
        confidence.mixture(x, n, delta)
