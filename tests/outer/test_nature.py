"""Nature's worst case: members of the sets, and a chain whose value lies within the bounds."""

import numpy as np
import pytest

from narrow import require_narrow
from rfmdp.errors import ModelError
from rfmdp.objective import MAX, MIN, Cumulative, Reach, Spec
from rfmdp.solving import solve
from set_twins import contains
from true_values import true_value

from .random_specs import specs, tiny_model
from .test_laws import walk

KINDS = ("reach", "until", "globally", "to target", "total", "discounted", "next")
STATIONARY = [(name, spec) for name, spec in specs() if name.split(" M")[0] in KINDS]


def test_the_chain_of_policy_and_nature_lies_within_the_bounds():
    """All answers are members, and together they attain the value."""
    for seed in range(20):
        model = tiny_model(seed)
        for k in range(3):
            name, spec = STATIONARY[(5 * seed + 9 * k) % len(STATIONARY)]
            found = require_narrow(solve(model, spec, states=np.ones(model.states, bool)))
            nature = found.nature()
            for s in range(model.states):
                row = found.policy.row(s)
                ids = model.row_marginals[model.marginal_ptr[row] : model.marginal_ptr[row + 1]]
                for j, answer in zip(ids, nature.of(s), strict=True):
                    assert contains(model.marginals[int(j)], np.array(answer.probabilities))
            value = true_value(nature.chain(), spec)
            finite = np.isfinite(found.value)
            slack = 1e-8 * np.maximum(1.0, np.abs(found.value[finite]))
            assert np.all(value[finite] >= found.lower[finite] - slack), (seed, name)
            assert np.all(value[finite] <= found.upper[finite] + slack), (seed, name)


def test_answers_have_names():
    """An answer names its marginal and its outcomes."""
    found = solve(walk(), Spec(Reach("goal"), MAX, MIN))
    answers = found.nature().of(3)
    assert [len(a.outcomes) for a in answers] == [3, 2]
    assert answers[0].marginal.startswith("marginal")
    assert sum(answers[0].probabilities) == pytest.approx(1.0)


def test_answers_of_a_later_step():
    """With one step to go nature looks at the last reward only; there is no step after it."""
    found = solve(walk(), Spec(Cumulative(3, "cost"), MAX, MIN))
    assert found.nature(2).of(0) == ()
    with pytest.raises(ModelError, match=r"0\.\.2"):
        found.nature(3)
