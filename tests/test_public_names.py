import subprocess
import sys

import rfmdp


def test_every_public_name_can_be_imported():
    """The lazy table and `__all__` agree, and every name exists where the table says."""
    assert sorted(rfmdp._HOME) == sorted(rfmdp.__all__)
    for name in rfmdp.__all__:
        # submodules such as rfmdp.solve share a name with their function: the function wins
        assert not isinstance(rfmdp.__getattr__(name), type(sys)), name


def test_import_loads_nothing_heavy():
    """`import rfmdp` stays quick because no heavy library is imported by it."""
    heavy = "numpy", "numba", "scipy", "lark", "matplotlib", "highspy"
    code = f"import sys, rfmdp; print([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_submodules_do_not_hide_functions():
    """`rfmdp.solve` and `rfmdp.learn` are functions, also after their modules were imported."""
    code = (
        "import rfmdp, rfmdp.solve, rfmdp.learn.loop; from rfmdp import solve, learn;"
        "print(callable(rfmdp.solve), callable(rfmdp.learn), callable(solve), callable(learn))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["True"] * 4
