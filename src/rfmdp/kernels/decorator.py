"""The four ways a kernel is compiled; all are cached on disk.

`kernel` is the ordinary one; `parallel_kernel` runs over rows on all threads; `inline_kernel` is
for small steps of a hot loop: passing an array to a compiled function costs seven words each.
`part_kernel` is for a large step with one caller: it is compiled as part of it. Otherwise every
caller up the chain would optimise all that is below it once more.
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
part_kernel = njit(inline="always", **_OPTIONS)
parallel_kernel = njit(parallel=True, **_OPTIONS)
