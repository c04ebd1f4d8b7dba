"""The three ways a kernel is compiled; all are cached on disk.

`kernel` is the ordinary one; `parallel_kernel` runs over rows on all threads; `inline_kernel` is
for small steps of a hot loop: passing an array to a compiled function costs seven words each.
"""

from numba import njit

# Sums may be reassociated and fused, which lets them use vector units; the margins of
# `rounding` hold for every order of summation. NaN and infinity keep their meaning.
# nogil: threads may run side by side. error_model: no hidden branch for division by zero.
_OPTIONS = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
}

kernel = njit(**_OPTIONS)
inline_kernel = njit(forceinline=True, **_OPTIONS)
parallel_kernel = njit(parallel=True, **_OPTIONS)
