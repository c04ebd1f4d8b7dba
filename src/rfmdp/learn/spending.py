"""How an error probability is spent: the paper's rules and ours, as objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rfmdp.learn.budget import Ledger, Shares, paper_box, paper_l1, weighted
from rfmdp.learn.identifiers import Identifiers
from rfmdp.types import IntArray


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
