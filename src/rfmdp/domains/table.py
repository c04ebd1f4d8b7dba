"""The seven domains: constants, properties, published sizes and how versions differ.

Every file leaves its constants open; a version is a set of values for them. `published`, the
version that a bare name means, is behind the published tables; `textbook` is the model as the
paper's prose has it; `learning` is what the published learning experiments used. A constant
`as_published`, where a file has one, switches the published oddities of the structure on; those of
the bounds are in `published_bounds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rfmdp.errors import ModelError
from rfmdp.objective import MAX, MIN, Direction, Objective, ReachReward, Spec, Until

if TYPE_CHECKING:
    from rfmdp.language.names import Constants

TEXTBOOK, PUBLISHED, LEARNING = "textbook", "published", "learning"


@dataclass(frozen=True, slots=True)
class Version:
    """Values of constants, and what is known of the model that they give."""

    constants: Constants
    states: int
    transitions: int
    optimum: float | None = None  # value without uncertainty


@dataclass(frozen=True, slots=True)
class LearningVersion(Version):
    """A version that was learned, and how.

    length : steps of a trajectory
    local_states : the variables of every module's local state
    """

    length: int = 100
    local_states: Mapping[str, Sequence[str]] = field(default_factory=dict)


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
    learning: LearningVersion | None = None
    differences: str = ""  # of the published model from the textbook version

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
    LearningVersion(
        {"maxX": 15, "maxY": 15, "height": 10, "r": 0.8, "calmFrom": 0, "calmTo": 15},
        3491, 340443, 0.84513, 15, {"own": ["x", "y"], "other": ["ax", "ay"]},
    ),
    "Bounds: every probability is at least 1e-4 and at most 1 - 1e-4.",
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
    LearningVersion(
        {
            "n": 5, "maxY": 6, "slipHigh": 4, "targetX": 4, "targetZ": 4, "as_published": True,
        },
        22368, 1863552, 0.14000, 50, {f"drone{i}": [f"x{i}", f"y{i}", f"z{i}"] for i in (1, 2)},
    ),
    "Structure: only the first drone can crash, the drones may meet, both start in one cell. "
    "Bounds: every probability is at least 1e-4 and at most 1 - 1e-4, and one of the scattered "
    "moves, (x+2, y-2), keeps the radius 0.01.",
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
    LearningVersion(
        {"size": 8, "p": 0.2, "as_published": True}, 4096, 144400, 43.8494, 100,
        {f"agent{i}": [f"r{i}", f"c{i}"] for i in (1, 2)},
    ),
    "Structure: no holes and no price of meeting, both agents start in one corner, the inward slip "
    "of a corner always has probability p, some cells near (4,4) have one more choice that "
    "scatters, and directions differ in cost. Bounds: the scattered move (0, +3) of direction n "
    "keeps the radius 0.01; at radius 0.1 every probability is at least 0.001 and at most 0.999.",
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
    LearningVersion(
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
    LearningVersion(
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
