"""Exploration underneath the builder: codes, blocks, kernels, memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st

from processes import python
from rfmdp.errors import ModelError
from rfmdp.kernels import tables as kernels
from rfmdp.model.arrays import Variable
from rfmdp.model.frontier import CERTAIN, BlockMove, RowBlock, deadlocks, explore
from rfmdp.model.packing import Packing

GRID = Packing([Variable("x", 0, 9), Variable("y", 0, 9)])


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


def expand_mixed(codes):
    """Give rows of mixed sizes: y is certain below 5, x steps by three outcomes."""
    x, y = GRID.unpack(codes[:, None]).T.astype(np.int64)
    steps = np.stack([np.minimum(x + d, 9) - x for d in (0, 1, 2)], axis=1) * 10
    falls = np.stack([0 * y, np.minimum(y + 1, 9) - y], axis=1)
    low = y < 5
    falls[low, 0] = 1  # certain: only the first column is read
    yield RowBlock(
        np.arange(len(x)),
        0,
        codes,
        [
            BlockMove(0, 0 * x, 0 * x + 3, steps),
            BlockMove(1, np.where(low, CERTAIN, 1), np.where(low, 1, 2), falls),
        ],
    )
    for action, late in ((1, y <= 5), (2, y > 5)):
        rows = np.flatnonzero((x > 7) & late)
        yield RowBlock(rows, action, np.zeros(len(rows), dtype=np.int64), [])


@pytest.mark.parametrize("limit", [0, 100])
def test_blocks_may_mix_sizes(limit, monkeypatch):
    """Certain moves are no marginals; rows keep the order of blocks within their state."""
    monkeypatch.setattr("rfmdp.model.packing.DENSE_LIMIT", limit)
    found = explore(GRID, np.array([0]), expand_mixed)
    name = [tuple(v) for v in found.valuations.tolist()]
    assert name == sorted(name)
    for s, (x, y) in enumerate(name):
        first, last = found.row_ptr[s], found.row_ptr[s + 1]
        assert last - first == (2 if x > 7 else 1)
        targets = found.successors[found.successor_ptr[first] : found.successor_ptr[first + 1]]
        ys = [y + 1] if y < 5 else [y, min(y + 1, 9)]
        assert [name[t] for t in targets] == [(min(x + d, 9), b) for d in range(3) for b in ys]
        ids = found.row_marginals[found.marginal_ptr[first] : found.marginal_ptr[first + 1]]
        assert ids.tolist() == ([0] if y < 5 else [0, 1])
        if x > 7:
            at = found.successor_ptr[first + 1]
            assert name[found.successors[at]] == (0, 0)
            assert found.row_actions[first + 1] == (2 if y > 5 else 1)


@pytest.mark.parametrize("limit", [0, 100])
def test_leaving_the_domain_is_refused(limit, monkeypatch):
    """A code outside the packed domain never reaches the table."""
    monkeypatch.setattr("rfmdp.model.packing.DENSE_LIMIT", limit)
    with pytest.raises(ModelError, match="leaves the variables' ranges"):
        explore(GRID, np.array([0]), lambda c: [RowBlock(np.arange(len(c)), 0, c - 1, [])])


def test_a_row_that_is_too_large_is_named():
    """The product of sizes is checked before memory is asked for."""
    wide = np.zeros((1, 2**11), dtype=np.int64)
    moves = [BlockMove(i, np.array([0]), np.array([2**11]), wide) for i in range(3)]
    with pytest.raises(
        ModelError,
        match=r"State \(x=0, y=0\): a row must have fewer than 2\^31 successors, found 8.59e\+09",
    ):
        explore(GRID, np.array([0]), lambda c: [RowBlock(np.array([0]), 0, c, moves)])


def test_deadlocks_loop_and_are_labelled():
    """A deadlock gets a self-loop without marginals."""
    found = explore(GRID, np.array([1, 5]), lambda f: [])
    assert found.successors.tolist() == [0, 1]
    assert deadlocks(found).tolist() == [True, True]
    assert found.row_actions.tolist() == [-1, -1]


@pytest.mark.filterwarnings("ignore:overflow")
@given(st.integers(0, 2**32))
def test_kernels_equal_their_python(seed):
    """Codes are broadcast sums; compiled and plain numbering agree, dense and hashed."""
    rng = np.random.default_rng(seed)
    rows, widths = int(rng.integers(1, 5)), rng.integers(1, 4, 3)
    moves = [
        BlockMove(i, np.zeros(rows), rng.integers(1, d + 1, rows), rng.integers(0, 50, (rows, d)))
        for i, d in enumerate(widths)
    ]
    block = RowBlock(np.arange(rows), 0, rng.integers(0, 50, rows), moves)
    expected = []
    for r in range(rows):
        parts = [move.contribution[r, : move.size[r]] for move in moves]
        tensor = block.rest[r] + parts[0][:, None, None] + parts[1][:, None] + parts[2]
        expected.append(tensor.ravel())
    codes = block.codes(slice(0, rows))
    assert np.array_equal(codes, np.concatenate(expected))
    assert np.array_equal(block.codes(slice(rows - 1, rows)), expected[-1])
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
