"""Numbers and orders by counting, against those by sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rfmdp.ragged import renumbered, stable_order


@given(st.lists(st.integers(0, 10**6)), st.sampled_from([10**7, 70_000, 50]))
def test_codes_are_numbered_and_ordered_as_by_sorting(codes, largest):
    """Counting and sorting give the same numbers and the same order."""
    codes = np.array(codes, dtype=np.int64) % largest
    assert np.array_equal(renumbered(codes), np.unique(codes, return_inverse=True)[1])
    assert np.array_equal(stable_order(codes), np.argsort(codes, kind="stable"))
