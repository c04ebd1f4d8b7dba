"""Results of path formulas are proven again, and no forged one is."""

import copy

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from outer.games import random_model
from rfmdp.formats.files import load, record_of, save
from rfmdp.language.build import parse_prism
from rfmdp.objective import Spec, Temporal
from rfmdp.solving import solve
from rfmdp.temporal.formula import Kind, Progression
from rfmdp.verification.solution import verdict_of, verify

from .test_solve import DIRECTIONS, ROBOT, formula_over
from .words import trees

PROPERTIES = {
    "co-safe": "Pmaxmin=? [ F ((x=1) & (X ((x=2) & (X x=4)))) ]",
    "safe": "Pmaxmin=? [ G ((x=1) => (X x=2)) ]",
    "bounded": "Pminmax=? [ (F<=3 x=2) & (F<=6 x=4) ]",
    "combined": "Pmaxmin=? [ (F x=3) & (G ((x=1) => (X x=2))) ]",
    "either": "Pminmax=? [ (G !(x=1)) | (F broken) ]",
    "again and again": "Pmaxmin=? [ G ((x=1) => (F x=2)) ]",
    "from some time on": "Pminmax=? [ F (G !(x=4)) ]",
    "reward": "Rminmax=? [ (F x=1) & (F x=4) ]",
}


@pytest.fixture(scope="module")
def robot():
    return parse_prism(ROBOT).with_radius(0.05)


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_saved_result_is_proven_again(robot, name, tmp_path):
    """What comes back from a file is the same, and valid; the file tells the model it is about."""
    solution = solve(robot, PROPERTIES[name])
    save(solution, tmp_path / "result.rfmdp")
    verdict = verify(tmp_path / "result.rfmdp", model=robot)
    assert verdict.valid, str(verdict)
    assert ("automaton", "made again from the formula") in verdict.claims
    again = load(tmp_path / "result.rfmdp")
    assert str(again.spec) == str(solution.spec)
    assert np.array_equal(again.model.successors, solution.model.successors)
    assert np.array_equal(again.lower, solution.lower)
    assert again.product.table.names == solution.product.table.names


@settings(max_examples=40)
@given(st.integers(0, 10**6), trees(5), st.sampled_from(DIRECTIONS))
def test_what_the_solver_proves_the_checker_proves(seed, tree, players):
    """Whatever the formula and the game, the claims of the solver hold by the checker's means."""
    assume(Progression(tree, "ab").kind is not Kind.GENERAL)
    model = random_model(seed, 4)
    solution = solve(model, Spec(Temporal(formula_over(model, tree, seed)), *players))
    verdict = verify(solution)
    assert verdict.valid, str(verdict)


def forged(name, robot, change):
    """Return the verdict about a result after a change of its header or arrays."""
    kind, header, arrays = record_of(solve(robot, PROPERTIES[name]))
    header = copy.deepcopy(header)
    arrays = {key: np.array(array) for key, array in arrays.items()}
    change(header, arrays)
    return verdict_of(kind, header, arrays)


def better_bound(header, arrays):
    arrays["lower"] = arrays["lower"] + 1e-3
    arrays["upper"] = np.maximum(arrays["upper"], arrays["lower"])
    arrays["value"] = np.clip(arrays["value"], arrays["lower"], arrays["upper"])
    for side in ("witness.lower", "witness.upper"):
        if side in arrays:
            arrays[side] = np.clip(arrays[side] + 1e-3, 0.0, 1.0)


def other_formula(header, arrays):
    header["product"]["formula"]["tree"] = ["U", ["true"], ["atom", 0], 0, None]


def satisfied_early(header, arrays):
    decided, priority = arrays["product.automaton.decided"], arrays["product.automaton.priority"]
    decided[:], priority[:] = True, 2
    arrays["product.automaton.delta"][:] = np.arange(len(decided))[:, None]


def other_move(header, arrays):
    delta = arrays["product.automaton.delta"]
    delta[0] = np.where(delta[0] >= 0, (delta[0] + 1) % len(delta), -1)


def other_atoms(header, arrays):
    arrays["product.atom.0"] = ~arrays["product.atom.0"]


def missing_pair(header, arrays):
    arrays["product.memory"][-1] = arrays["product.memory"][0]
    arrays["product.states"][-1] = arrays["product.states"][0]


def other_priority(header, arrays):
    arrays["product.automaton.priority"] += 1


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize(
    "change",
    [
        better_bound, other_formula, satisfied_early, other_move, other_atoms, missing_pair,
        other_priority,
    ],
)  # fmt: skip
def test_forged_results_are_not_valid(robot, name, change):
    """A changed bound, formula, automaton or product is found."""
    verdict = forged(name, robot, change)
    assert verdict.failed, str(verdict)


def one_block(header, arrays):
    arrays["block"][:] = 1


def turned_blocks(header, arrays):
    arrays["block"] = arrays["block"].max() - arrays["block"]


@pytest.mark.parametrize("change", [one_block, turned_blocks])
def test_blocks_must_be_as_the_proof_needs_them(robot, change):
    """A block in which staying is neither won nor lost proves nothing."""
    verdict = forged("combined", robot, change)
    assert not verdict.valid, str(verdict)


@pytest.mark.parametrize(("path", "off"), [("G F x=1", 1.0), ("(G F x=1) & (F G !(x=1))", -1.0)])
def test_what_is_almost_sure_is_no_more_than_one(path, off):
    """A certain win, in no block, was a proof of a probability of two; a certain loss, of -1."""
    model = parse_prism("""mdp module m x : [0..2];
      [a] x=0 -> 0.5 : (x'=1) + 0.5 : (x'=2); [a] x=1 -> (x'=0);
      [a] x=2 -> 0.5 : (x'=0) + 0.5 : (x'=2);
    endmodule""").with_radius(0.1)
    _, header, arrays = record_of(solve(model, f"Pmaxmin=? [ {path} ]"))
    arrays["block"] = np.full_like(arrays["block"], -1)
    assert verdict_of("solution", header, arrays).valid
    for name in ("lower", "upper", "value"):
        arrays[name] = arrays[name] + off
    assert verdict_of("solution", header, arrays).failed
