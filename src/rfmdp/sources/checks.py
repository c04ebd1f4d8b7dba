"""Checks of assumptions by data: e-values, with an error probability of their own.

An e-value is a likelihood ratio of the data: an alternative, mixed over its parameters, against
the assumption with the parameters that fit best. If the assumption holds, its mean is at most 1,
whatever decided how much was sampled. The same is true of an average of e-values. By Markov's
inequality it exceeds 1 / level with probability at most `level`. If it does, there is an alarm,
and nothing is guaranteed. No alarm proves nothing. Alternatives are mixed with Dirichlet(1/2,
..., 1/2), as Krichevsky and Trofimov do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import segment_lengths, segment_sum, starts
from rfmdp.sources.tally import ShownOutcomes, shown_outcomes
from rfmdp.types import AnyArray, FloatArray, IntArray

LEVEL = 0.01  # chance of a false alarm, of all checks together
INDEPENDENCE = "factors of a row are drawn independently of each other"
STATIONARITY = "an identifier has the same distribution early and late in the data"
SHARING = "rows that share an identifier have the same distribution"
MARKOV = "what happens does not depend on the action before"
TESTS = {
    INDEPENDENCE: "joint against product, per pair of factors and identifiers",
    STATIONARITY: "two halves against one distribution, per identifier",
    SHARING: "one distribution per row against one for all, per identifier",
    MARKOV: "one distribution per action before against one for all, per identifier",
}


@dataclass(frozen=True, slots=True)
class Check:
    """What the data say about one assumption."""

    assumption: str
    test: str
    tested: int  # e-values that were averaged
    log_e_value: float  # natural logarithm of the average
    level: float  # chance of a false alarm
    worst: str  # where the evidence against it is largest
    log_worst: float  # natural logarithm of the e-value there

    @property
    def alarm(self) -> bool:
        """Whether the data contradict the assumption."""
        return self.log_e_value >= -math.log(self.level)

    def __str__(self) -> str:
        verdict = "contradicted by the data" if self.alarm else "no alarm"
        shown = (
            f"e-value {_power(self.log_e_value)} of {self.tested}, alarm at {1 / self.level:.6g}"
        )
        where = f", most in {self.worst} ({_power(self.log_worst)})" if self.log_worst > 0.0 else ""
        return f"{self.assumption}: {verdict} ({self.test}; {shown}{where})"


def checks(
    counted: FactoredMDP,
    rows: IntArray,
    successors: IntArray,
    early: IntArray,
    late: IntArray,
    contexts: IntArray,
    level: float,
) -> tuple[Check, ...]:
    """Return the checks of a learning model's assumptions; all alarms together have one level.

    Parameters
    ----------
    counted : its marginals are the identifiers
    rows, successors : (N,) different pairs
    early, late : (N,) how often they were seen, in the first part of the data and in the rest
    contexts : (C, N) how often they were seen after different things; none: that is not tested
    level : probability of a false alarm
    """
    seen = early + late > 0
    shown = shown_outcomes(counted, rows[seen], successors[seen])
    halves = np.array([early[seen], late[seen]], dtype=np.float64)
    share = level / len(TESTS)
    found = {
        INDEPENDENCE: _independence(counted, shown, halves.sum(axis=0)),
        STATIONARITY: _alike(counted, shown, halves),
        SHARING: _sharing(counted, shown, halves.sum(axis=0)),
        MARKOV: _alike(counted, shown, contexts[:, seen].astype(np.float64)),
    }
    return tuple(_averaged(counted, name, *parts, share) for name, parts in found.items())


EValues: TypeAlias = tuple[FloatArray, IntArray, int]
# logarithms of e-values (G,), the identifiers of each (G, 1 or 2), and how many could be tested


def _averaged(
    model: FactoredMDP, assumption: str, logs: FloatArray, ids: IntArray, tested: int, level: float
) -> Check:
    """Return the average over all that could be tested; e-values without samples are 1."""
    total = np.logaddexp.reduce(logs) if len(logs) else -math.inf
    unseen = tested - len(logs)
    if unseen > 0:
        total = np.logaddexp(total, math.log(unseen))
    mean = float(total) - math.log(tested) if tested else 0.0
    worst = ""
    most = 0.0
    if len(logs):
        at = int(np.argmax(logs))
        worst = " and ".join(model.marginal_name(int(j)) for j in ids[at])
        most = float(logs[at])
    return Check(assumption, TESTS[assumption], tested, mean, level, worst, most)


def _independence(model: FactoredMDP, shown: ShownOutcomes, times: FloatArray) -> EValues:
    """Test every pair of identifiers that rows draw together, in the same places."""
    together = [np.empty((0, 2), dtype=np.int64)]
    logs = [np.empty(0)]
    for back in range(len(shown.slots)):
        for ahead in range(back + 1, len(shown.slots)):
            own = np.flatnonzero(shown.slots[ahead] >= 0)  # then the later one exists, too
            ids = [model.row_marginals[shown.slots[i][own]] for i in (ahead, back)]
            outcomes = [shown.outcomes[i][own] for i in (ahead, back)]
            found, pairs = _dependence(model.marginals.sizes, ids, outcomes, times[own])
            logs.append(found)
            together.append(pairs)
    return np.concatenate(logs), np.concatenate(together), _drawn_together(model)


def _dependence(
    sizes: IntArray, ids: list[AnyArray], outcomes: list[IntArray], times: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Return logarithms of e-values of different pairs of identifiers, and these, (G, 2)."""
    pairs, group = np.unique(np.stack(ids, axis=1), axis=0, return_inverse=True)
    group = group.reshape(-1)
    own = sizes[pairs]  # (G, 2)
    ptr = starts(own[:, 0] * own[:, 1])
    at = ptr[group] + outcomes[0] * own[group, 1] + outcomes[1]
    joint = np.bincount(at, times, minlength=int(ptr[-1])).astype(np.float64)
    logs = _log_mixtures(joint, ptr)
    for side in range(2):
        part = starts(own[:, side])
        alone = np.bincount(part[group] + outcomes[side], times, minlength=int(part[-1]))
        logs -= _log_likelihoods(alone.astype(np.float64), part)
    return logs, pairs


def _drawn_together(model: FactoredMDP) -> int:
    """Return how many different pairs of identifiers, in the same places, rows have."""
    count = segment_lengths(model.marginal_ptr)
    found = 0
    for ahead in range(1, int(count.max(initial=0))):
        rows = np.flatnonzero(count > ahead)
        last = model.marginal_ptr[rows + 1] - 1
        for back in range(ahead):
            pair = np.stack([model.row_marginals[last - back], model.row_marginals[last - ahead]])
            found += np.unique(pair, axis=1).shape[1]
    return found


def _sharing(model: FactoredMDP, shown: ShownOutcomes, times: FloatArray) -> EValues:
    """Test every identifier that stands in several places."""
    number = len(model.marginals)
    ids = model.row_marginals
    counts, ptr = shown.per_slot(model, times)
    seen = segment_sum(counts, ptr) > 0.0
    mixed = np.bincount(ids[seen], _log_mixtures(counts, ptr)[seen], minlength=number)
    total = shown.counts(model, times)
    logs: FloatArray = mixed - _log_likelihoods(total, model.marginals.outcome_ptr)
    tested = np.flatnonzero(np.bincount(ids[seen], minlength=number) > 1)
    possible = int(np.count_nonzero(np.bincount(ids, minlength=number) > 1))
    return logs[tested], tested[:, None], possible


def _alike(model: FactoredMDP, shown: ShownOutcomes, times: FloatArray) -> EValues:
    """Test every identifier that was seen in several parts of the data, times (parts, N)."""
    if not len(times):
        return np.empty(0), np.empty((0, 1), dtype=np.int64), 0
    ptr = model.marginals.outcome_ptr
    parts = [shown.counts(model, part) for part in times]
    total = np.sum(parts, axis=0)
    mixed: FloatArray = np.sum([_log_mixtures(p, ptr) for p in parts], axis=0)
    logs = mixed - _log_likelihoods(total, ptr)
    several = np.sum([segment_sum(p, ptr) > 0.0 for p in parts], axis=0) > 1
    tested = np.flatnonzero(several)
    return logs[tested], tested[:, None], len(model.marginals)


def _log_mixtures(counts: FloatArray, ptr: IntArray) -> FloatArray:
    """Return logarithms of the probabilities of sequences with these counts, mixed, (N,)."""
    from scipy.special import gammaln

    half = 0.5 * segment_lengths(ptr)
    n = segment_sum(counts, ptr)
    parts: FloatArray = segment_sum(gammaln(counts + 0.5) - gammaln(0.5), ptr)
    return np.asarray(gammaln(half) - gammaln(n + half) + parts)


def _log_likelihoods(counts: FloatArray, ptr: IntArray) -> FloatArray:
    """Return logarithms of the largest probabilities of sequences with these counts, (N,)."""
    from scipy.special import xlogy

    n = segment_sum(counts, ptr)
    return np.asarray(segment_sum(xlogy(counts, counts), ptr) - xlogy(n, n))


def _power(log: float) -> str:
    """Return e^log for people, also where floats end."""
    return f"{math.exp(log):.3g}" if abs(log) < 600.0 else f"10^{log / math.log(10.0):.0f}"
