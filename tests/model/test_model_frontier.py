"""Exploration underneath the builder: codes, rows, kernels, memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st

from processes import python
from rfmdp.errors import ModelError
from rfmdp.kernels import explorer as kernels
from rfmdp.model.arrays import Variable
from rfmdp.model.build import build
from rfmdp.model.description import Action, Move
from rfmdp.model.packing import Packing
from rfmdp.sets.families import Singleton


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 60)), min_size=1, max_size=24),
    st.booleans(),
)
def test_words_are_invertible_and_sorted(ranges, in_bits):
    """Unpacking inverts packing, and words sort as valuations do."""
    variables = [Variable(f"v{i}", low, low + more) for i, (low, more) in enumerate(ranges)]
    packing = Packing(variables, in_bits=in_bits)
    rng = np.random.default_rng(0)
    values = np.stack([rng.integers(v.low, v.high + 1, 50) for v in variables], axis=1)
    words = packing.pack(values)
    assert np.array_equal(packing.unpack(words), values)
    assert words.min() >= 0
    assert words.max() < min(packing.domain, 2**62)
    assert (packing.words == 1) == (packing.domain <= 2**62)
    in_order = values[packing.order(words)].tolist()
    assert in_order == sorted(in_order)


COIN, DIE = Singleton([0.5, 0.5]), Singleton([0.2, 0.3, 0.5])
SURE = Singleton([0.0, 1.0])
STEP = Move("x", DIE, lambda s, j, o: {"x": np.minimum(s.x + o, 9)})
FALL = Move(
    "y",
    [COIN, SURE],
    lambda s, j, o: {"y": np.minimum(s.y + o, 9)},
    lambda s: (s.y < 5).astype(int),
)
HOME = [
    Action("home", guard=lambda s: (s.x > 7) & (s.y <= 5), update=lambda s: {"x": 0, "y": 0}),
    Action("late", guard=lambda s: (s.x > 7) & (s.y > 5), update=lambda s: {"x": 0, "y": 0}),
]


@pytest.mark.parametrize("limit", [0, 100])
def test_rows_may_mix_sizes(limit, monkeypatch):
    """Certain moves are no marginals; rows keep the order of actions within their state."""
    monkeypatch.setattr("rfmdp.model.packing.DENSE_LIMIT", limit)
    monkeypatch.setattr("rfmdp.model.build.SLICE", 7)
    monkeypatch.setattr("rfmdp.model.build.CHUNK", 5)
    model = build(
        {"x": (0, 9), "y": (0, 9)},
        [Action("go", [STEP, FALL]), *HOME],
        initial={"x": 0, "y": 0},
    )
    name = [tuple(v) for v in model.valuations.tolist()]
    assert name == sorted(name)
    for s, (x, y) in enumerate(name):
        first, last = model.row_ptr[s], model.row_ptr[s + 1]
        assert last - first == (2 if x > 7 else 1)
        targets = model.successors[model.successor_ptr[first] : model.successor_ptr[first + 1]]
        ys = [y + 1] if y < 5 else [y, min(y + 1, 9)]
        assert [name[t] for t in targets] == [(min(x + d, 9), b) for d in range(3) for b in ys]
        ids = model.row_marginals[model.marginal_ptr[first] : model.marginal_ptr[first + 1]]
        assert ids.tolist() == ([0] if y < 5 else [0, 1])
        if x > 7:
            at = model.successor_ptr[first + 1]
            assert name[model.successors[at]] == (0, 0)
            assert model.row_actions[first + 1] == (2 if y > 5 else 1)


def test_a_row_that_is_too_large_is_named():
    """The product of sizes is checked before memory is asked for."""
    wide = Singleton(np.full(2**11, 2.0**-11))
    moves = [Move(name, wide, lambda s, j, o: {}) for name in "abc"]
    message = r"State \(x=0\): a row must have fewer than 2\^31 successors, found 8.59e\+09"
    with pytest.raises(ModelError, match=message):
        build({"x": (0, 1)}, [Action("go", moves)], initial={"x": 0})


def test_deadlocks_loop_and_are_labelled():
    """A deadlock gets a self-loop without marginals."""
    model = build({"x": (0, 9)}, [], initial={"x": [1, 5]})
    assert model.successors.tolist() == [0, 1]
    assert model.label("deadlock").tolist() == [True, True]
    assert [model.actions[a] for a in model.row_actions] == ["", ""]


@pytest.mark.filterwarnings("ignore:overflow")
@given(st.integers(0, 2**32))
def test_kernels_equal_their_python(seed):
    """Compiled and plain numbering agree, dense and hashed."""
    codes = np.random.default_rng(seed).integers(0, 200, 100)
    for kernel in (kernels.enter_states, kernels.enter_states.py_func):
        for dense, length in ((True, 256), (False, 512)):
            table, known = np.zeros(length, np.int32), np.zeros((256, 1), np.int64)
            numbers = np.zeros(len(codes), np.int32)
            count = kernel(table, known, 0, dense, codes[:, None], numbers)
            assert count == len(np.unique(codes))
            assert np.array_equal(known[numbers, 0], codes)


def test_building_needs_at_most_thrice_the_model(described):
    """Peak memory stays below three times the finished model."""
    described.aircraft(5, 5, 2)  # loads the kernels
    tracemalloc.start()
    model = described.aircraft()
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.successors.nbytes < kept
    assert peak <= 3 * kept


def test_importing_models_does_not_import_numba():
    """Kernels are loaded when a model is built, not before."""
    code = "import sys, rfmdp.model; sys.exit('numba' in sys.modules)"
    assert python(code).returncode == 0
