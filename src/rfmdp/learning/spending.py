"""How an error probability is spent: the paper's rules and ours, as objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.learning.budget import (
    Ledger,
    Shares,
    paper_box,
    paper_l1,
    relevance_weights,
    weighted,
)
from rfmdp.learning.identifiers import Identifiers
from rfmdp.types import FloatArray, IntArray


class EventCounter(Protocol):
    """Anything that knows how many events an identifier of that many outcomes costs."""

    def events(self, outcomes: IntArray) -> IntArray:
        """Return the number of events, (M,)."""
        ...


class Budget(Protocol):
    """Makes the ledger before the first sample."""

    def ledger(self, shares: Shares, confidence: EventCounter, ids: Identifiers) -> Ledger:
        """Return the error probability of every event."""
        ...


@dataclass(frozen=True, slots=True)
class EqualEvents:
    """Every event gets the same: none for one outcome, one for two, and so on."""

    def ledger(self, shares: Shares, confidence: EventCounter, ids: Identifiers) -> Ledger:
        """Return delta = model share / events."""
        return weighted(shares, confidence.events(ids.model.marginals.sizes))


@dataclass(frozen=True, slots=True, eq=False)
class ByRelevance:
    """Half of the share evenly over all events, half by what is thought relevant beforehand.

    Parameters
    ----------
    relevance
        (M,) of the identifiers, at least 0: expected visits under a prior model, say. It must
        not depend on the samples that the ledger is used for.
    """

    relevance: FloatArray

    def ledger(self, shares: Shares, confidence: EventCounter, ids: Identifiers) -> Ledger:
        """Return delta_j = model share * weight_j / events_j."""
        events = confidence.events(ids.model.marginals.sizes)
        if len(self.relevance) != len(events):
            raise ModelError(
                f"ByRelevance: {len(events)} numbers must be given, one per identifier, found "
                f"{len(self.relevance)}."
            )
        return weighted(shares, events, relevance_weights(events, self.relevance))


@dataclass(frozen=True, slots=True)
class PerProbability:
    """The paper's beta / U for boxes: every outcome counts, those of certain moves too."""

    def ledger(self, shares: Shares, confidence: EventCounter, ids: Identifiers) -> Ledger:
        """Return delta = beta / U."""
        return _learned(paper_box(shares.model, _listed(ids)), shares, ids)


@dataclass(frozen=True, slots=True)
class PerComponent:
    """The paper's beta / |Q| for L1 balls: every identifier counts, certain moves too."""

    def ledger(self, shares: Shares, confidence: EventCounter, ids: Identifiers) -> Ledger:
        """Return delta = beta / |Q|."""
        return _learned(paper_l1(shares.model, _listed(ids)), shares, ids)


def _listed(ids: Identifiers) -> IntArray:
    """Return the outcomes of the learned identifiers first, then those that only count."""
    learned = ids.model.marginals.sizes
    rest = max(0, ids.components - len(learned))
    surplus = max(rest, ids.probabilities - int(learned.sum()))
    extra = np.ones(rest, dtype=np.int64)
    if rest:
        extra[0] += surplus - rest
    return np.concatenate([learned, extra])


def _learned(ledger: Ledger, shares: Shares, ids: Identifiers) -> Ledger:
    """Keep the entries of the identifiers that are learned; the others cost nothing."""
    count = len(ids.model.marginals)
    return Ledger(ledger.scheme, shares, ledger.events[:count], ledger.delta[:count])
