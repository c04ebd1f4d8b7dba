"""How often a true probability ever leaves its interval, by exact dynamic programming."""

import numpy as np
import pytest

from rfmdp.learning import confidence


def acceptance(function, p, delta, n):
    """Return the first and last count x whose interval at n contains p, by bisection."""
    first, high = np.zeros_like(n), n.copy()
    while np.any(first < high):
        middle = (first + high) // 2
        reached = function(middle, n, delta)[1] >= p
        first, high = np.where(reached, first, middle + 1), np.where(reached, middle, high)
    last, low = n.copy(), np.zeros_like(n)
    while np.any(low < last):
        middle = (low + last + 1) // 2
        reached = function(middle, n, delta)[0] <= p
        low, last = np.where(reached, middle, low), np.where(reached, last, middle - 1)
    return first, last


def crossing_probability(function, p, delta, looks, largest):
    """P(p lies outside the interval at some look n <= largest)."""
    looks = np.asarray(looks)
    first, last = acceptance(function, p, delta, looks)
    bounds = dict(zip(looks.tolist(), zip(first, last, strict=True), strict=True))
    alive, start = np.ones(1), 0
    crossed = 0.0
    for n in range(1, largest + 1):
        step = np.zeros(len(alive) + 1)
        step[:-1] = alive * (1 - p)
        step[1:] += alive * p
        alive = step
        if n in bounds:
            a, b = bounds[n]
            keep = slice(max(a - start, 0), max(b - start + 1, 0))
            crossed += alive[: keep.start].sum() + alive[keep.stop :].sum()
            alive, start = alive[keep], start + keep.start
    return crossed


def every(largest):
    return np.arange(1, largest + 1)


def powers(largest):
    return 2 ** np.arange(int(np.log2(largest)) + 1)


@pytest.mark.parametrize("p", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("delta", [0.1, 1e-4])
def test_the_sequence_is_valid_at_every_size(p, delta):
    """Read after every sample, it fails with probability below delta."""
    assert crossing_probability(confidence.mixture, p, delta, every(800), 800) < delta


@pytest.mark.parametrize(
    ("delta", "looks", "largest", "inflation"),
    [
        (0.05, every, 100, 4.6),
        (0.05, every, 1000, 8.2),
        (1e-2, every, 1000, 11.9),
        (1e-2, powers, 1000, 3.9),
        (1e-4, every, 100, 7.0),
        (1e-4, every, 1000, 20.1),
        (1e-4, powers, 1000, 3.2),
        (1e-8, every, 1000, 32.5),
    ],
)
def test_clopper_pearson_read_repeatedly_breaks_its_promise(delta, looks, largest, inflation):
    """The failure probability exceeds delta by the factors of the reference table."""
    crossed = crossing_probability(confidence.clopper_pearson, 0.5, delta, looks(largest), largest)
    assert crossed / delta == pytest.approx(inflation, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("delta", [0.1, 1e-6])
def test_long_crossing_probabilities(p, delta):
    """By n = 20000 the crossing probability is a good part of delta, but never all of it."""
    share = crossing_probability(confidence.mixture, p, delta, every(20_000), 20_000) / delta
    assert 0.5 <= share <= 0.75
