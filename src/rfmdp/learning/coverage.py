"""What data cover: samples, outcomes and what is left open, per identifier."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rfmdp.learning.run import Run
from rfmdp.ragged import segment_sum

LISTED = 10  # identifiers that are listed for people


@dataclass(frozen=True, slots=True)
class Covered:
    """What data say about one identifier."""

    identifier: str
    samples: int
    seen: int  # outcomes that were seen
    outcomes: int
    width: float  # of the widest interval that is left; 1: nothing is known


@dataclass(frozen=True, slots=True)
class Coverage:
    """What data say about all identifiers; `str` lists the poorest ones."""

    identifiers: tuple[Covered, ...]  # in the order of the model

    def __str__(self) -> str:
        poorest = sorted(self.identifiers, key=lambda c: (c.samples, -c.width))
        none = sum(c.samples == 0 for c in poorest)
        total = sum(c.samples for c in poorest)
        lines = [
            f"Coverage: {len(poorest)} identifiers, {none} without samples, {total} samples.",
            f"{'samples':>10} {'seen':>7} {'width':>9}  identifier",
        ]
        for c in poorest[:LISTED]:
            of = f"{c.seen}/{c.outcomes}"
            lines.append(f"{c.samples:10d} {of:>7} {c.width:9.3g}  {c.identifier}")
        if len(poorest) > LISTED:
            lines.append(f"{'':10} and {len(poorest) - LISTED} more, better covered")
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Return a row per identifier as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame([asdict(c) for c in self.identifiers])


def coverage(run: Run) -> Coverage:
    """Return what the samples of a run say about every identifier of its model."""
    sets = run.model.marginals
    ptr, counts = sets.outcome_ptr, run.counts
    samples = segment_sum(counts.astype(np.float64), ptr).astype(np.int64)
    seen = segment_sum((counts > 0).astype(np.float64), ptr).astype(np.int64)
    wide = sets.upper - sets.lower
    found = [
        Covered(
            run.model.marginal_name(j), int(samples[j]), int(seen[j]), int(ptr[j + 1] - ptr[j]),
            float(np.max(wide[ptr[j] : ptr[j + 1]], initial=0.0)),
        )
        for j in range(len(sets))
    ]  # fmt: skip
    return Coverage(tuple(found))
