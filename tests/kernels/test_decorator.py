"""How kernels are compiled: once, for every text of theirs, or not at all."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

import rfmdp
from processes import LIMIT, python
from recording import recorded
from rfmdp.kernels.oracle import curved_address
from rfmdp.kernels.sweep import row_span

# prints how many functions numba compiled
TAKE = """
import numpy as np
from numba.core import event
from rfmdp.kernels.sweep import row_span

x, i = np.zeros(1), np.arange(2)
with event.install_recorder("numba:compile") as log:
    row_span(i[:1], i, i[:1], x, x, x)
print(len(log.buffer))
"""


def compiled(cache, source=None):
    """Return how many functions a new process compiles for a kernel, with this cache."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    process = python(TAKE, env=environment)
    assert process.returncode == 0, process.stderr
    return int(process.stdout)


def test_a_kernel_is_compiled_once_for_a_text(tmp_path):
    """The second process reads machine code; after an edit in *another* file it compiles again."""
    source, cache = tmp_path / "source", tmp_path / "cache"
    shutil.copytree(Path(rfmdp.__file__).parent, source / "rfmdp")
    assert compiled(cache, source) > 0
    assert compiled(cache, source) == 0
    with open(source / "rfmdp" / "kernels" / "explorer.py", "a") as file:
        file.write("# edited\n")
    assert compiled(cache, source) > 0


def test_processes_compile_a_kernel_once(tmp_path):
    """Of two processes that need a kernel at the same time, one compiles and the other waits."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", TAKE], stdout=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    counts = sorted(int(process.communicate(timeout=LIMIT)[0]) for process in processes)
    assert counts[0] == 0 < counts[1]


def test_linear_algebra_of_others_compiles():
    """Compiled code of others in the same process has BLAS as ever."""
    product = njit(lambda left, right: np.dot(left, right))
    assert product(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 11.0


def test_functions_with_an_address_have_one():
    """Curved sets are minimised by a function that kernels call by its address."""
    assert curved_address() > 0


def test_compiled_code_calls_no_kernel():
    """A kernel is no step."""
    caller = njit(lambda x: row_span(np.arange(1), np.arange(2), np.arange(1), x, x, x))
    with pytest.raises(TypingError, match="row_span"):
        caller(np.zeros(1))


def test_recorded_calls_run_as_python():
    """Within the block kernels do their work, and the types of their arguments are kept."""
    x, i = np.array([5.0, 6.0, 0.0, 0.0]), np.array([0, 2])
    with recorded() as calls:
        row_span(i[:1], i, np.arange(2), x[:2], x[2:3], x[3:])
    assert x.tolist() == [5.0, 6.0, 5.0, 6.0]
    ((kernel, types),) = calls
    assert kernel is row_span
    kernel.compile(types)
    assert types in kernel.signatures


SOLVE = """
import sys
import rfmdp as rf

model = rf.parse_prism(sys.argv[1])
ball = rf.LpBall([0.2, 0.3, 0.5], 0.1, 2.0)
rows = [[([0, 0], [0, 1, 2] * 3)], [([], [1])], [([], [2])]]
curved = rf.FactoredMDP.from_rows(rows, [ball], labels={"goal": [False, True, False]})
for robust in (model, model.with_radius(0.1), curved):
    bounds = rf.solve(robust, 'Pmaxmin=? [ F "goal" ]').at_initial()
    print(bounds.lower, bounds.upper)
"""
COINS = """
mdp
module one
  x : [0..3] init 0;
  [go] x<2 -> 0.4 : (x'=x+1) + 0.5 : (x'=0) + 0.1 : (x'=3);
  [go] x>=2 -> true;
endmodule
module two = one [x=y] endmodule
label "goal" = x=2 & y=2;
"""


def test_everything_runs_without_numba():
    """`NUMBA_DISABLE_JIT=1` was a TypeError at import; the bounds enclose the same values."""
    bounds = []
    for switch in ("0", "1"):
        process = python(SOLVE, COINS, env={**os.environ, "NUMBA_DISABLE_JIT": switch})
        assert process.returncode == 0, process.stderr
        bounds.append(np.array([line.split() for line in process.stdout.splitlines()], float))
    (low, high), (plain_low, plain_high) = (pairs.T for pairs in bounds)
    assert len(low) == 3
    assert np.all(low <= plain_high)
    assert np.all(plain_low <= high)
    assert np.all(plain_high - plain_low <= 1e-6)
