"""How kernels are compiled: what they bring along."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from numba import njit, typeof
from numba.core.errors import TypingError

import rfmdp
from processes import LIMIT, python
from rfmdp.kernels.curved import curved_address
from rfmdp.kernels.sweep import take_back

JOIN = (
    "import sys; import numpy as np, rfmdp; from rfmdp.kernels.text import join_lines as kernel;"
    "kernel(np.zeros(1, np.uint8), *np.zeros((2, 1), np.int64), np.zeros(1, np.uint8));"
    "print(sum(kernel.stats.cache_misses.values()));"
)
TAKE = (
    "print('numba.np.arrayobj' in sys.modules or 'numpy.ma' in sys.modules);"
    "from rfmdp.kernels.sweep import take_back;"
    "x = np.zeros(1, sys.argv[1]); take_back(x, x[:, None], x);"
    "print(len(take_back.signatures));"
)
SCIPY = "print('scipy.linalg' in sys.modules)"


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Compile two kernels in a process; return the cache where they are now, and its words."""
    cache = str(tmp_path_factory.mktemp("cache"))
    found = python(JOIN + TAKE + SCIPY, "float64", env={**os.environ, "NUMBA_CACHE_DIR": cache})
    assert found.returncode == 0, found.stderr
    return cache, found.stdout.split()


def test_kernels_leave_scipy_alone(first):
    """A kernel is compiled without scipy.linalg, which would take longer than a small model."""
    _, (misses, *_, imported) = first
    assert (misses, imported) == ("1", "False")


def test_linear_algebra_of_others_compiles():
    """Compiled code of others in the same process has BLAS as ever."""
    product = njit(lambda left, right: np.dot(left, right))
    assert product(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 11.0


def test_reading_machine_code_imports_nothing_to_make_it(first):
    """A kernel from the cache comes without numba's compiler; one that is not there still comes.

    Nor is `numpy.ma` imported, which numba looks at for the type of every array.
    """
    cache, words = first
    assert words[:3] == ["1", "True", "1"]
    again = python(JOIN + TAKE, "float32", env={**os.environ, "NUMBA_CACHE_DIR": cache})
    assert again.stdout.split() == ["0", "False", "1"], again.stderr


def test_types_of_arguments_are_those_of_numba():
    """Arrays of any layout, read-only ones, tuples of them, and numbers."""
    matrix = np.zeros((3, 4))
    frozen = np.arange(3)
    frozen.flags.writeable = False
    arrays = (matrix, matrix.T, matrix[:, ::2], matrix[:0], frozen, np.zeros(2, np.bool_))
    for value in (*arrays, arrays, (matrix, (frozen, 1), 0.5), (matrix, matrix), 1, True, 0.5, ()):
        assert take_back.typeof_pyval(value) == typeof(value)


ADDRESS = (
    "from rfmdp.kernels.curved import curved_address as address, curved_minimum as kernel;"
    "print(address() > 0, sum(kernel.stats.cache_hits.values()))"
)


def test_addresses_of_stored_machine_code():
    """A kernel that is called by its address has one if it is read from the cache."""
    assert curved_address() > 0  # in the cache from now on
    found = python(ADDRESS)
    assert found.stdout.split() == ["True", "1"], found.stderr


@pytest.mark.slow
def test_addresses_of_new_machine_code(tmp_path):
    """The same if it was compiled just now."""
    found = python(ADDRESS, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})
    assert found.stdout.split() == ["True", "0"], found.stderr


def test_compiled_code_calls_no_kernel():
    """A kernel within compiled code is refused: what is kept of it could not be linked."""
    caller = njit(lambda x: take_back(x, x[:, None], x))
    with pytest.raises(TypingError, match="take_back is a kernel; compiled code calls steps"):
        caller(np.zeros(1))


def test_processes_compile_a_kernel_once(tmp_path):
    """Of two processes that need a kernel at the same time, one compiles and the other waits."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", JOIN], stdout=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    compiled = [int(process.communicate(timeout=LIMIT)[0]) for process in processes]
    assert sum(compiled) == 1


def test_copies_of_the_package_share_machine_code(first, tmp_path):
    """The same kernels in another place, as in a new environment, are not compiled again."""
    cache, (misses, *_) = first
    assert misses == "1"
    shutil.copytree(os.path.dirname(rfmdp.__file__), tmp_path / "rfmdp")
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(tmp_path)}
    found = python(JOIN + "print(rfmdp.__file__)", env=environment)
    assert found.stdout.split() == ["0", str(tmp_path / "rfmdp" / "__init__.py")], found.stderr
