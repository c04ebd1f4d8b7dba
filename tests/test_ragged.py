"""Numbers, orders and products of ragged arrays, against plain twins."""

import math

import numpy as np
from hypothesis import given, strategies as st

from rfmdp.ragged import LARGEST, renumbered, segment_product, stable_order, starts


@given(st.lists(st.integers(0, 10**6)), st.sampled_from([10**7, 70_000, 50]))
def test_codes_are_numbered_and_ordered_as_by_sorting(codes, largest):
    """Counting and sorting give the same numbers and the same order."""
    codes = np.array(codes, dtype=np.int64) % largest
    assert np.array_equal(renumbered(codes), np.unique(codes, return_inverse=True)[1])
    assert np.array_equal(stable_order(codes), np.argsort(codes, kind="stable"))


@given(st.lists(st.lists(st.sampled_from([1, 2, 3, 7, 1000, 10**6, 10**9]), max_size=60)))
def test_products_of_segments_are_those_of_integers(segments):
    """Small products are taken in floats, large ones step by step up to the largest."""
    values = np.array([x for segment in segments for x in segment], dtype=np.int64)
    found = segment_product(values, starts([len(segment) for segment in segments]))
    assert found.tolist() == [min(math.prod(segment), LARGEST) for segment in segments]
