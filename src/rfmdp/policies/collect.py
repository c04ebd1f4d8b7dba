"""What to collect next: identifiers by how much knowing them would add to the guarantee."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from rfmdp.learning.coverage import coverage
from rfmdp.learning.run import Run
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Solution
from rfmdp.policies.explain import gains, uncertain_marginals
from rfmdp.solving import solve

SECONDS = 20.0  # for all gains together
TRIED = 40  # identifiers, at most


@dataclass(frozen=True, slots=True)
class IdentifierGain:
    """An identifier, and how much the guarantee would improve if it were known."""

    identifier: str
    gain: float
    samples: int

    def __str__(self) -> str:
        return f"{self.gain:10.4g} {self.samples:10d}  {self.identifier}"


def collect_next(run: Run, *, seconds: float = SECONDS) -> list[IdentifierGain]:
    """Return identifiers, those first of which samples would help the guarantee most.

    A gain is how much the guarantee of the initial state improves if an identifier is known to be
    what its samples suggest, while all others stay as uncertain as they are; the agent may change
    its policy for it. Identifiers that help only together with others have gain 0. They follow
    by their samples, fewest first. Each gain is a solve of its own: those with the fewest samples
    are tried first, and as many as there is time for.

    Returns nothing for a run that proves nothing.
    """
    if run.solution is None:
        return []
    covered = coverage(run).identifiers
    candidates = sorted(
        _candidates(run.solution), key=lambda j: (covered[j].samples, -covered[j].width)
    )
    deadline = time.monotonic() + seconds
    found: list[IdentifierGain] = []
    for j in candidates[:TRIED]:
        left = deadline - time.monotonic()
        if left <= 0.0 and found:
            break
        ((name, gain),) = gains(run.solution, [j], limits=Limits(seconds=max(left, 0.1)))
        found.append(IdentifierGain(name, gain, covered[j].samples))
    return sorted(found, key=lambda found: (-found.gain, found.samples))


def _candidates(solution: Solution) -> list[int]:
    """Return uncertain identifiers that the policy meets, or would meet with a friendly nature."""
    friendly = solve(
        solution.model, replace(solution.spec, nature=solution.spec.agent),
        limits=Limits(precision=1e-2, seconds=5.0),
    )  # fmt: skip
    return sorted({*uncertain_marginals(solution), *uncertain_marginals(friendly)})
