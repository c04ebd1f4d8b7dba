"""Kernels run as Python, and what would have been compiled."""

from contextlib import contextmanager

import pytest
from numba import typeof

from rfmdp.kernels.decorator import Kernel


@contextmanager
def recorded():
    """Run kernels as Python within the block; yields a list of (kernel, types of its arguments).

    `kernel.compile(types)` is what the call would have compiled.
    """
    calls = []

    def call(kernel, *arguments):
        calls.append((kernel, tuple(typeof(value) for value in arguments)))
        return kernel.as_python(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__call__", call)
        yield calls
