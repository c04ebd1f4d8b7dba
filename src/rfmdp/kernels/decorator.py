"""How kernels are compiled, by what numba documents, and where the results are kept.

`kernel` is called from Python; its machine code is kept on disk. The others are steps of kernels,
which are plain functions for Python:

inline_kernel   a step that becomes part of its callers
step_kernel     a large step with several callers, called; an array among its arguments costs
                seven words

Compiled code calls steps only, never kernels, and Python calls kernels.

Kernels work on the arrays that they are handed. They allocate none and count no references: the
atomic counter of every array of every call would cost more than most steps. So tuples of arrays are
free to hand around.

Of processes that need the same kernel at once, one compiles it and the others wait for the result.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numba import cfunc, config, njit, typeof
from numba.extending import register_jitable

from rfmdp.kernels.cache import cache_folder

# Sums may be reassociated and fused, which lets them use vector units; the margins of
# `rounding` hold for every order of summation. NaN and infinity keep their meaning.
# _nrt: no reference counts (numba's runtime), see above. nogil: threads may run side by side.
# error_model: no hidden branch for division by zero.
_OPTIONS: dict[str, Any] = {
    "_nrt": False,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
}
_NO_ENTRY = {"no_cfunc_wrapper": True}  # for C, which calls none of them
_one_thread = threading.Lock()
_calls: list[tuple["Kernel", tuple[Any, ...]]] | None = None  # of `recorded`


class Kernel:
    """A function that is compiled when it is first called, or read from the cache."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code."""
        if _calls is not None:
            _calls.append((self, tuple(typeof(value) for value in arguments)))
            return self.as_python(*arguments)
        if self._compiled is None:
            if config.DISABLE_JIT:
                return self.as_python(*arguments)
            self.compile(tuple(typeof(value) for value in arguments))
        return self._compiled(*arguments)

    def as_python(self, *arguments: Any) -> Any:
        """Run the text: hashes overflow by design, quotients that do not exist are nan."""
        with np.errstate(all="ignore"):
            return self.py_func(*arguments)

    def compile(self, types: tuple[Any, ...]) -> None:
        """Read the machine code for these types of arguments from the cache, or make it."""
        with _alone(self.py_func):
            compiled = self._compiled
            if compiled is None:
                with _folder():
                    compiled = njit(cache=True, **_OPTIONS, **_NO_ENTRY)(self.py_func)
            compiled.compile(types)
            self._compiled = compiled

    @property
    def signatures(self) -> list[Any]:
        """The types of arguments that it is compiled for, in this process."""
        return [] if self._compiled is None else list(self._compiled.signatures)


kernel = Kernel


def inline_kernel(function: Callable[..., Any]) -> Any:
    """Make a step that becomes part of its callers."""
    return register_jitable(forceinline=True, **_OPTIONS, **_NO_ENTRY)(function)


def step_kernel(function: Callable[..., Any]) -> Any:
    """Make a step that is called."""
    return register_jitable(**_OPTIONS, **_NO_ENTRY)(function)


def address_of(function: Callable[..., Any], signature: Any) -> int:
    """Compile a function that compiled code calls by its address, or read it; return the address.

    There is none where numba is switched off.
    """
    if config.DISABLE_JIT:
        return 0
    with _alone(function), _folder():
        return int(cfunc(signature, cache=True, **_OPTIONS)(function).address)


def was_compiled(kernel: Kernel) -> bool:
    """Return whether a kernel has been compiled here, if only for other types, or is just now."""
    return bool(kernel.signatures) or os.path.exists(_lock(kernel.py_func))


@contextmanager
def recorded() -> Iterator[list[tuple[Kernel, tuple[Any, ...]]]]:
    """Run kernels as Python within the block; yields a list of (kernel, types of its arguments).

    `kernel.compile(types)` is what the call would have compiled.
    """
    global _calls
    calls: list[tuple[Kernel, tuple[Any, ...]]] = []
    _calls = calls
    try:
        yield calls
    finally:
        _calls = None


@contextmanager
def _folder() -> Iterator[None]:
    """Have numba keep what is decorated within the block in the folder of the kernels."""
    with _one_thread:
        before = config.CACHE_DIR
        config.CACHE_DIR = cache_folder()
        try:
            yield
        finally:
            config.CACHE_DIR = before


@contextmanager
def _alone(function: Callable[..., Any]) -> Iterator[None]:
    """Keep other processes from compiling this function; the end of a process frees it, too.

    Where the system cannot lock files, all compile.
    """
    try:
        import fcntl

        os.makedirs(cache_folder(), exist_ok=True)
        lock = os.open(_lock(function), os.O_CREAT | os.O_RDWR, 0o600)
    except (ImportError, OSError):
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _lock(function: Callable[..., Any]) -> str:
    return os.path.join(cache_folder(), f"{function.__module__}.{function.__qualname__}.lock")
