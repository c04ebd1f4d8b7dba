"""E and A against their definitions as fixed points, set by set."""

import warnings

import numpy as np
import pytest
from hypothesis import given

from examples import quarter
from language.random_models import model_texts
from rfmdp.answers.answer import check
from rfmdp.answers.evaluator import states_where
from rfmdp.answers.property import parse_property
from rfmdp.errors import PrismError, PrismWarning
from rfmdp.language.load import parse_prism

FORMULAS = {"top": '"top"', "zero": "x0=0"}


def successors(model):
    """Return the possible successors of every state, by probabilities multiplied out."""
    found = []
    upper = model.marginals.upper
    for s in range(model.states):
        after = set()
        for r in range(model.row_ptr[s], model.row_ptr[s + 1]):
            chance = np.ones(1)
            for j in model.row_marginals[model.marginal_ptr[r] : model.marginal_ptr[r + 1]]:
                part = slice(model.marginals.outcome_ptr[j], model.marginals.outcome_ptr[j + 1])
                chance = np.outer(chance, upper[part]).ravel()
            moves = model.successors[model.successor_ptr[r] : model.successor_ptr[r + 1]]
            after |= {int(t) for t, p in zip(moves, chance, strict=True) if p > 0}
        found.append(after)
    return found


def fixed_point(start, step):
    """Iterate a monotone function on sets."""
    while (after := step(start)) != start:
        start = after
    return start


def definition(text, after, a, b):
    """Return where a formula over the sets a and b holds."""
    states = set(range(len(after)))
    some = {s: lambda z, s=s: bool(after[s] & z) for s in states}
    every = {s: lambda z, s=s: after[s] <= z for s in states}
    pick = some if text[0] == "E" else every
    match text[1:]:
        case "X":
            return {s for s in states if pick[s](b)}
        case "U":
            return fixed_point(set(), lambda z: b | {s for s in a if pick[s](z)})
        case "G":
            return fixed_point(states, lambda z: {s for s in b if pick[s](z)})
        case "W":
            return fixed_point(states, lambda z: b | {s for s in a if pick[s](z)})
    return fixed_point(states, lambda z: {s for s in b if s in a or pick[s](z)})  # R


@quarter
@given(model_texts())
def test_fixed_points(text):
    """Every operator is the least or greatest fixed point that defines it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        model = parse_prism(text)
    after = successors(model)
    a, b = (set(np.flatnonzero(states_where(model, parse_property(f)))) for f in FORMULAS.values())
    left, right = FORMULAS.values()
    for quantifier in "EA":
        for operator in "XUGWR":
            path = f"{left} {operator} {right}" if operator in "UWR" else f"{operator} {right}"
            found = states_where(model, parse_property(f"{quantifier} [ {path} ]"))
            assert set(np.flatnonzero(found)) == definition(quantifier + operator, after, a, b)
            turned = states_where(
                model, parse_property(f"!{'AE'[quantifier == 'A']} [ !({path}) ]")
            )
            assert np.array_equal(found, turned)


def test_removable_moves_are_possible():
    """A move that nature may remove, but need not, is on some path."""
    model = parse_prism(
        "imdp module m x : [0..1]; [] x=0 -> [0,0.5] : (x'=1) + [0.5,1] : true; [] x=1 -> true; "
        "endmodule"
    )
    assert check(model, "E [ F x=1 ]").value is True
    assert check(model, "A [ F x=1 ]").value is False
    assert check(model, "filter(count, A [ F x=1 ])").value == 1


def test_steps_are_refused():
    """PRISM has no bounds on steps here either."""
    with pytest.raises(PrismError, match="a bound on steps inside 'E' is not supported"):
        parse_property("E [ F<=3 x=1 ]")
