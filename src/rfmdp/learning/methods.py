"""Named methods: configurations of the same parts.

The paper's four differ in what is counted and how the inner problem is solved; all of them read
Clopper-Pearson or Weissman sets repeatedly, which are valid for a single look only, and say so.
Ours use sets that are valid at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rfmdp.errors import ModelError
from rfmdp.inner.combined import Screened
from rfmdp.inner.exact import Exact
from rfmdp.inner.interval import IntervalArithmetic
from rfmdp.inner.mccormick import McCormick
from rfmdp.inner.protocol import Inner
from rfmdp.inner.radius_sum import Composition, RadiusSum
from rfmdp.inner.sequential import Sequential
from rfmdp.learning.budget import Budget, EqualEvents, PerComponent, PerProbability
from rfmdp.learning.confidence import BySize, ClopperPearson, ConfidenceSet, Mixture, Weissman
from rfmdp.learning.explore import Exploration, GapDirected, Optimistic
from rfmdp.learning.identifiers import Granularity
from rfmdp.learning.schedule import Doubling, Geometric, Schedule


@dataclass(frozen=True, slots=True)
class Method:
    """The parts of a learning method; `learn` takes one and replacements for single parts."""

    name: str
    about: str
    confidence: ConfidenceSet = field(default_factory=Mixture)
    budget: Budget = field(default_factory=EqualEvents)
    exploration: Exploration = field(default_factory=Optimistic)
    schedule: Schedule = field(default_factory=Doubling)
    granularity: Granularity = Granularity.EFFECT
    inner: Inner = field(default_factory=Exact)
    rollout: float = 0.0  # share of beta for rollout certificates


_PAPER = {"confidence": ClopperPearson(), "budget": PerProbability()}

PAPER_FLAT = Method(
    "paper-flat",
    "The paper's baseline: one box per row over global successors.",
    granularity=Granularity.FLAT,
    **_PAPER,  # type: ignore[arg-type]
)
PAPER_L1 = Method(
    "paper-l1",
    "The paper's L1 baseline: Weissman balls, radii added up.",
    confidence=Weissman(),
    budget=PerComponent(),
    granularity=Granularity.LOCAL,
    inner=RadiusSum(Composition.SUM),
)
PAPER_INTERVAL = Method(
    "paper-interval",
    "The paper's boxes, composed by interval arithmetic.",
    granularity=Granularity.LOCAL,
    inner=IntervalArithmetic(),
    **_PAPER,  # type: ignore[arg-type]
)
PAPER_MCCORMICK = Method(
    "paper-mccormick",
    "The paper's boxes, composed exactly, as the published hybrid practically was.",
    granularity=Granularity.LOCAL,
    **_PAPER,  # type: ignore[arg-type]
)
PAPER_MCCORMICK_LP = Method(
    "paper-mccormick-lp",
    "The paper's boxes, composed by the McCormick programme where cheap bounds leave a gap.",
    granularity=Granularity.LOCAL,
    inner=Screened(McCormick()),
    **_PAPER,  # type: ignore[arg-type]
)
ANYTIME = Method(
    "anytime",
    "Mixture sequences, valid at any time, optimistic exploration, exact composition.",
)
ANYTIME_LOCAL = Method(
    "anytime-local",
    "As `anytime`, with the identifiers of the published experiments.",
    granularity=Granularity.LOCAL,
)
ANYTIME_KL = Method(
    "anytime-kl",
    "As `anytime`, with KL balls for identifiers of four or more outcomes, composed sequentially.",
    confidence=BySize(),
    inner=Sequential(),
)
GAP_DIRECTED = Method(
    "gap-directed",
    "As `anytime`, sampling where ignorance costs the guarantee most.",
    exploration=GapDirected(),
    schedule=Geometric(),
)
TIED = Method(
    "tied",
    "As `gap-directed`, with equal probabilities of the model declared to be one unknown.",
    exploration=GapDirected(),
    schedule=Geometric(),
    granularity=Granularity.TIED,
)
ROLLOUT = Method(
    "rollout",
    "As `gap-directed`, and half of beta for rollout certificates of the initial state.",
    exploration=GapDirected(),
    schedule=Geometric(),
    rollout=0.5,
)

METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        PAPER_FLAT, PAPER_L1, PAPER_INTERVAL, PAPER_MCCORMICK, PAPER_MCCORMICK_LP,
        ANYTIME, ANYTIME_LOCAL, ANYTIME_KL, GAP_DIRECTED, TIED, ROLLOUT,
    )
}  # fmt: skip


def find_method(name: str) -> Method:
    """Return a method by its name."""
    if name not in METHODS:
        raise ModelError(f"There is no learning method {name!r}; there are: {', '.join(METHODS)}.")
    return METHODS[name]
