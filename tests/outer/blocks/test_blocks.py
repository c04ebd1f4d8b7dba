"""Models in blocks: bounds hold, whoever has the blocks and however many there are."""

import itertools
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from language.random_models import model_texts
from outer.blocks.built import in_blocks
from outer.random_specs import specs, tiny_model
from rfmdp.errors import ModelError, PrismError, UnsupportedError
from rfmdp.inner.solvers import IntervalArithmetic
from rfmdp.language.build import build_blocked, build_model
from rfmdp.language.check import check_model
from rfmdp.language.parse import parse_model
from rfmdp.model import blocked
from rfmdp.model.blocked import BlockStore, PackedBlock, block_count, pack, unpack
from rfmdp.model.derived import restrict
from rfmdp.objective import (
    MAX,
    MIN,
    Cumulative,
    Discounted,
    LongRunShare,
    Reach,
    ReachReward,
    Spec,
    Until,
)
from rfmdp.outer.blocks import fleet
from rfmdp.outer.solution import Status
from rfmdp.outer.task import Limits
from rfmdp.solving import solve
from rfmdp.verification.solution import verify
from true_values import LEEWAY, true_value

LATE = ("late", "globally late")  # steps before an until without end
SPECS = [(name, spec) for name, spec in specs() if not name.startswith(LATE)]
pytestmark = pytest.mark.filterwarnings("ignore::rfmdp.errors.PrismWarning")


def bits(solution):
    """Return all that a solution says, to be compared to the last bit."""
    return [x.tobytes() for x in (solution.lower, solution.upper, solution.policy.rows)]


@pytest.mark.parametrize(("name", "spec"), SPECS, ids=[name for name, _ in SPECS])
def test_bounds_contain_the_true_value(name, spec):
    """On every kind of trouble; the policy is worth what is guaranteed."""
    certified = 0
    for seed in range(3):
        model = tiny_model(seed)
        solution = solve(in_blocks(model, 1 + seed % 3), spec, limits=Limits(sweeps=12))
        truth = true_value(model, spec)
        slack = np.where(np.isfinite(truth), LEEWAY * (1.0 + np.abs(truth)), 0.0)
        assert np.all(solution.lower <= truth + slack), seed
        assert np.all(truth <= solution.upper + slack), seed
        if solution.policy.stationary and spec.objective.span[1] is None:
            kept = true_value(restrict(model, solution.policy.rows[0]), spec)
            slack = np.where(np.isfinite(kept), LEEWAY * (1.0 + np.abs(kept)), 0.0)
            if spec.agent is MAX:
                assert np.all(solution.lower <= kept + slack), seed
            elif solution.status is Status.CERTIFIED:
                assert np.all(kept <= solution.upper + slack), seed
        certified += solution.status is Status.CERTIFIED
    assert certified > 0 or name.startswith(("to target", "total"))


@settings(max_examples=30)
@given(st.integers(0, 200), st.sampled_from(SPECS), st.integers(1, 4))
def test_packed_and_ready_blocks_agree(seed, named, count):
    """The same operations in the same order: the same to the last bit."""
    model, (_, spec) = in_blocks(tiny_model(seed), count), named
    store = BlockStore()
    for number in range(model.blocks):
        store.add(pack(model.block(number)))
    model = replace(model, store=store)
    limits = Limits(sweeps=6)
    ready = solve(model, spec, limits=limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet, "SHARE", 0.0)
        patch.setattr(blocked, "SHARE", 0.0)
        assert bits(solve(model, spec, limits=limits)) == bits(ready)


@given(st.integers(0, 200), st.sampled_from([s for n, s in SPECS if s.objective.span[1]]))
def test_steps_do_not_depend_on_the_blocks(seed, spec):
    """A step reads the values of the step before, wherever they are."""
    model = tiny_model(seed)
    one, *others = (solve(in_blocks(model, count), spec) for count in (1, 2, 4))
    assert all(bits(other) == bits(one) for other in others)
    whole = solve(model, spec)
    assert np.all(np.maximum(whole.lower, one.lower) <= np.minimum(whole.upper, one.upper))


@given(st.integers(0, 500), st.integers(1, 4))
def test_blocks_are_the_same_after_packing(seed, count):
    """Every number that a solver reads; successors are those of the model."""
    model = tiny_model(seed)
    many = in_blocks(model, count)
    successors = []
    for number, (first, last) in enumerate(itertools.pairwise(many.block_ptr.tolist())):
        block = unpack(pack(many.block(number)))
        again = unpack(pack(block))
        assert again.model.states == block.model.states == last - first
        for item in fields(block.model):
            one, other = (getattr(b.model, item.name) for b in (block, again))
            if isinstance(one, np.ndarray):
                assert np.array_equal(one, other)
                assert one.dtype == getattr(model, item.name).dtype
        numbers = np.concatenate([np.arange(first, last), block.outside])
        successors.append(numbers[block.model.successors])
    assert np.array_equal(np.concatenate(successors), model.successors)


def test_packed_blocks_are_kept_on_disk(monkeypatch):
    """If memory is short; they come back in any order."""
    monkeypatch.setattr(blocked, "SHARE", 0.0)
    store = BlockStore()
    blocks = [PackedBlock(bytes([k]), (b"x" * k,)) for k in range(5)]
    for block in blocks:
        store.add(block)
    for k in (3, 0, 4, 3):
        again = store.read(k)
        assert (again.header, again.buffers) == (bytes([k]), (b"x" * k,))


def test_sizes_of_blocks():
    """They depend on the model alone."""
    assert block_count(10, 20) == 1
    assert block_count(10**6, 10**6) == 4
    assert block_count(10**6, 10**9) == 10**9 // blocked.TRANSITIONS
    assert block_count(10**10, 10**12) == blocked.MOST
    assert block_count(3, 10**9) == 3


@given(model_texts(), st.integers(1, 4))
def test_rows_made_by_ranges_are_those_of_the_model(text, count):
    """Rows, successors, sets and rewards of every range, and labels of all states."""
    checked = check_model(parse_model(text))
    try:
        whole = build_model(checked)
    except (PrismError, ModelError) as error:
        with pytest.raises(type(error)):
            build_blocked(checked, blocks=count)
        return
    model = build_blocked(checked, blocks=count)
    assert (model.states, model.rows, model.transitions) == (
        whole.states, whole.rows, whole.transitions,
    )  # fmt: skip
    assert np.array_equal(model.initial, whole.initial)
    assert {k: v.tolist() for k, v in model.labels.items()} == {
        k: v.tolist() for k, v in whole.labels.items()
    }
    expected = in_blocks(whole, model.blocks)
    for number in range(model.blocks):
        one, other = (unpack(pack(each.block(number))) for each in (model, expected))
        assert np.array_equal(one.outside, other.outside)
        for name in ("row_ptr", "marginal_ptr", "successor_ptr", "successors"):
            assert np.array_equal(getattr(one.model, name), getattr(other.model, name))
        for a, b in zip(one.model.row_marginals, other.model.row_marginals, strict=True):
            sets = [m.marginals for m in (one.model, other.model)]
            bounds = [
                (s.lower[s.outcome_ptr[j] : s.outcome_ptr[j + 1]].tolist(), s.kind[j])
                for s, j in zip(sets, (a, b), strict=True)
            ]
            assert bounds[0] == bounds[1]
        for name, paid in other.model.rewards.items():
            assert np.array_equal(one.model.rewards[name].state, paid.state)
            assert np.array_equal(one.model.rewards[name].row, paid.row)


LINE = """mdp
const int N;
module walk
  x : [0..N] init 1;
  [slow] 0<x & x<N -> 0.5:(x'=x+1) + 0.5:(x'=x-1);
  [fast] 0<x & x<N-1 -> 0.4:(x'=x+2) + 0.6:(x'=x-1);
  [end] x=0 | x=N -> true;
endmodule
module day
  y : [0..1];
  [slow] true -> 0.5:(y'=0) + 0.5:(y'=1);
  [fast] true -> 0.5:(y'=0) + 0.5:(y'=1);
  [end] true -> true;
endmodule
rewards "time" x>0 & x<N : 1; endrewards
label "top" = x=N;
label "over" = x=0 | x=N;
"""


def line(size=9, radius=0.05, blocks=3):
    """Return a walk between two ends in blocks, and the same in one piece."""
    checked = check_model(parse_model(LINE), {"N": size})
    return build_blocked(checked, blocks=blocks).with_radius(radius), build_model(
        checked
    ).with_radius(radius)


@pytest.mark.parametrize(
    "spec",
    [
        Spec(objective, agent, nature)
        for objective in (
            Reach("top"),
            ReachReward("over", "time"),
            Until("over", "top", 7),
            Cumulative(7, "time"),
            Discounted(0.9, "time"),
        )
        for agent, nature in ((MAX, MIN), (MIN, MAX), (MAX, MAX), (MIN, MIN))
    ],
    ids=str,
)
def test_results_are_certified_and_verify(spec):
    """Plays end here, so both sides are proven, and a checker that shares no code agrees."""
    model, whole = line()
    solution = solve(model, spec)
    assert solution.status is Status.CERTIFIED
    assert solution.lower.min() >= 0.0  # nothing below it is paid
    expected = solve(whole, spec)
    assert np.all(np.maximum(solution.lower, expected.lower) <= expected.upper)
    assert np.all(np.maximum(solution.lower, expected.lower) <= solution.upper)
    assert verify(solution).valid


def test_endless_play_leaves_the_gap_open():
    """Two states that lead to each other at no reward: an upper bound is not found, nor claimed."""
    text = """mdp module m x:[0..3];
      [] x<2 -> (x'=1-x); [] x=0 -> 0.5:(x'=2) + 0.5:(x'=3); [] x>1 -> true; endmodule
      label "good" = x=2;"""
    checked = check_model(parse_model(text))
    solution = solve(build_blocked(checked, blocks=2), Spec(Reach("good"), MAX, MAX))
    assert solution.status is Status.GAP_OPEN
    assert 0.0 < solution.lower[0] <= 0.5 <= solution.upper[0]


def test_limits_and_refusals():
    """A limit leaves what is proven; forms and methods that blocks do not have are named."""
    model, _ = line()
    solution = solve(model, Spec(Reach("top"), MAX, MIN), limits=Limits(sweeps=1))
    assert solution.status is Status.SWEEP_LIMIT
    assert np.all(solution.lower <= solution.upper)
    early = solve(model, Spec(Cumulative(50, "time"), MAX, MIN), limits=Limits(sweeps=3))
    assert early.status is Status.SWEEP_LIMIT
    assert np.all(early.lower == 0.0)  # nothing below 0 is paid
    with pytest.raises(UnsupportedError, match="mean in the long run"):
        solve(model, Spec(LongRunShare("top"), MAX, MIN))
    with pytest.raises(UnsupportedError, match="both sides"):
        solve(model, Spec(Reach("top"), MAX, MIN), inner=IntervalArithmetic())
    with pytest.raises(ModelError, match="sets"):
        model.with_radius(0.1)


def test_deadlocks_are_found_while_exploring():
    """They get a loop and a label, as in a model that is written out."""
    checked = check_model(parse_model("mdp module m x:[0..2]; [] x<2 -> (x'=x+1); endmodule"))
    model = build_blocked(checked)
    assert model.label("deadlock").tolist() == [False, False, True]
