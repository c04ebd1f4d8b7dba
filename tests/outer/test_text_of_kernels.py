"""Solving by the text of kernels, as commands do with tiny models, beside machine code."""

import numpy as np
import pytest

from narrow import require_narrow
from recording import recorded
from rfmdp.outer.solution import Status
from rfmdp.solving import solve
from rfmdp.verification.solution import verify

from .random_specs import specs, tiny_model


@pytest.mark.parametrize("seed", range(40))
def test_python_and_machine_code_bound_the_same_value(seed):
    """Both are proofs of one value, so their bounds overlap; both end alike and are verified."""
    model = tiny_model(seed)
    choices = [spec for _, spec in specs()]
    spec = choices[seed % len(choices)]
    compiled = solve(model, spec)
    with recorded() as calls:
        text = solve(model, spec)
    assert calls or not compiled.stats.rows
    assert text.status is compiled.status
    assert text.status is not Status.CERTIFIED or require_narrow(text)
    assert text.lower is not None
    assert text.upper is not None
    assert np.all(text.lower <= compiled.upper)
    assert np.all(compiled.lower <= text.upper)
    assert not verify(text).failed
