"""Named methods: configurations of the same parts.

The paper's four differ in what is counted and how the inner problem is solved; all of them read
Clopper-Pearson or Weissman sets repeatedly, which are valid for a single look only, and say so.
Ours use sets that are valid at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rfmdp.errors import ModelError
from rfmdp.inner.exact import Exact
from rfmdp.inner.protocol import Inner
from rfmdp.inner.relaxations import IntervalArithmetic, RadiusSum
from rfmdp.learning.budget import Budget
from rfmdp.learning.confidence import ClopperPearson, ConfidenceSet, Mixture, Weissman
from rfmdp.learning.explore import Exploration, GapDirected, Optimistic
from rfmdp.learning.identifiers import Granularity
from rfmdp.learning.schedule import Doubling


@dataclass(frozen=True, slots=True)
class Method:
    """The parts of a learning method; `learn` takes one and replacements for single parts."""

    name: str
    about: str
    confidence: ConfidenceSet = field(default_factory=Mixture)
    budget: Budget = Budget.EVENTS
    exploration: Exploration = field(default_factory=Optimistic)
    schedule: Doubling = field(default_factory=Doubling)
    granularity: Granularity = Granularity.EFFECT
    inner: Inner = field(default_factory=Exact)


PAPER_MCCORMICK = Method(
    "paper-mccormick",
    "The paper's boxes, composed exactly, as the published hybrid practically was.",
    confidence=ClopperPearson(),
    budget=Budget.PROBABILITIES,
    granularity=Granularity.LOCAL,
)
PAPER_INTERVAL = replace(
    PAPER_MCCORMICK,
    name="paper-interval",
    about="The paper's boxes, composed by interval arithmetic.",
    inner=IntervalArithmetic(),
)
PAPER_FLAT = replace(
    PAPER_MCCORMICK,
    name="paper-flat",
    about="The paper's baseline: one box per row over global successors.",
    granularity=Granularity.FLAT,
)
PAPER_L1 = Method(
    "paper-l1",
    "The paper's L1 baseline: Weissman balls, radii added up.",
    confidence=Weissman(),
    budget=Budget.COMPONENTS,
    granularity=Granularity.LOCAL,
    inner=RadiusSum(),
)
ANYTIME = Method(
    "anytime",
    "Mixture sequences, valid at any time, optimistic exploration, exact composition.",
)
GAP_DIRECTED = Method(
    "gap-directed",
    "As `anytime`, sampling where ignorance costs the guarantee most.",
    exploration=GapDirected(),
    schedule=Doubling(factor=1.0),  # after 10 % more trajectories, whatever the visits
)
TIED = replace(
    GAP_DIRECTED,
    name="tied",
    about="As `gap-directed`, with equal probabilities of the model declared to be one unknown.",
    granularity=Granularity.TIED,
)

METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        PAPER_FLAT, PAPER_L1, PAPER_INTERVAL, PAPER_MCCORMICK, ANYTIME, GAP_DIRECTED, TIED,
    )
}  # fmt: skip


def find_method(name: str) -> Method:
    """Return a method by its name."""
    if name not in METHODS:
        raise ModelError(f"There is no learning method {name!r}; there are: {', '.join(METHODS)}.")
    return METHODS[name]
