"""How kernels are compiled: what they bring along."""

import os
import shutil
import subprocess
import sys

import numpy as np
from numba import njit

import rfmdp.kernels.graph
from processes import LIMIT, python


def test_kernels_leave_scipy_alone():
    """A kernel runs without scipy.linalg, which would take longer than a small model."""
    text = (
        "import sys; import rfmdp.kernels.graph;"
        "from numba.core.registry import cpu_target;"
        "cpu_target.typing_context.refresh(); cpu_target.target_context.refresh();"
        "print('scipy.linalg' in sys.modules)"
    )
    found = python(text)
    assert found.stdout.strip() == "False", found.stderr


def test_linear_algebra_of_others_compiles():
    """Compiled code of others in the same process has BLAS as ever."""
    product = njit(lambda left, right: np.dot(left, right))
    assert product(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 11.0


def test_reading_machine_code_imports_nothing_to_make_it(tmp_path):
    """A kernel from the cache comes without numba's compiler; one that is not there still comes."""
    text = (
        "import sys; import numpy as np;"
        "from rfmdp.kernels.text import join_lines; from rfmdp.kernels.frontier import place_rows;"
        "byte = np.zeros(1, np.uint8); join_lines(byte, *np.zeros((2, 1), np.int64), byte);"
        "print('numba.np.random.generator_core' in sys.modules);"
        "place_rows(*[np.zeros(1, sys.argv[1])] * 4); print(len(place_rows.signatures))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for kind, compiled in (("int64", True), ("int32", False)):
        found = python(text, kind, env=environment)
        assert found.stdout.split() == [str(compiled), "1"], found.stderr


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
