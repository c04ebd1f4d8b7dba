"""Sizes, optima and properties of all versions of the domains."""

import numpy as np
import pytest

from rfmdp.answers.property import parse_property
from rfmdp.domains import DOMAINS, domain, domain_spec, published_bounds
from rfmdp.errors import ModelError, PrismError
from rfmdp.solving import solve

SMALL = {
    "aircraft": {"maxX": 8, "maxY": 9},
    "drone": {"n": 4, "maxY": 4, "targetX": 3, "targetZ": 3},
    "frozen_lake": {"size": 8},
    "stock_trading": {"T": 3},
    "sysadmin": {"N": 3, "T": 3},
}
# sizes of the published ones are those of `test_published`
LARGE = [("drone", "published"), ("drone", "textbook"), ("sysadmin", "published")]
VERSIONS = [
    pytest.param(name, version, marks=pytest.mark.slow if (name, version) in LARGE else [])
    for name, found in DOMAINS.items()
    for version in found.versions
]


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_sizes_and_optima_are_the_published_ones(name, version):
    """States and transitions, unmerged branches counted, and values without uncertainty."""
    known, model = DOMAINS[name].versions[version], domain(name, instance=version)
    assert (model.states, model.transitions) == (known.states, known.transitions)
    if known.optimum is not None:
        bounds = solve(model, domain_spec(name)).require_certified().at_initial()
        # the reference values have six digits; those of learning come from stopped iterations
        digits = {"rel": 1e-5} if version == "learning" else {"abs": 1e-6}
        assert bounds.lower == pytest.approx(known.optimum, **digits)
        assert bounds.upper == pytest.approx(known.optimum, **digits)


def test_small_drone_with_all_moves_held_back():
    """With the border closed the learning instance of Drone loses half its value."""
    model = domain("drone", instance="learning", maxY=5)
    assert model.states == 5**6  # three coordinates of two drones
    bounds = solve(model, domain_spec("drone")).require_certified().at_initial()
    # Storm (stormpy 2.0.0, sound value iteration): 0.06896552; the published one has 0.14000
    assert bounds.lower - 1e-8 <= 0.06896552 <= bounds.upper + 1e-8
    assert bounds.width < 1e-6


@pytest.mark.parametrize("name", [n for n in DOMAINS if n != "herman"])
def test_property_text_and_specification_agree(name):
    """The text is the specification of the table; Herman's text also takes the worst start."""
    model = domain(name, **SMALL.get(name, {})).with_radius(0.02)
    by_text = solve(model, parse_property(DOMAINS[name].prop)).at_initial()
    by_table = solve(model, domain_spec(name)).at_initial()
    assert (by_text.lower, by_text.upper) == (by_table.lower, by_table.upper)


def test_a_bare_name_is_the_published_model():
    """Its radius has the published oddities; the command line hands it in as a text."""
    model = domain("chain", radius="0.02")
    twin = published_bounds("chain", domain("chain", instance="published"), 0.02)
    assert np.array_equal(model.marginals.upper, twin.marginals.upper)
    plain = domain("chain").with_radius(0.02)
    assert not np.array_equal(model.marginals.upper, plain.marginals.upper)


def test_textbook_versions_restrict_what_the_published_ones_allow():
    """The clean Drone crashes more, the clean Chain waits for both chains."""
    for name, constants in (("drone", {"n": 5, "maxY": 5}), ("chain", {})):
        spec, at_radius = domain_spec(name), 0.02
        prose = domain(name, instance="textbook", **constants)
        clean = solve(prose.with_radius(at_radius), spec).at_initial()
        raw = domain(name, **constants).with_radius(at_radius)
        odd = solve(raw, spec).at_initial()
        assert clean.upper <= odd.lower if name == "drone" else clean.lower >= odd.upper


def test_each_drone_has_seven_marginals_of_its_own():
    """Commands of one drone share them, whatever the other one does."""
    assert len(domain("drone", **SMALL["drone"]).marginals) == 14


def test_smaller_rings():
    """Machines and processes beyond N do nothing."""
    assert domain("sysadmin", instance="textbook", N=4, T=3).states == 1 + 3 * 16
    assert domain("herman", N=5).states == 32
    assert domain("stock_trading", sectors=1, T=3).states == 1 + 3 * 8


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: domain("nowhere"), ModelError, "there are: aircraft"),
        (lambda: domain("chain", instance="learning"), ModelError, "published, textbook"),
        (lambda: domain("chain", radius="much"), ModelError, "radius must be a number"),
        (lambda: domain("chain", radius=-0.1), ModelError, "radius must be a number >= 0"),
        (lambda: domain("chain", Q=3), PrismError, "'Q'"),
        (lambda: domain("chain", name=3), PrismError, "'name'"),
        (lambda: domain_spec("lake"), ModelError, "frozen_lake"),
    ],
)
def test_mistakes_are_named(wrong, error, words):
    """An unknown name is answered with the known ones."""
    with pytest.raises(error, match=words):
        wrong()
