"""A set of somebody else says which of ours it is; `docs/extending.md` shows one to the end."""

import numpy as np
import pytest

import rfmdp as rf
from rfmdp.errors import ModelError
from rfmdp.sets.marginals import Marginals


class Contaminated:
    """(1 - share) p + share q for any q: some of the draws come from elsewhere."""

    def __init__(self, p, share):
        self.p, self.share = np.array(p), share

    def to_set(self):
        lower = (1.0 - self.share) * self.p
        return rf.Interval(lower, lower + self.share)


def test_a_custom_set_is_the_set_that_it_names():
    """Rows and moves take it, and its value is that of the box: (1 - 1/4) 1/2 = 3/8."""
    uset = Contaminated([0.5, 0.5], 0.25)
    goal = {"goal": [False, True, False]}
    rows = [[([0], [1, 2])], [([], [1])], [([], [2])]]
    built = rf.build(
        {"x": (0, 2)},
        [rf.Action("go", [rf.Move("x", uset, lambda s, j, o: {"x": 1 + o})], lambda s: s.x == 0)],
        initial={"x": 0},
        labels={"goal": lambda s: s.x == 1},
    )
    for model in (rf.FactoredMDP.from_rows(rows, [uset], labels=goal), built):
        bounds = rf.solve(model, 'Pmaxmin=? [ F "goal" ]').at_initial()
        assert bounds.lower <= 0.375 <= bounds.upper
        assert bounds.width < 1e-12


def test_a_set_that_names_none_is_refused():
    """What `to_set` returns is shown."""

    class Odd:
        def to_set(self):
            return "odd"

    with pytest.raises(ModelError, match="Marginal 0: must be an uncertainty set, got 'odd'"):
        Marginals.from_sets([Odd()])
