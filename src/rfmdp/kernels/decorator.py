"""How kernels are compiled, and where the results are kept.

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

numba is imported when the first kernel is compiled. A command may have it wait (`interpreting`):
a tiny model is solved by the text of kernels before numba would be there.

The folder of compiled kernels has a name for each text of all kernels, because numba looks at the
file of a kernel to see whether its machine code is stale, not at the files of the steps that it
calls. numba's files are pickles: who writes to the folder runs code as the user who reads it. So a
folder is used only if it is no link, belongs to this user, and nobody else may enter it.
"""

import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

VARIABLE = "NUMBA_CACHE_DIR"  # where numba keeps machine code; a user who sets it trusts the folder
SMALL = 40_000  # entries that Python goes through in a tenth of a second, about
CALLS = 400  # of kernels, after which machine code would have been quicker

# Sums may be reassociated and fused, which lets them use vector units; the margins of
# `rounding` hold for every order of summation. NaN and infinity keep their meaning.
# nogil: threads may run side by side. error_model: no hidden branch for division by zero.
# _nrt: no reference counts (numba's runtime), see above. It is the one option that numba has but
# does not document (its issue 1204), and nothing documented does the same: with the counts, Frozen
# Lake at radius 0.025 takes 2.2 s instead of 1.0 s to solve.
_OPTIONS: dict[str, Any] = {
    "_nrt": False,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
}
_NO_ENTRY = {"no_cfunc_wrapper": True}  # for C, which calls none of them
_one_thread = threading.Lock()
_patience = 0  # calls that are left to run as Python, see `interpreting`
_before: list[Callable[[], object]] = []  # what has to be done before something is compiled


class Kernel:
    """A function that is compiled when it is first called, or read from the cache."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code."""
        if self._compiled is None:
            if _disabled() or _is_interpreted():
                return self.as_python(*arguments)
            from numba import typeof

            self.compile(tuple(typeof(value) for value in arguments))
        return self._compiled(*arguments)

    def as_python(self, *arguments: Any) -> Any:
        """Run the text: hashes overflow by design, quotients that do not exist are nan."""
        with np.errstate(all="ignore"):
            return self.py_func(*arguments)

    def compile(self, types: tuple[Any, ...]) -> None:
        """Read the machine code for these types of arguments from the cache, or make it."""
        _get_ready()
        from numba import njit

        with _alone(self.py_func):
            compiled = self._compiled
            if compiled is None:
                compiled = njit(cache=True, **_OPTIONS, **_NO_ENTRY)(self.py_func)
            compiled.compile(types)
            self._compiled = compiled

    @property
    def signatures(self) -> list[Any]:
        """The types of arguments that it is compiled for, in this process."""
        return [] if self._compiled is None else list(self._compiled.signatures)


kernel = Kernel


def step_kernel(function: Callable[..., Any], **more: bool) -> Any:
    """Make a step that is called."""

    def register() -> None:
        from numba.extending import register_jitable

        register_jitable(**_OPTIONS, **_NO_ENTRY, **more)(function)

    _before.append(register)
    return function


def inline_kernel(function: Callable[..., Any]) -> Any:
    """Make a step that becomes part of its callers."""
    return step_kernel(function, forceinline=True)


def before_compiling(prepare: Callable[[], object]) -> Callable[[], object]:
    """Call something before a kernel is compiled, or read, the next time; numba is there then."""
    _before.append(prepare)
    return prepare


@contextmanager
def when_compiling(prepare: Callable[[], object]) -> Iterator[None]:
    """Within the block, call something before a kernel is compiled or read for the first time."""
    before_compiling(prepare)
    try:
        yield
    finally:
        if prepare in _before:
            _before.remove(prepare)


def _get_ready() -> None:
    while _before:
        _before.pop(0)()


def address_of(function: Callable[..., Any], signature: Any) -> int:
    """Compile a function that compiled code calls by its address, or read it; return the address.

    There is none where numba is switched off.
    """
    if _disabled():
        return 0
    _get_ready()
    from numba import cfunc

    with _alone(function):
        return int(cfunc(signature, cache=True, **_OPTIONS)(function).address)


def _disabled() -> bool:
    """Return whether numba is switched off, by the variable that it documents."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


@contextmanager
def interpreting() -> Iterator[None]:
    """Run kernels as Python within the block, as long as there is little to do, see `expect`."""
    global _patience
    _patience = CALLS
    try:
        yield
    finally:
        _patience = 0


def expect(entries: int) -> None:
    """Take note of work that comes next: kernels are compiled from now on if it is not little.

    entries : what the innermost loops of kernels will go through, about
    """
    global _patience
    if entries > SMALL:
        _patience = 0


def budget(entries: int) -> int:
    """Return how many of some entries to go through at once: a few as long as kernels are text.

    What is not done by then is worth compiling.
    """
    return SMALL if _patience else entries


def _is_interpreted() -> bool:
    global _patience
    _patience = max(_patience - 1, 0)
    return _patience > 0


@contextmanager
def _alone(function: Callable[..., Any]) -> Iterator[None]:
    """Keep all others from compiling within the block; numba uses the folder of the kernels there.

    Other processes wait for this function only; the end of a process frees it, too. Where the
    system cannot lock files, all compile.
    """
    from numba import config

    with ExitStack() as held:
        with suppress(ImportError, OSError):
            import fcntl

            os.makedirs(cache_folder(), exist_ok=True)
            name = f"{function.__module__}.{function.__qualname__}.lock"
            lock = os.open(os.path.join(cache_folder(), name), os.O_CREAT | os.O_RDWR, 0o600)
            held.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
        held.enter_context(_one_thread)
        held.callback(setattr, config, "CACHE_DIR", config.CACHE_DIR)
        config.CACHE_DIR = cache_folder()
        yield


@cache
def cache_folder() -> str:
    """Return the folder of the compiled kernels of this version."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for path in [*sorted(here.glob("*.py")), here.parent / "rounding.py"]:
        digest.update(path.read_bytes())
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    base = os.environ.get(VARIABLE) or private_folder(os.path.join(home, "rfmdp-kernels"))
    return os.path.join(base, f"kernels-{digest.hexdigest()[:16]}")


def private_folder(folder: str) -> str:
    """Return a folder that only this user can enter.

    It is `folder`, else one of this user among the temporary files, else a new one that ends with
    the process.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    for path in (folder, os.path.join(tempfile.gettempdir(), f"rfmdp-{user}")):
        if _is_private(path):
            return path
    return _temporary().name


def _is_private(folder: str) -> bool:
    """Make the folder if there is none; return whether it is this user's alone, and writable."""
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        if not os.path.lexists(folder):
            os.mkdir(folder, 0o700)
        state = os.lstat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(state.st_mode) or not os.access(folder, os.W_OK):
        return False
    if not hasattr(os, "getuid"):  # Windows has other rules for who may enter
        return True
    return state.st_uid == os.getuid() and stat.S_IMODE(state.st_mode) == 0o700


@cache
def _temporary() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="rfmdp-")
