"""Altered files of every kind, signed again: an error in one line, or an object that is one.

Mutations know the structure of a record (fields of the header by their paths, entries, types and
shapes of arrays), so that most of them get past the archive and reach the readers.
"""

from __future__ import annotations

import copy
import json
import math

import numpy as np
import pytest

import rfmdp as rf
from formats.forge import record_bytes
from rfmdp.errors import RfmdpError
from rfmdp.formats.files import load, record_of
from rfmdp.learning.methods import StopWhen
from rfmdp.model.validate import validate
from rfmdp.outer.solution import Policy, Solution
from rfmdp.sets.families import bounds

JUNK = [
    None, True, False, 0, 1, -1, 3, 10**6, 2**63, -(2**70), 0.5, -0.5, 1e300, math.nan, math.inf,
    "", "x", "MAX", "goal", "1 +", [], {}, [[]], ["x"], [0, 1], {"expression": "x"},
    {"type": "Next"},
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 5, 127, -128, 2**31 - 1, -(2**31), 2**62, -(2**63), 0.5, 1e-300, 1e300]
TYPES = ["i1", "i4", "i8", "u8", "f4", "f8", "?", "U3"]


@pytest.fixture(scope="module")
def records():
    """Return a record of every kind that can be saved."""
    sets = [
        rf.Singleton([0.5, 0.5]),
        rf.Interval([0.1, 0.2], [0.8, 0.9]),
        rf.L1Ball([0.3, 0.7], 0.2),
        rf.LinfBall([0.3, 0.7], 0.2),
        rf.LpBall([0.4, 0.6], 0.1, 2.0),
        rf.Polytope([[0.2, 0.8], [0.6, 0.4]]),
    ]
    rows = [([j, (j + 1) % 6], [1, 2, 2, 0], f"a{j}") for j in range(6)]
    model = rf.FactoredMDP.from_rows(
        [rows, [([], [1])], [([], [2])]],
        sets,
        labels={"goal": [False, True, False]},
        rewards={"cost": rf.Rewards(np.ones(3), np.zeros(8))},
    )
    small = rf.FactoredMDP.from_rows(
        [[([0], [1, 2], "try")], [([], [1], "stay")], [([], [2], "stay")]],
        [rf.Singleton([0.5, 0.5])],
        labels={"goal": [False, True, False]},
        rewards={"cost": rf.Rewards(np.ones(3), np.zeros(3))},
    )
    box = small.with_radius(0.1)
    solutions = [
        rf.solve(box, rf.Spec(objective))
        for objective in (
            rf.Reach("goal"),
            rf.Globally("goal", latest=3),
            rf.Discounted(0.9, "cost"),
            rf.Cumulative(4, "cost"),
        )
    ]
    one_sided = rf.solve(box, rf.Spec(rf.Reach("goal")), inner=rf.IntervalArithmetic())
    run = rf.learn(small, rf.Spec(rf.Reach("goal")), length=3, stop=StopWhen(trajectories=50))
    objects = [model, box, *solutions, one_sided, solutions[0].policy, run]
    return [record_of(obj) for obj in objects]


def paths(tree, at=()):
    """Yield the path of every value in a header."""
    yield at
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from paths(value, (*at, key))


def mutate_header(rng, header):
    """Replace, remove or repeat a value somewhere in a header."""
    tree = json.loads(json.dumps(header))
    places = [path for path in paths(tree) if path]
    if not places:
        return tree
    path = places[rng.integers(len(places))]
    parent = tree
    for key in path[:-1]:
        parent = parent[key]
    act = rng.integers(4)
    if act == 0:
        del parent[path[-1]]
    elif act == 1 and isinstance(parent, list):
        parent.insert(path[-1], copy.deepcopy(parent[path[-1]]))
    elif act == 2 and type(parent[path[-1]]) in (int, float):
        parent[path[-1]] = NUMBERS[rng.integers(len(NUMBERS))]
    else:
        parent[path[-1]] = JUNK[rng.integers(len(JUNK))]
    return tree


def mutate_array(rng, array):
    """Change an entry, the type, the shape or the length of an array."""
    act = rng.integers(8)
    if act < 5 and array.size and array.dtype.kind in "iufb":
        changed = array.copy()
        place = rng.integers(array.size)
        if array.dtype.kind == "f":
            old = float(changed.flat[place])
            near = [math.nextafter(old, 2), math.nextafter(old, -2), old + 1e-9, 1 - old, -old]
            choices = [*NUMBERS, *near, math.nan, math.inf]
            value = float(choices[rng.integers(len(choices))])
        else:
            step = int(NUMBERS[rng.integers(11)])
            wide = int(changed.flat[place]) + (step if rng.random() < 0.5 else 0)
            value = (wide if rng.random() < 0.5 else step) % 2**63
        with np.errstate(all="ignore"):
            changed.flat[place] = np.array(value).astype(array.dtype)
        return changed
    if act == 5 and array.dtype.kind in "iufb":
        with np.errstate(all="ignore"):
            return array.astype(TYPES[rng.integers(len(TYPES))])
    if act == 6:
        return array.reshape(1, -1) if rng.random() < 0.5 else array.ravel()[: array.size // 2]
    return np.concatenate([array.ravel(), array.ravel()])[: array.size + 1]


def mutate(rng, record_):
    """Return a record with one to three changes."""
    kind, header, arrays = record_
    arrays = dict(arrays)
    for _ in range(rng.integers(1, 4)):
        act = rng.random()
        names = list(arrays)
        name = names[rng.integers(len(names))] if names else ""
        if act < 0.4:
            header = mutate_header(rng, header)
        elif act < 0.45:
            arrays.pop(name, None)
        elif act < 0.5 and name:
            arrays[names[rng.integers(len(names))]] = arrays[name]
        elif name:
            arrays[name] = mutate_array(rng, np.asarray(arrays[name]))
    return kind, header, arrays


def assert_real(model):
    """Assert, by plain loops over single sets, that a model is one."""
    assert not validate(model)
    sizes = []
    for j in range(len(model.marginals)):
        single = model.marginals[j]  # its constructor checks it
        sizes.append(single.size)
        part = slice(*model.marginals.outcome_ptr[j : j + 2])
        for found, own in zip(
            (model.marginals.lower[part], model.marginals.upper[part]), bounds(single), strict=True
        ):
            assert np.all(np.abs(found - own) <= 1e-9)
    assert all(0 <= s < model.states for s in model.successors.tolist())
    assert all(0 <= s < model.states for s in model.initial.tolist())
    for s in range(model.states):
        assert model.row_ptr[s] < model.row_ptr[s + 1]
    for r in range(model.rows):
        ids = model.row_marginals[model.marginal_ptr[r] : model.marginal_ptr[r + 1]].tolist()
        assert (
            math.prod(sizes[j] for j in ids) == model.successor_ptr[r + 1] - model.successor_ptr[r]
        )
        assert model.row_name(r)


def assert_use(found, solve):
    """Use what a file gave: whatever is not an error of ours is one of the test."""
    models = [m for m in (found, getattr(found, "model", None)) if isinstance(m, rf.FactoredMDP)]
    for model in models:
        assert_real(model)
        if solve and "goal" in model.labels:
            inside = rf.solve(model, rf.Spec(rf.Until("init", "goal", latest=3)))
            assert np.all(inside.lower <= inside.upper)
            assert np.all((inside.lower >= 0.0) & (inside.upper <= 1.0))
    if isinstance(found, Solution):
        assert not np.isnan(found.value).any()
        assert len(found.policy.rows) == 0 or found.policy.rows.max() < found.model.rows
    if isinstance(found, Policy):
        assert found.rows.ndim == 2


def assert_judged(path, seed, number):
    """Ask the checker, which must come to a verdict or refuse in words."""
    try:
        rf.verify(path)
    except RfmdpError:
        return
    except BaseException:
        print(f"seed {seed}, file {number}")
        raise


def hunt(records, path, seed, count):
    """Load that many altered files; return how many were accepted."""
    rng, accepted, lines = np.random.default_rng(seed), 0, []
    for i in range(count):
        kind, header, arrays = mutate(rng, records[i % len(records)])
        path.write_bytes(record_bytes(kind, header, arrays))
        if kind in ("solution", "learning run") and i % 7 == 0:
            assert_judged(path, seed, i)
        try:
            found = load(path)
        except RfmdpError as error:
            lines.append(str(error))
            continue
        accepted += 1
        try:
            assert_use(found, solve=i % 25 == 0)
        except RfmdpError:
            continue
        except BaseException:
            print(f"seed {seed}, file {i}")
            raise
    assert not [line for line in lines if "\n" in line]
    return accepted


def test_altered_files(records, tmp_path):
    """A hundred files: no crash, no traceback, no model that is none."""
    accepted = hunt(records, tmp_path / "m.rfmdp", 1, 100)
    assert 0 < accepted < 100  # some changes are harmless: a name, a nominal, a count


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_many_altered_files(records, tmp_path, seed):
    """A hundred thousand files."""
    hunt(records, tmp_path / "m.rfmdp", 100 + seed, 10_000)
