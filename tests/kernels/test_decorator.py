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
from rfmdp.kernels.sweep import take_back


def test_kernels_leave_scipy_alone(tmp_path):
    """A kernel is compiled without scipy.linalg, which would take longer than a small model."""
    text = (
        "import sys; import numpy as np; from rfmdp.kernels.text import join_lines as kernel;"
        "kernel(np.zeros(1, np.uint8), *np.zeros((2, 1), np.int64), np.zeros(1, np.uint8));"
        "print(sum(kernel.stats.cache_misses.values()), 'scipy.linalg' in sys.modules)"
    )
    found = python(text, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})
    assert found.stdout.split() == ["1", "False"], found.stderr


def test_linear_algebra_of_others_compiles():
    """Compiled code of others in the same process has BLAS as ever."""
    product = njit(lambda left, right: np.dot(left, right))
    assert product(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 11.0


def test_reading_machine_code_imports_nothing_to_make_it(tmp_path):
    """A kernel from the cache comes without numba's compiler; one that is not there still comes.

    Nor is `numpy.ma` imported, which numba looks at for the type of every array.
    """
    text = (
        "import sys; import numpy as np;"
        "from rfmdp.kernels.text import join_lines; from rfmdp.kernels.sweep import take_back;"
        "byte = np.zeros(1, np.uint8); join_lines(byte, *np.zeros((2, 1), np.int64), byte);"
        "print('numba.np.arrayobj' in sys.modules or 'numpy.ma' in sys.modules);"
        "x = np.zeros(1, sys.argv[1]); take_back(x, x[:, None], x);"
        "print(len(take_back.signatures))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for kind, compiled in (("float64", True), ("float32", False)):
        found = python(text, kind, env=environment)
        assert found.stdout.split() == [str(compiled), "1"], found.stderr


def test_types_of_arguments_are_those_of_numba():
    """Arrays of any layout, read-only ones, tuples of them, and numbers."""
    matrix = np.zeros((3, 4))
    frozen = np.arange(3)
    frozen.flags.writeable = False
    arrays = (matrix, matrix.T, matrix[:, ::2], matrix[:0], frozen, np.zeros(2, np.bool_))
    for value in (*arrays, arrays, (matrix, (frozen, 1), 0.5), (matrix, matrix), 1, True, 0.5, ()):
        assert take_back.typeof_pyval(value) == typeof(value)


def test_addresses_of_stored_machine_code(tmp_path):
    """A kernel that is called by its address has one, compiled just now or read from the cache."""
    text = (
        "from rfmdp.kernels.curved import curved_address as address, curved_minimum as kernel;"
        "print(address() > 0, sum(kernel.stats.cache_hits.values()))"
    )
    for hits in (0, 1):
        found = python(text, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})
        assert found.stdout.split() == ["True", str(hits)], found.stderr


def test_compiled_code_calls_no_kernel():
    """A kernel within compiled code is refused: what is kept of it could not be linked."""
    caller = njit(lambda x: take_back(x, x[:, None], x))
    with pytest.raises(TypingError, match="take_back is a kernel; compiled code calls steps"):
        caller(np.zeros(1))


def test_processes_compile_a_kernel_once(tmp_path):
    """Of two processes that need a kernel at the same time, one compiles and the other waits."""
    text = (
        "import numpy as np; from rfmdp.kernels.text import join_lines as kernel;"
        "kernel(np.zeros(1, np.uint8), *np.zeros((2, 1), np.int64), np.zeros(1, np.uint8));"
        "print(sum(kernel.stats.cache_misses.values()))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    compiled = [int(process.communicate(timeout=LIMIT)[0]) for process in processes]
    assert sum(compiled) == 1


def test_copies_of_the_package_share_machine_code(tmp_path):
    """The same kernels in another place, as in a new environment, are not compiled again."""
    text = (
        "import numpy as np, rfmdp; from rfmdp.kernels.text import join_lines as kernel;"
        "kernel(np.zeros(1, np.uint8), *np.zeros((2, 1), np.int64), np.zeros(1, np.uint8));"
        "print(rfmdp.__file__, sum(kernel.stats.cache_misses.values()))"
    )
    for folder, misses in (("one", 1), ("two", 0)):
        shutil.copytree(os.path.dirname(rfmdp.__file__), tmp_path / folder / "rfmdp")
        environment = os.environ | {
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": str(tmp_path / folder),
        }
        found = python(text, env=environment)
        place = str(tmp_path / folder / "rfmdp" / "__init__.py")
        assert found.stdout.split() == [place, str(misses)], found.stderr
