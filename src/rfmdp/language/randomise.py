"""Several choices in one state of a DTMC: each is taken with the same probability, as in PRISM.

The row of such a state is one marginal: its outcomes are those of all choices, one choice after
the other, with their probabilities divided by the number of choices. That is exact for known
probabilities. With intervals it is not one independent set per factor any more, so an interval
DTMC may have such states only where probabilities are known.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from rfmdp.language.compile import Batch
from rfmdp.language.distributions import Entry, Identifiers
from rfmdp.language.source import NOWHERE
from rfmdp.types import FloatArray

RANDOM_FACTOR = "(random choice)"


def random_choice(
    choices: list[tuple[str, tuple[int, ...]]], identifiers: Identifiers, batch: Batch
) -> int:
    """Enter the marginal of a random choice and return its identifier.

    Parameters
    ----------
    choices : action and marginals of every choice
    batch : the state where it is met first

    Raises
    ------
    PrismError
        If one of the choices has intervals.
    """
    vectors, outcomes = [], []
    for action, marginals in choices:
        vector = np.ones(1)
        for j in marginals:
            vector = np.outer(vector, _exact(j, identifiers, batch)).ravel()
        vectors.append(vector)
        texts = [identifiers.entries[j].outcomes for j in marginals]
        outcomes += [f"[{action}] {' & '.join(t)}".rstrip() for t in product(*texts)]
    mixed = np.concatenate(vectors) / len(choices)
    name = f"random choice of {len(choices)}"
    return identifiers.enter(Entry(mixed, mixed, name, NOWHERE, tuple(outcomes)))


def _exact(marginal: int, identifiers: Identifiers, batch: Batch) -> FloatArray:
    vector = identifiers.exact(marginal)
    if vector is None:
        reason = (
            "an interval command of an idtmc must be the only choice, found several; "
            "make guards exclude each other, or declare the model an imdp"
        )
        raise batch.error(identifiers.entries[marginal].position, reason, 0)
    return vector
