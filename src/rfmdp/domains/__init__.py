"""The seven benchmark domains: PRISM files with a table of constants, properties and sizes.

Every file leaves its constants open; a version is a set of values for them. `published`, the
version that a bare name means, is behind the published tables; `textbook` is the model as the
paper's prose has it; `learning` is what the published learning experiments used. A constant
`as_published`, where a file has one, switches the published oddities of the structure on; those of
the bounds are in `published_bounds`.

>>> model = domain("chain", radius=0.025)            # the model behind a published row
>>> model.transitions
3136
>>> domain("chain", M=4).states                      # other constants
16
>>> domain("chain", instance="textbook").transitions # as the paper's prose has it
676
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.language.build import build_model
from rfmdp.language.check import CheckedModel, check_model
from rfmdp.language.names import Constants
from rfmdp.language.parse import parse_model
from rfmdp.language.source import read_text
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.lattice import LatticeMDP, written
from rfmdp.objective import MAX, MIN, Direction, Objective, ReachReward, Spec, Until
from rfmdp.sets.marginals import Marginals

TEXTBOOK, PUBLISHED, LEARNING = "textbook", "published", "learning"
WIDE = 0.1  # the largest published radius, at which some domains have other bounds
FIXED = 0.01  # the radius of branches that keep theirs
Model: TypeAlias = FactoredMDP | LatticeMDP


@dataclass(frozen=True, slots=True)
class Version:
    """Values of constants, and what is known of the model that they give, and how it is learned."""

    constants: Constants
    states: int
    transitions: int
    optimum: float | None = None  # value without uncertainty
    length: int = 100  # steps of a trajectory
    local_states: Mapping[str, Sequence[str]] = field(default_factory=dict)  # variables by module


@dataclass(frozen=True, slots=True)
class Domain:
    """A benchmark domain."""

    name: str
    title: str
    about: str
    prop: str  # in PRISM's notation
    objective: Objective
    agent: Direction
    textbook: Version
    published: Version
    learning: Version | None = None
    differences: str = ""  # of the published model from the textbook version
    floors: tuple[float, float] = (0.0, 0.0)  # of published probabilities: below WIDE, from there
    fixed: tuple[str, str] | None = None  # marginal and outcome patterns that keep FIXED
    fall_back: bool = False  # upper bounds of the slower command's fall-back

    @property
    def path(self) -> Path:
        """Where its PRISM file is installed: in this folder."""
        return Path(__file__).with_name(f"{self.name}.prism")

    @property
    def versions(self) -> dict[str, Version]:
        """The versions by name; the values of constants are complete in all of them."""
        versions: dict[str, Version] = {PUBLISHED: self.published, TEXTBOOK: self.textbook}
        if self.learning is not None:
            versions[LEARNING] = self.learning
        return {
            name: replace(version, constants={**self.textbook.constants, **version.constants})
            for name, version in versions.items()
        }

    def constants(self, instance: str = PUBLISHED) -> dict[str, bool | int | float | str]:
        """Return the values of all constants of the file in an instance."""
        if instance not in self.versions:
            listed = ", ".join(self.versions)
            raise ModelError(f"Domain {self.name} has no instance {instance!r}; it has: {listed}.")
        return dict(self.versions[instance].constants)

    @property
    def spec(self) -> Spec:
        """The property as a specification: nature opposes the agent."""
        return Spec(self.objective, self.agent, self.agent.opposite)


AIRCRAFT = Domain(
    "aircraft",
    "Aircraft",
    "Pass an oncoming aircraft at a distance; altitudes change by chance.",
    'Pmaxmin=? [ !"collision" U "goal" ]',
    Until("safe", "goal"),
    MAX,
    Version(
        {"maxX": 20, "maxY": 24, "height": 7, "r": 0.30795462532, "calmFrom": 3, "calmTo": 10},
        11153, 1262099,
    ),
    Version({}, 11153, 1262099, 0.903448),
    Version(
        {"maxX": 15, "maxY": 15, "height": 10, "r": 0.8, "calmFrom": 0, "calmTo": 15},
        3491, 340443, 0.84513, 15, {"own": ["x", "y"], "other": ["ax", "ay"]},
    ),
    "Bounds: every probability is at least 1e-4 and at most 1 - 1e-4.",
    floors=(1e-4, 1e-4),
)  # fmt: skip

DRONE = Domain(
    "drone",
    "Drone",
    "Fly two drones with one signal through a window in a wall to a far corner.",
    'Pmaxmin=? [ !"crash" U "target" ]',
    Until("safe", "target"),
    MAX,
    Version({
        "n": 8, "maxY": 8, "p": 0.3, "slipLow": 3, "slipHigh": 6, "targetX": 7, "targetZ": 7,
        "as_published": False,
    }, 262144, 21694720),
    Version({"as_published": True}, 262144, 21694720, 0.740894),
    Version(
        {
            "n": 5, "maxY": 6, "slipHigh": 4, "targetX": 4, "targetZ": 4, "as_published": True,
        },
        22368, 1863552, 0.14000, 50, {f"drone{i}": [f"x{i}", f"y{i}", f"z{i}"] for i in (1, 2)},
    ),
    "Structure: only the first drone can crash, the drones may meet, both start in one cell. "
    "Bounds: every probability is at least 1e-4 and at most 1 - 1e-4, and one of the scattered "
    "moves, (x+2, y-2), keeps the radius 0.01.",
    floors=(1e-4, 1e-4),
    fixed=("*: [[]front]*", "(x?'=min(x?+2,*)) & (y?'=max(y?-2,*))"),
)  # fmt: skip

CHAIN = Domain(
    "chain",
    "Chain",
    "Two chains climb ten states and fall back by chance.",
    'Rminmax=? [ F "done" ]',
    ReachReward("done"),
    MIN,
    Version({"M": 10, "slow": 0.4, "fast": 0.6, "as_published": False}, 100, 676),
    Version({"as_published": True}, 100, 3136),
    None,
    "Structure: two commands per chain (so four choices), the last state is not absorbing, state 0 "
    "is a fall-back state twice, and only the first chain has to arrive. Bounds: for radii below "
    "0.1 the fall-back branches of the faster command have the upper bound of the slower one; at "
    "0.1 every probability is at least 0.001 and at most 0.999 instead.",
    floors=(0.0, 0.001),
    fall_back=True,
)

HERMAN = Domain(
    "herman",
    "Herman",
    "A ring of eleven processes passes tokens until one is left; worst start.",
    'filter(max, Rminmax=? [ F "stable" ], true)',
    ReachReward("stable"),
    MIN,
    Version({"N": 11, "p": "1/3"}, 2048, 177148),
    Version({"p": 0.3333333}, 2048, 177148),
    None,
    "Probability 0.3333333 instead of 1/3.",
)

FROZEN_LAKE = Domain(
    "frozen_lake",
    "Frozen Lake",
    "Bring two agents with one signal over slippery ice to their goals.",
    'Rminmax=? [ F "goal" ]',
    ReachReward("goal"),
    MIN,
    Version(
        {"size": 15, "p": 0.4, "scatter": False, "bump": 5, "as_published": False}, 50625, 1768900
    ),
    Version({"scatter": True, "as_published": True}, 50625, 1866556),
    Version(
        {"size": 8, "p": 0.2, "as_published": True}, 4096, 144400, 43.8494, 100,
        {f"agent{i}": [f"r{i}", f"c{i}"] for i in (1, 2)},
    ),
    "Structure: no holes and no price of meeting, both agents start in one corner, the inward slip "
    "of a corner always has probability p, some cells near (4,4) have one more choice that "
    "scatters, and directions differ in cost. Bounds: the scattered move (0, +3) of direction n "
    "keeps the radius 0.01; at radius 0.1 every probability is at least 0.001 and at most 0.999.",
    floors=(0.0, 0.001),
    fixed=("*: [[]n]*", "(c?'=min(c?+3,*))"),
)  # fmt: skip

STOCK_TRADING = Domain(
    "stock_trading",
    "Stock Trading",
    "Buy and sell sectors whose stocks rise and fall together.",
    'Rmaxmin=? [ F "end" ]',
    ReachReward("end"),
    MAX,
    Version({"T": 20, "sectors": 3, "base": 0.1, "lift": 0.8}, 9921, 4215744),
    Version({"T": 25}, 12481, 5362624),
    Version(
        {"T": 10, "sectors": 2}, 625, 44944, 5.84708, 10,
        {f"sector{i}": [f"own{i}", f"a{i}", f"b{i}", "t"] for i in (1, 2)},
    ),
    "Horizon 25; the text of the paper says 20.",
)  # fmt: skip

SYSADMIN = Domain(
    "sysadmin",
    "SysAdmin",
    "Keep a ring of ten machines running by repairing one per step.",
    'Rmaxmin=? [ F "end" ]',
    ReachReward("end"),
    MAX,
    Version({"N": 10, "T": 15, "p0": 0.1, "p1": 0.6, "as_published": False}, 15361, 9116074),
    Version({"as_published": True}, 15873, 9332587),
    Version(
        {"T": 8, "as_published": True}, 8705, 4785814, 47.8257, 10,
        {f"machine{i}": [f"m{(i + k) % 10}" for k in (-1, 0, 1)] + ["t"] for i in range(10)},
    ),
    "Structure: the clock stands still in a step in which machine 0 fails.",
)  # fmt: skip

DOMAINS: Mapping[str, Domain] = {
    domain.name: domain
    for domain in (AIRCRAFT, CHAIN, DRONE, FROZEN_LAKE, HERMAN, STOCK_TRADING, SYSADMIN)
}


def find(name: str) -> Domain:
    """Return a domain by its name; `Frozen Lake` and `frozen-lake` are `frozen_lake`."""
    key = name.strip().lower().replace("-", "_").replace(" ", "_")
    if key not in DOMAINS:
        raise ModelError(f"There is no domain {name!r}; there are: {', '.join(DOMAINS)}.")
    return DOMAINS[key]


def domain(
    name: str,
    /,
    *,
    instance: str = PUBLISHED,
    radius: float | str = 0.0,
    **constants: bool | int | float | str,
) -> FactoredMDP:
    """Return the model of a domain, nominal unless a radius is given.

    Parameters
    ----------
    name : One of `DOMAINS`.
    instance : "published" (the model behind the published solving table), "textbook" (as the
        paper's prose describes it) or "learning" (that of the published learning experiments).
    radius : L-infinity radius of the uncertainty; in the instance "published" with the published
        oddities of the bounds, elsewhere as `with_radius` does it.
    constants : Values for constants of the file, over those of the instance.
    """
    settings = {"instance": instance, "radius": radius, **constants}
    return written(with_sets(name, settings, build_model(checked_domain(name, settings))))


def checked_domain(name: str, settings: Constants) -> CheckedModel:
    """Return the checked text of a domain."""
    values = {k: value for k, value in settings.items() if k not in ("instance", "radius")}
    domain = find(name)
    constants = domain.constants(str(settings.get("instance", PUBLISHED))) | values
    return _checked(domain.path, tuple(constants.items()))


@cache
def _checked(
    path: Path, constants: tuple[tuple[str, bool | int | float | str], ...]
) -> CheckedModel:
    return check_model(parse_model(read_text(path), str(path)), dict(constants))


def with_sets(name: str, settings: Constants, model: Model) -> Model:
    """Return a nominal model with the uncertainty of a radius, if there is one."""
    radius = settings.get("radius", 0.0)
    try:
        size = float(radius)
    except ValueError:
        size = np.nan
    if not size >= 0.0:
        raise ModelError(f"A radius must be a number >= 0, got {radius!r}.")
    if not size:
        return model
    if str(settings.get("instance", PUBLISHED)) == PUBLISHED:
        model = published_bounds(name, model, size)
        return model.with_provenance(sets={"kind": "domain", "radius": size})
    return model.with_radius(size)


def domain_spec(name: str) -> Spec:
    """Return the property of a domain as a specification."""
    return find(name).spec


def published_bounds(name: str, model: Model, radius: float) -> Model:
    """Return a domain's model with the published uncertainty of a radius, oddities included.

    Every branch with nominal probability p gets [max(p - radius, floor), min(p + radius, 1 -
    floor)]; a few branches, found by the names of marginals and outcomes, have bounds of their own.
    Domains without oddities have plain boxes.
    """
    rule, nominal, ends = find(name), model.marginals.nominal, model.marginals.outcome_ptr
    floor, radii = rule.floors[radius >= WIDE], np.full(len(nominal), radius)
    if rule.fixed is not None:
        owners = np.repeat(model.marginal_names, np.diff(ends))
        for k, names in enumerate(zip(owners, model.outcome_names, strict=True)):
            if all(map(fnmatchcase, names, rule.fixed)):
                radii[k] = FIXED
    open_ = (nominal > 0.0) & (nominal < 1.0)
    lower = np.where(open_, np.maximum(nominal - radii, np.minimum(floor, nominal)), nominal)
    upper = np.where(open_, np.minimum(nominal + radii, np.maximum(1.0 - floor, nominal)), nominal)
    if rule.fall_back and 0.0 < radius < WIDE:  # the slower command has 0.6/9 where it is 0.4/9
        faster = (np.diff(ends) > 2) & (nominal[ends[:-1]] > 0.5)
        falls = np.repeat(faster, np.diff(ends))
        falls[ends[:-1]] = False
        upper = np.where(falls, nominal * 1.5 + radius, upper)
    return model.with_marginals(Marginals.from_boxes(ends, lower, upper, nominal))
