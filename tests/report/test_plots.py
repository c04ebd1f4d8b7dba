"""Pictures: what is drawn is what was computed."""

import numpy as np
import pytest

from policies.test_files import SPEC, grid
from rfmdp.errors import ModelError
from rfmdp.inner.exact import Exact
from rfmdp.inner.interval import IntervalArithmetic
from rfmdp.inner.sequential import Sequential
from rfmdp.report import plots
from rfmdp.sets.families import Interval
from rfmdp.solving import compare, solve


def test_values_of_every_method_are_drawn():
    """One line per method, with the guarantee of every radius."""
    nominal = grid().nominal()
    inners = [Exact(), IntervalArithmetic()]
    records = {r: compare(nominal.with_radius(r), SPEC, inners) for r in (0.01, 0.05)}
    axes = plots.value_against_radius(records)
    assert [line.get_label() for line in axes.lines] == ["exact", "interval"]
    assert axes.lines[0].get_ydata().tolist() == [records[r][0].value for r in (0.01, 0.05)]


def test_heat_map_has_the_guarantee_of_every_state():
    """A cell per state, at its variables."""
    solution = solve(grid(), SPEC)
    axes = plots.heat_map(solution, "x", "up")
    image = axes.images[0].get_array()
    for state, (x, up) in enumerate(solution.model.valuations):
        assert image[up, x] == solution.guarantee[state]


def test_unknown_variables_are_refused():
    """The known ones are in the message."""
    with pytest.raises(ModelError, match="no variable z; it has: x, up"):
        plots.heat_map(solve(grid(), SPEC), "x", "z")


def area(outline):
    """Return the area of a polygon."""
    x, y = outline.T
    return 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))


def test_relaxations_contain_the_product():
    """The outline of interval arithmetic is larger than McCormick's, both hold the product."""
    first, second = Interval([0.2, 0.4], [0.6, 0.8]), Interval([0.3, 0.2], [0.8, 0.7])
    loose, tight = (f(first, second) for f in (plots._interval_outline, plots._mccormick_outline))
    assert area(loose) > area(tight) > 0.0
    for p in np.linspace(0.2, 0.6, 7):
        for q in np.linspace(0.3, 0.8, 7):
            point = np.array([p * q, (1 - p) * (1 - q)])
            for outline in loose, tight:
                edge = np.roll(outline, -1, axis=0) - outline
                to = point - outline
                side = edge[:, 0] * to[:, 1] - edge[:, 1] * to[:, 0]
                assert np.all(side >= -1e-12) or np.all(side <= 1e-12)
    assert plots.product_set(first, second).get_legend() is not None


def test_the_product_is_a_sheet_of_independent_factors_and_not_convex():
    """All points of the sheet are products; the middle of two opposite corners is none."""
    first, second = Interval([0.2, 0.3], [0.9, 0.8]), Interval([0.3, 0.2], [0.8, 0.7])
    sheet = plots.joint_distributions(first, second, 5)

    def dependence(x):
        return x[..., 0] * x[..., 3] - x[..., 1] * x[..., 2]

    assert np.allclose(sheet.sum(axis=-1), 1.0)
    assert np.allclose(dependence(sheet), 0.0)
    assert abs(dependence(0.5 * (sheet[0, 0] + sheet[-1, -1]))) > 0.01
    firsts = sheet[..., 0] + sheet[..., 1]
    assert firsts.min() == pytest.approx(0.2)
    assert firsts.max() == pytest.approx(0.7)  # 0.9 is no member: the other outcome has 0.3
    axes = plots.product_surface(first, second)
    corners = sheet[[0, -1, 0, -1], [0, -1, -1, 0]] @ plots.TETRAHEDRON
    dashed = [line.get_data_3d() for line in axes.lines if line.get_linestyle() == "--"]
    assert np.allclose(np.hstack(dashed).T, corners)
    line = plots.marginal_sets(first, second).lines[1]
    assert np.allclose(line.get_xdata(), [0.2, 0.7])
    with pytest.raises(ModelError, match="two outcomes"):
        plots.marginal_sets(first, Interval([0.1] * 3, [0.8] * 3))


def test_gaps_of_the_exact_method_are_zero():
    """All rows of the exact method lie in the first bin, those of a relaxation need not."""
    solution = solve(grid(), SPEC)
    axes = plots.gap_histogram(solution.model, solution.value, [Exact(), Sequential()])
    heights = axes.patches[0].get_xy()[:, 1]
    rows = np.count_nonzero(np.diff(solution.model.marginal_ptr))
    assert heights[1] == rows == heights.max()


def test_graph_has_a_box_per_state():
    """Small models are drawn, large ones refused."""
    axes = plots.policy_graph(solve(grid(), SPEC))
    assert any("x=4" in text.get_text() for text in axes.texts)
    with pytest.raises(ModelError, match="up to 60 states"):
        plots.policy_graph(solve(grid(N=100), SPEC))
