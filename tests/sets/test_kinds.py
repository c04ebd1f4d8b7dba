"""The numbers of kinds, which three rooms write down."""

from rfmdp.kernels import layout
from rfmdp.sets.marginals import Kind
from rfmdp.verification import sets as checked


def test_kinds_have_one_number_each():
    """Kernels and the checker number kinds as files do."""
    for kind in Kind:
        assert getattr(layout, kind.name) == getattr(checked, kind.name) == kind.value
