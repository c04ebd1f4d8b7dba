from types import ModuleType

import rfmdp
from processes import python


def test_every_public_name_can_be_imported():
    """Every name of the stub exists where the stub says, and no module hides it."""
    assert rfmdp.__all__
    for name in rfmdp.__all__:
        assert not isinstance(getattr(rfmdp, name), ModuleType), name


def test_import_loads_nothing_heavy():
    """`import rfmdp` stays quick because no heavy library is imported by it."""
    heavy = "numpy", "numba", "scipy", "lark", "matplotlib", "highspy"
    code = f"import sys, rfmdp; print([m for m in {heavy!r} if m in sys.modules])"
    assert python(code).stdout.strip() == "[]"
