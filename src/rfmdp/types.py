"""Array types, one name each."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Int32Array: TypeAlias = NDArray[np.int32]
Int8Array: TypeAlias = NDArray[np.int8]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]


def frozen(array: AnyArray) -> AnyArray:
    """Return `array` as a read-only view, so that frozen structs are frozen."""
    view = array.view()
    view.flags.writeable = False
    return view
