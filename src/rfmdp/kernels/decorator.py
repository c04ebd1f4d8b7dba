"""The two ways a kernel is compiled; both are cached on disk."""

from numba import njit

# error_model="numpy": no hidden branch for division by zero; nogil: threads may run side by side
kernel = njit(cache=True, nogil=True, error_model="numpy")
parallel_kernel = njit(cache=True, nogil=True, error_model="numpy", parallel=True)
