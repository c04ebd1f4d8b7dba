"""Flattening against plain dictionaries over `itertools.product`."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from formats.models import random_model
from rfmdp.model import derived
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import flatten, flatten_note
from rfmdp.sets.boxes import tighten
from rfmdp.sets.families import Interval, L1Ball, Singleton

KINDS = ["known", "box", "l1"]


def plain_row(model, r):
    """Return {successor: [lower, upper, nominal]} of a row by the definition."""
    ids = model.row_marginals[model.marginal_ptr[r] : model.marginal_ptr[r + 1]]
    targets = model.successors[model.successor_ptr[r] : model.successor_ptr[r + 1]]
    ptr, sets = model.marginals.outcome_ptr, model.marginals
    merged: dict[int, list[float]] = {}
    branches = itertools.product(*(range(ptr[j], ptr[j + 1]) for j in ids))
    for target, branch in zip(targets.tolist(), branches, strict=True):
        entry = merged.setdefault(target, [0.0, 0.0, 0.0])
        for i, values in enumerate((sets.lower, sets.upper, sets.nominal)):
            entry[i] += math.prod(float(values[o]) for o in branch)
    return {s: [min(v[0], 1.0), min(v[1], 1.0), v[2]] for s, v in sorted(merged.items())}


def flat_row(model, r):
    """Return (successors, lower, upper, nominal) of a row of a flat model."""
    targets = model.successors[model.successor_ptr[r] : model.successor_ptr[r + 1]]
    ids = model.row_marginals[model.marginal_ptr[r] : model.marginal_ptr[r + 1]]
    if not len(ids):
        return targets, np.ones(1), np.ones(1), np.ones(1)
    part = slice(*model.marginals.outcome_ptr[ids[0] : ids[0] + 2])
    sets = model.marginals
    return targets, sets.lower[part], sets.upper[part], sets.nominal[part]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_nominal_expectation_is_the_product_expectation(kind, seed):
    """Expected values are those of independent marginals, and intervals are products."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, kind, factors=3)
    flat = flatten(model)
    value = rng.normal(size=model.states)
    for r in range(model.rows):
        plain = plain_row(model, r)
        targets, lower, upper, nominal = flat_row(flat, r)
        assert targets.tolist() == list(plain)
        assert nominal @ value[targets] == pytest.approx(
            sum(v[2] * value[s] for s, v in plain.items()), abs=1e-12
        )
        low, high = (np.array([v[i] for v in plain.values()]) for i in (0, 1))
        if len(plain) > 1:
            low, high = tighten(np.array([0, len(plain)]), low, high)
        else:
            low = high = np.ones(1)
        np.testing.assert_allclose(lower, low, atol=1e-14)
        np.testing.assert_allclose(upper, high, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_else_stays(kind):
    """States, rows, actions, labels, rewards and variables are those of the factored model."""
    model = random_model(np.random.default_rng(3), kind)
    flat = flatten(model)
    assert (flat.states, flat.rows, flat.actions) == (model.states, model.rows, model.actions)
    assert flat.row_actions.tolist() == model.row_actions.tolist()
    assert flat.labels.keys() == model.labels.keys()
    assert flat.rewards.keys() == model.rewards.keys()
    assert flat.variables == model.variables
    assert flat.uncertain == (kind != "known")
    assert np.diff(flat.marginal_ptr).max() <= 1


def test_flattening_twice_changes_nothing():
    """A flat model is a fixed point."""
    once = flatten(random_model(np.random.default_rng(5), "box"))
    twice = flatten(once)
    assert twice.successors.tolist() == once.successors.tolist()
    np.testing.assert_allclose(twice.marginals.lower, once.marginals.lower, atol=1e-15)
    assert twice.row_marginals.tolist() == once.row_marginals.tolist()


def test_chunks_do_not_change_the_result(monkeypatch):
    """One row at a time gives the same arrays as all at once."""
    model = random_model(np.random.default_rng(7), "box", states=20, factors=3)
    whole = flatten(model)
    monkeypatch.setattr(derived, "CHUNK", 1)
    parts = flatten(model)
    assert parts.successors.tolist() == whole.successors.tolist()
    assert parts.row_marginals.tolist() == whole.row_marginals.tolist()
    assert parts.marginals.lower.tolist() == whole.marginals.lower.tolist()


def test_impossible_successors_are_dropped():
    """An outcome of probability 0 leaves no transition, and a row with one is certain."""
    never = Singleton([1.0, 0.0])
    model = FactoredMDP.from_rows([[([0], [0, 1])], [([0, 0], [1, 0, 0, 0])]], [never])
    flat = flatten(model)
    assert flat.successors.tolist() == [0, 1]
    assert len(flat.marginals) == 0


def test_equal_rows_share_a_marginal():
    """Rows with equal joint distributions have one identifier."""
    coin = Interval([0.4, 0.4], [0.6, 0.6])
    rows = [[([0, 0], [0, 1, 2, 3])] for _ in range(4)]
    assert len(flatten(FactoredMDP.from_rows(rows, [coin])).marginals) == 1


def test_merged_bounds_are_capped_at_one():
    """Branches that meet add up to at most 1: here 2 * 0.36 + 0.36 > 1."""
    coin = Interval([0.4, 0.4], [0.6, 0.6])
    model = FactoredMDP.from_rows([[([0, 0], [0, 1, 1, 1])], [([], [1])]], [coin])
    flat = flatten(model)
    np.testing.assert_allclose(flat.marginals.lower, [0.16, 0.64], atol=1e-15)
    np.testing.assert_allclose(flat.marginals.upper, [0.36, 0.84], atol=1e-15)


def test_note_says_what_changed():
    """The note names interval arithmetic, products and enclosing boxes, and is else empty."""
    rows = [[([0, 0], [0, 1, 1, 1])], [([], [1])]]
    single = [[([0], [0, 1])], [([], [1])]]
    coin, fair = Interval([0.4, 0.4], [0.6, 0.6]), Singleton([0.5, 0.5])
    assert "interval arithmetic" in flatten_note(FactoredMDP.from_rows(rows, [coin]))
    assert "joint probabilities" in flatten_note(FactoredMDP.from_rows(rows, [fair]))
    ball = L1Ball([0.5, 0.3, 0.2], 0.1)
    curved = FactoredMDP.from_rows([[([0], [0, 1, 1])], [([], [1])]], [ball])
    assert "enclosing boxes" in flatten_note(curved)
    assert flatten_note(FactoredMDP.from_rows(single, [coin])) == ""


def test_kernel_and_its_python_twin_agree(monkeypatch):
    """The compiled kernel and its Python function make the same model."""
    model = random_model(np.random.default_rng(11), "box", factors=3)
    compiled = flatten(model)
    monkeypatch.setattr(derived, "distributions", derived.distributions.py_func)
    plain = flatten(model)
    assert plain.successors.tolist() == compiled.successors.tolist()
    for name in ("lower", "upper", "nominal"):
        sides = getattr(plain.marginals, name), getattr(compiled.marginals, name)
        np.testing.assert_allclose(*sides, atol=1e-15)
