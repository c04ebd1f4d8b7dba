"""States as integers: a valuation of bounded variables packed by mixed radix.

code = sum_i (x_i - low_i) * stride_i, the first variable most significant, so that codes sort
as valuations do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import Variable, state_text
from rfmdp.model.packing import with_ranges
from rfmdp.types import AnyArray, IntArray

MAX_DOMAIN = 2**62


class Codec:
    """The packing of valuations of some variables.

    Examples
    --------
    >>> codec = Codec([Variable("x", 1, 3), Variable("up", 0, 1, boolean=True)])
    >>> codec.domain
    6
    >>> codec.pack(np.array([[1, 0], [3, 1]])).tolist()
    [0, 5]
    >>> codec.unpack(np.array([5])).tolist()
    [[3, 1]]
    """

    __slots__ = ("domain", "low", "radix", "stride", "variables")

    def __init__(self, variables: Iterable[Variable]) -> None:
        self.variables = with_ranges(variables)
        radix = [v.high - v.low + 1 for v in self.variables]
        self.domain = math.prod(radix)
        if self.domain > MAX_DOMAIN:
            sizes = ", ".join(f"{v.name} {r}" for v, r in zip(self.variables, radix, strict=True))
            raise ModelError(
                f"The product of the variables' ranges must be at most 2^62, got {self.domain:.3g} "
                f"({sizes}). Give the largest ones tighter bounds."
            )
        self.low = np.array([v.low for v in self.variables], dtype=np.int64)
        self.radix = np.array(radix, dtype=np.int64)
        strides = [math.prod(radix[i + 1 :]) for i in range(len(radix))]
        self.stride = np.array(strides, dtype=np.int64)

    def pack(self, valuations: AnyArray) -> IntArray:
        """Return the codes (N,) of valuations (N, vars) that lie within the ranges."""
        codes = np.zeros(len(valuations), dtype=np.int64)
        for i, (low, stride) in enumerate(zip(self.low, self.stride, strict=True)):
            codes += (valuations[:, i] - low) * stride
        return codes

    def unpack(self, codes: IntArray) -> IntArray:
        """Return the valuations (N, vars) of codes (N,); columns are contiguous."""
        valuations = np.empty((len(codes), len(self.variables)), dtype=np.int64, order="F")
        for i, (low, radix, stride) in enumerate(
            zip(self.low, self.radix, self.stride, strict=True)
        ):
            valuations[:, i] = codes // stride % radix + low
        return valuations

    def name(self, code: int) -> str:
        """Return a state as `(x=1, y=0)` for messages."""
        values = self.unpack(np.array([code], dtype=np.int64))[0]
        return state_text((v.name for v in self.variables), values)
