"""Pictures: what is drawn is what was computed."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from rfmdp.sets.families import Interval


@pytest.fixture(scope="module")
def pictures():
    """Return what the script of the documentation's pictures defines."""
    return runpy.run_path(str(Path(__file__).parents[2] / "docs" / "pictures.py"))


def test_relaxations_contain_the_product(pictures):
    """Outlines of interval arithmetic and of McCormick hold the product, which is not convex."""
    first, second = Interval([0.2, 0.4], [0.6, 0.8]), Interval([0.3, 0.2], [0.8, 0.7])
    sheet = pictures["joint_distributions"](first, second, 7)
    for name in ("_interval_outline", "_mccormick_outline"):
        outline = pictures[name](first, second)
        edge = np.roll(outline, -1, axis=0) - outline
        for point in sheet[..., [0, 3]].reshape(-1, 2):
            to = point - outline
            side = edge[:, 0] * to[:, 1] - edge[:, 1] * to[:, 0]
            assert np.all(side >= -1e-12) or np.all(side <= 1e-12)
    both, first_only, second_only, neither = 0.5 * (sheet[0, 0] + sheet[-1, -1])
    assert abs(both * neither - first_only * second_only) > 0.01


def test_the_documentation_has_every_picture(pictures):
    """Each is drawn, and shown on the page."""
    page = (Path(__file__).parents[2] / "docs" / "exact.md").read_text()
    drawn = pictures["explanations"]()
    assert len(drawn) == 3
    for name, axes in drawn.items():
        assert axes.get_children()
        assert f"(pictures/{name}.png)" in page
