"""How kernels are compiled, and where the results are kept.

`kernel` is called from Python; its machine code is kept on disk. The others are steps of kernels:

inline_kernel   a step that becomes part of its callers
step_kernel     a large step with several callers, called; an array among its arguments costs
                seven words

Compiled code calls steps only, never kernels, and Python calls kernels. So steps are typed and
translated once, but not optimised, and made to machine code only as parts of kernels: doing so with
each by itself would take longer than all else.

Kernels work on the arrays that they are given. They allocate none and count no references: the
atomic counter of every array of every call would cost more than most steps. So tuples of arrays are
free to hand around.

The cache is a folder named by the text of all kernels. numba itself looks only at the file of a
kernel, not at those of the steps that it calls, and could answer with the code of an older version;
and it compiles anew where the same file lies elsewhere, in another environment or clone.
Of processes that need the same kernel at once, one compiles it and the others wait for the result.
"""

import gc
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite.binding import parse_assembly
from numba import _dynfunc, config, njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import TypingError
from numba.core.registry import CPUDispatcher
from numba.core.types.containers import BaseTuple
from numba.core.types.misc import unliteral
from numba.core.types.npytypes import Array
from numba.core.typing.typeof import Purpose, typeof
from numba.np import numpy_support

# Sums may be reassociated and fused, which lets them use vector units; the margins of
# `rounding` hold for every order of summation. NaN and infinity keep their meaning.
# _nrt: no reference counts (numba's runtime), see above. nogil: threads may run side by side.
# error_model: no hidden branch for division by zero. no_cfunc_wrapper: no entry point for C.
_OPTIONS: dict[str, Any] = {
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
}


def _import_without_scipy() -> None:
    """Import numba's array functions, for compiling, without scipy.linalg.

    numba imports it only to see that it is there, and once more before it compiles `np.dot` and
    the like. SciPy is a requirement of this package, so the first look is left out.
    """
    from numba.np import linalg

    look = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath
    finally:
        linalg.ensure_blas = look
    arraymath.ensure_blas = look


class _StepLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a step, as it was translated: the kernels that it goes into optimise it."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _StepCompiler(Compiler):  # type: ignore[misc]
    """numba's compiler, but for the way from its code to machine code."""

    def __init__(self, typing: Any, target: Any, _library: Any, *rest: Any) -> None:
        super().__init__(typing, target, _StepLibrary(target.codegen(), "step"), *rest)
        context = self.state.targetctx

        def declare_function(module: Any, function: Any) -> Any:
            made = context.declare_function(module, function)
            if not function.inline:  # it would be, for its many arguments, wherever it is called
                made.attributes.add("noinline")
            return made

        self.state.targetctx = context.subtarget(
            declare_function=declare_function, get_executable=_no_entry
        )


def _no_entry(library: Any, function: Any, environment: Any) -> Any:
    """Return what numba knows a function by, without an address that Python could call."""
    return _dynfunc.make_function(
        function.lookup_module(), function.qualname, "", 0, environment, (library,)
    )


class _Step(CPUDispatcher):  # type: ignore[misc]
    """A function compiled for others that are; called from Python it runs as Python."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a call is typed: a constant like any number, not as a type of its own."""
        return super().get_call_template([unliteral(kind) for kind in args], kws)

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function with an entry point for Python, compiled by one process at a time."""

    def _compilation_chain_init_hook(self) -> None:
        """Look for no extensions of numba in all installed packages: arrays need none."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Refuse to be called by compiled code."""
        name = self.py_func.__qualname__
        raise TypingError(f"{name} is a kernel; compiled code calls steps only.")

    def typeof_pyval(self, value: Any) -> Any:
        """Return the type of an argument; numba calls this for those that it has not seen yet."""
        return _type_of(value)

    def compile(self, signature: Any) -> Any:
        """Read the machine code for these types from the cache, or make it."""
        # numba's own lock first: a thread that has the kernel and waits for numba would otherwise
        # block one that has numba and waits for the kernel
        with global_compiler_lock, _alone(self.py_func), _no_collection():
            return super().compile(signature)


def _type_of(value: Any) -> Any:
    """Return the type of an argument as numba does, which imports `numpy.ma` to refuse its arrays.

    That is a twentieth of the time that a small model takes.
    """
    if type(value) is tuple:
        return BaseTuple.from_types([_type_of(part) for part in value])
    if type(value) is np.ndarray:
        dtype, layout = numpy_support.from_dtype(value.dtype), numpy_support.map_layout(value)
        return Array(dtype, value.ndim, layout, readonly=not value.flags.writeable)
    return typeof(value, Purpose.argument)


class _Place:
    """Where the machine code of a function lies: in the folder that the text of kernels names."""

    @classmethod
    def from_function(cls, _function: Callable[..., Any], _file: str) -> "_Place":
        """Return the place of a function; numba adds its module and name to those of its files."""
        return cls()

    def get_cache_path(self) -> str:
        """Return the folder."""
        return _FOLDER

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        os.makedirs(_FOLDER, exist_ok=True)

    def get_source_stamp(self) -> str:
        """Return what machine code must agree with: nothing, other texts have other folders."""
        return ""

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name in one module apart: there are none."""
        return ""


class _Placed(CompileResultCacheImpl):  # type: ignore[misc]
    """Keeps machine code, without the code that it was made of.

    numba keeps that for the callers that a function may have in compiled code, which kernels have
    not; reading it takes as long as all else. Only the names of the entry points stay.
    """

    _locator_classes = (_Place,)

    def reduce(self, result: Any) -> Any:
        """Return what is kept of a compiled function."""
        (name, form, (machine_code, _)), *rest = super().reduce(result)
        known = result.fndesc
        entries = {
            known.llvm_func_name, known.llvm_cpython_wrapper_name, known.llvm_cfunc_wrapper_name
        }  # fmt: skip
        names = sorted(entries & {f.name for f in result.library.get_defined_functions()})
        text = "".join(f'define void @"{entry}"() {{ ret void }}\n' for entry in names)
        return (name, form, (machine_code, parse_assembly(text).as_bitcode())), *rest


class _Cache(FunctionCache):  # type: ignore[misc]
    """Reads machine code without importing what it takes to make some, twice the time of reading.

    numba does so before it looks, and once more before it compiles.
    """

    _impl_class = _Placed

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the machine code for these types, or None."""
        found = self._load_overload(signature, target)
        if found is None:
            _import_without_scipy()
        return found


@contextmanager
def _alone(function: Callable[..., Any]) -> Iterator[None]:
    """Keep other processes from compiling this function; the end of a process frees it, too.

    Where the system cannot lock files, all compile.
    """
    try:
        import fcntl

        os.makedirs(_FOLDER, exist_ok=True)
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
    return os.path.join(_FOLDER, f"{function.__module__}.{function.__qualname__}.lock")


def was_compiled(kernel: Any) -> bool:
    """Return whether a kernel has been compiled here, if only for other types, or is just now."""
    return bool(kernel.signatures) or os.path.exists(_lock(kernel.py_func))


@contextmanager
def recorded() -> Iterator[list[tuple[Any, tuple[Any, ...]]]]:
    """Run kernels as Python within the block; yields a list of (kernel, types of its arguments).

    `kernel.compile(types)` is what the call would have compiled.
    """
    calls: list[tuple[Any, tuple[Any, ...]]] = []

    def call(kernel: Any, *arguments: Any) -> Any:
        calls.append((kernel, tuple(kernel.typeof_pyval(value) for value in arguments)))
        with np.errstate(all="ignore"):
            return kernel.py_func(*arguments)

    _Kernel.__call__ = call
    try:
        yield calls
    finally:
        del _Kernel.__call__


@contextmanager
def _no_collection() -> Iterator[None]:
    """Make no search for garbage: a tenth of the time of compiling, which makes little of it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _step(inline: bool) -> Callable[[Callable[..., Any]], Any]:
    options = {**_OPTIONS, "no_cpython_wrapper": True, "forceinline": inline}

    def decorate(function: Callable[..., Any]) -> Any:
        made = njit(pipeline_class=_StepCompiler, **options)(function)
        made.__class__ = _Step
        return made

    return decorate


inline_kernel = _step(inline=True)
step_kernel = _step(inline=False)


def kernel(function: Callable[..., Any], options: dict[str, Any] = _OPTIONS) -> Any:
    """Compile a function when it is first called, or read it from the cache."""
    made = njit(**options)(function)
    made.__class__ = _Kernel
    made._cache = _Cache(function)
    return made


def addressed_kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that compiled code calls by its address."""
    return kernel(function, {**_OPTIONS, "no_cfunc_wrapper": False})


def cache_folder() -> str:
    """Return the folder of the compiled kernels of this version.

    It is below NUMBA_CACHE_DIR if that is set, else in the user's cache.
    """
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for path in [*sorted(here.glob("*.py")), here.parent / "rounding.py"]:
        digest.update(path.read_bytes())
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    base = config.CACHE_DIR or _writable(os.path.join(home, "rfmdp"))
    return os.path.join(base, f"kernels-{digest.hexdigest()[:16]}")


def _writable(folder: str) -> str:
    """Return the folder, or one of this user among the temporary files if it cannot be written."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return os.path.join(tempfile.gettempdir(), f"rfmdp-{os.getuid()}")
    return folder


_FOLDER = cache_folder()
