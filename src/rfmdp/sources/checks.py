"""Checks of assumptions by data: e-values, with an error probability of their own.

Each assumption says that some context does not matter: a variable that is not declared, what was
before, the time, what another factor did in the same step. Each identifier is tested against each
context; what tests say together is one number per assumption. If it is too large, there is an
alarm, and nothing is guaranteed. No alarm proves nothing.

*E-values.* Let an outcome of an identifier have the same probability p whatever the context was.
Then

    M(p) = mean over k of  product over contexts of  B(k p + x, k (1-p) + n-x) / B(k p, k (1-p))
           divided by p^x (1-p)^(n-x),      x times the outcome in n draws of a context,

is a martingale of mean 1: contexts with probabilities of their own, spread around p as Beta(k p,
k (1-p)), against the same p for all. p is not known, so the e-value is the least M(p). It exceeds
1 / level with probability at most `level`, whatever decided how much was sampled, and at all times
together; so do averages of e-values. Identifiers are drawn independently of each other. So the
product over J identifiers of 1 + (e - 1) / J is such a value, too: evidence in many of them adds
up, and one of them is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import entries, owners, segment_lengths, segment_sum, starts
from rfmdp.sources.trajectories import SuccessorPairs, shown_outcomes
from rfmdp.types import AnyArray, FloatArray, IntArray

LEVEL = 0.01  # chance of a false alarm in recorded data, of all checks together
INDEPENDENCE = "factors of a row are drawn independently of each other"
STATIONARITY = "an identifier has the same distribution early and late in the data"
SHARING = "what happens depends on no variables and actions but those that are declared"
MARKOV = "what happens does not depend on what was before"
ACTION, WHOLE, ELAPSED = "the action", "the whole state and action", "the steps since the start"
BEFORE = " before"  # behind the name of a variable: its value one step earlier
MOST = 1 << 22  # counts that are kept of one learning model
PER_DOUBLING = 2  # parts of the data while their number doubles
TIMES, AGES = 80, 32  # parts of the data, and of episodes
PENDING = 1 << 16  # transitions that are counted together
SPREADS = (4.0, 32.0, 256.0, 2048.0)  # k of M(p)
HALVINGS = 40
SLACK = 1e-6  # of logarithms: rounding


@dataclass(frozen=True, slots=True)
class Check:
    """What the data say about one assumption."""

    assumption: str
    tested: int  # e-values that were joined: of identifiers, by contexts
    log_e_value: float  # natural logarithm of all of them together
    level: float  # chance of a false alarm
    worst: str  # where the evidence against it is largest
    log_worst: float  # natural logarithm of the e-value there
    omitted: tuple[str, ...] = ()  # contexts that were not tested, because that takes too much

    @property
    def alarm(self) -> bool:
        """Whether the data contradict the assumption."""
        return self.log_e_value >= -math.log(self.level)

    def __str__(self) -> str:
        note = f"; not tested, too many counts: {', '.join(self.omitted)}" if self.omitted else ""
        if not self.tested:
            return f"{self.assumption}: not tested{note or ', nothing to compare'}"
        verdict = "contradicted by the data" if self.alarm else "no alarm"
        shown = (
            f"e-value {_power(self.log_e_value)} of {self.tested}, alarm at {1 / self.level:.6g}"
        )
        where = f", most in {self.worst} ({_power(self.log_worst)})" if self.log_worst > 0.0 else ""
        return f"{self.assumption}: {verdict} ({shown}{where}{note})"


class Evidence:
    """Counts of transitions of one learning model, by which its assumptions are checked.

    They are bounded, however many transitions there are; what would take too much is left out.
    `followed`: it is known what was before a transition.
    """

    def __init__(self, counted: FactoredMDP, followed: bool = True) -> None:
        self._model = counted
        self._pairs = SuccessorPairs(counted)
        self._times = np.zeros(len(self._pairs.rows), dtype=np.int64)
        self._drawn, self._waiting = np.zeros(1, dtype=np.int64), 0
        self._new: list[tuple[AnyArray, ...]] = []
        self.tables: dict[str, IntArray] = {}  # (codes, O) of what is not seen in a pair
        self.omitted: list[str] = []
        outcomes = len(counted.marginals.nominal)
        sizes = {"": TIMES}
        if followed:
            sizes |= {ACTION + BEFORE: len(counted.actions) + 1, ELAPSED: AGES}
            sizes |= {v.name + BEFORE: v.high - v.low + 2 for v in counted.variables}
        room = MOST
        for name, codes in sizes.items():
            if codes * outcomes > room:
                self.omitted.append(name or "time")
                continue
            room -= codes * outcomes
            self.tables[name] = np.zeros((codes, outcomes), dtype=np.int64)

    def add(self, rows: AnyArray, successors: AnyArray, before: AnyArray, ages: AnyArray) -> None:
        """Take note of N transitions, in their order.

        before : (N,) the row that was taken before in the same trajectory, -1 at its start
        ages : (N,) steps of the trajectory before
        """
        self._new.append(tuple(np.asarray(a, np.int64) for a in (rows, successors, before, ages)))
        self._waiting += len(rows)
        if self._waiting >= PENDING:
            self._count()

    def _count(self) -> None:
        """Count what is new."""
        if not self._new:
            return
        model = self._model
        rows, successors, before, ages = (np.concatenate(c) for c in zip(*self._new, strict=True))
        self._new.clear()
        self._waiting = 0
        np.add.at(self._times, self._pairs.find(rows, successors), 1)
        time = 1 + self._drawn[0] + np.arange(len(rows))
        self._drawn += len(rows)
        first = before < 0
        codes = {
            "": _halvings(time, TIMES),
            ELAPSED: _halvings(ages + 1, AGES),
            ACTION + BEFORE: np.where(first, 0, model.row_actions[before] + 1),
        }
        states = model.row_states[before]
        for i, v in enumerate(model.variables):
            codes[v.name + BEFORE] = np.where(first, 0, model.valuations[states, i] - v.low + 1)
        pair, slots, outcome, _ = shown_outcomes(model, rows, successors)
        place = model.marginals.outcome_ptr[model.row_marginals[slots]] + outcome
        for name, table in self.tables.items():
            np.add.at(table, (codes[name][pair], place), 1)

    def transitions(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the different transitions: rows, successors, and how often each was seen, (N,)."""
        self._count()
        seen = self._times > 0
        return self._pairs.rows[seen], self._pairs.successors[seen], self._times[seen]

    def checks(self, level: float) -> tuple[Check, ...]:
        """Return what is said about the assumptions; all alarms together have one level."""
        rows, successors, counts = self.transitions()
        earlier = [_tabled(self._model, name, table) for name, table in self.tables.items() if name]
        time = [_tabled(self._model, "the time", self.tables[""])] if "" in self.tables else []
        times = counts.astype(np.float64)
        shown = shown_outcomes(self._model, rows, successors)
        families = {
            INDEPENDENCE: _other_factors(self._model, shown, times),
            STATIONARITY: time,
            SHARING: _undeclared(self._model, rows, shown, times),
            MARKOV: earlier,
        }
        omitted = {STATIONARITY: [name for name in self.omitted if name == "time"]}
        omitted[MARKOV] = [name for name in self.omitted if name != "time"]
        return tuple(
            _joined(self._model, name, family, level / len(families), tuple(omitted.get(name, ())))
            for name, family in families.items()
        )

    @property
    def arrays(self) -> dict[str, AnyArray]:
        """What a saved run keeps."""
        self._count()
        tables = {f"table{i}": table for i, table in enumerate(self.tables.values())}
        return {"times": self._times, "drawn": self._drawn, **tables}


def _halvings(numbers: IntArray, most: int) -> IntArray:
    """Return parts 0, 1, ... of numbers from 1 on, some while they double; the last goes on."""
    return np.minimum((PER_DOUBLING * np.log2(numbers)).astype(np.int64), most - 1)


def _joined(
    model: FactoredMDP,
    name: str,
    family: Iterable[Contexts],
    level: float,
    omitted: tuple[str, ...],
) -> Check:
    """Return one check: the average, over contexts, of what identifiers say together."""
    logs, tested = [], 0
    worst, most = "", 0.0
    for contexts in family:
        if not contexts.tested:
            continue
        ids, log_e = e_values(contexts)
        # the product of 1 + (e - 1) / tested; e-values that miss are 1
        rest = math.log1p(-1.0 / contexts.tested) if contexts.tested > 1 else -math.inf
        logs.append(float(np.logaddexp(rest, log_e - math.log(contexts.tested)).sum()))
        tested += contexts.tested
        if len(ids) and log_e.max() > most:
            most = float(log_e.max())
            first, second = divmod(int(ids[np.argmax(log_e)]), len(model.marginals))
            pair = [first - 1, second] if first else [second]  # see `_other_factors`
            worst = f"{' with '.join(map(model.marginal_name, pair))}, by {contexts.name}"
    mean = float(np.logaddexp.reduce(logs)) - math.log(len(logs)) if logs else 0.0
    return Check(name, tested, mean, level, worst, most, omitted)


def _undeclared(
    model: FactoredMDP, rows: IntArray, shown: Sequence[IntArray], times: FloatArray
) -> Iterator[Contexts]:
    """Yield what rows that share an identifier differ in: variables, the action, all together."""
    states = model.row_states
    features = {v.name: model.valuations[states, i] - v.low for i, v in enumerate(model.variables)}
    features[ACTION] = model.row_actions
    features[WHOLE] = np.arange(model.rows)
    slot_row = owners(model.marginal_ptr)
    pair, slots, outcome, _ = shown
    ids = model.row_marginals[slots].astype(np.int64)
    for name, codes in features.items():
        low = np.full(len(model.marginals), np.iinfo(np.int64).max)
        high = np.full(len(model.marginals), -1, dtype=np.int64)
        np.minimum.at(low, model.row_marginals, codes[slot_row])
        np.maximum.at(high, model.row_marginals, codes[slot_row])
        varies = (low < high) & (model.marginals.sizes > 1)  # (M,) between slots
        kept = varies[ids]
        at = pair[kept]
        yield Contexts(
            name, ids[kept], codes[rows[at]].astype(np.int64), outcome[kept], times[at],
            model.marginals.sizes, int(varies.sum()),
        )  # fmt: skip


def _other_factors(
    model: FactoredMDP, shown: Sequence[IntArray], times: FloatArray
) -> Iterator[Contexts]:
    """Yield what factors did in the same step, as contexts of those behind them in the row."""
    pair, slots, outcome, behind = shown
    number, sizes = len(model.marginals), model.marginals.sizes
    ids = model.row_marginals[slots].astype(np.int64)
    lengths, last = segment_lengths(model.marginal_ptr), model.marginal_ptr[1:] - 1
    for ahead in range(1, int(behind.max(initial=0)) + 1):
        one = np.flatnonzero(behind == ahead)
        for back in range(ahead):
            other = np.flatnonzero(behind == back)
            other = other[np.searchsorted(pair[other], pair[one])]  # the same pairs have these, too
            kept = (sizes[ids[one]] > 1) & (sizes[ids[other]] > 1)
            first, second = one[kept], other[kept]
            together = last[lengths > ahead] - np.array([[back], [ahead]])  # places of such pairs
            pairs = np.unique(model.row_marginals[together], axis=1)
            yield Contexts(
                "what another factor did in the same step",
                (1 + ids[first]) * number + ids[second], outcome[first], outcome[second],
                times[pair[first]], sizes, int(np.count_nonzero((sizes[pairs] > 1).all(axis=0))),
            )  # fmt: skip


def _tabled(model: FactoredMDP, name: str, table: IntArray) -> Contexts:
    """Return contexts whose draws are in a table (codes, O)."""
    code, place = np.nonzero(table)
    ids = owners(model.marginals.outcome_ptr)[place]
    outcome = place - model.marginals.outcome_ptr[ids]
    times = table[code, place].astype(np.float64)
    several = model.marginals.sizes[ids] > 1
    return Contexts(
        name, ids[several], code[several], outcome[several], times[several],
        model.marginals.sizes, int(np.count_nonzero(model.marginals.sizes > 1)),
    )  # fmt: skip


def _power(log: float) -> str:
    """Return e^log for people, also where floats end."""
    if log < -600.0:
        return "0"
    return f"{math.exp(log):.3g}" if abs(log) < 600.0 else f"10^{log / math.log(10.0):.0f}"


@dataclass(frozen=True, slots=True, eq=False)
class Contexts:
    """What may matter for identifiers, and must not: draws by context.

    Entry i says that in context code[i] identifier ids[i] had outcome outcomes[i], times[i] times.
    """

    name: str
    ids: IntArray  # (N,)
    code: IntArray  # (N,)
    outcomes: IntArray  # (N,)
    times: FloatArray  # (N,)
    sizes: IntArray  # (M,) outcomes of all identifiers
    tested: int  # identifiers for which there can be several contexts


def e_values(contexts: Contexts) -> tuple[IntArray, FloatArray]:
    """Return the identifiers that were seen, and logarithms of their e-values.

    Every outcome has one, against all others; that of an identifier is their average. Of two
    outcomes one is enough.
    """
    if not len(contexts.ids):
        return np.empty(0, dtype=np.int64), np.empty(0)
    ids, number = np.unique(contexts.ids, return_inverse=True)
    span = int(contexts.code.max()) + 1
    arms, arm = np.unique(number * span + contexts.code, return_inverse=True)
    owner = arms // span  # of an arm: which identifier in which context
    sizes = contexts.sizes[ids % len(contexts.sizes)]
    ptr = starts(sizes[owner])
    x = np.bincount(ptr[arm] + contexts.outcomes, contexts.times, minlength=int(ptr[-1]))
    n = np.repeat(segment_sum(x.astype(np.float64), ptr), segment_lengths(ptr))
    arm_of = owners(ptr)
    outcome = np.arange(int(ptr[-1])) - ptr[arm_of]
    first = starts(np.where(sizes == 2, 1, sizes))
    kept = np.flatnonzero((sizes[owner[arm_of]] > 2) | (outcome == 0))
    group = (first[owner[arm_of]] + outcome)[kept]
    order = np.argsort(group, kind="stable")
    cells = kept[order]
    group_ptr = starts(np.bincount(group, minlength=int(first[-1])))
    logs = log_e_values(x[cells].astype(np.float64), n[cells], group_ptr)
    means = np.logaddexp.reduceat(logs, first[:-1]) - np.log(segment_lengths(first))
    return ids, means


def log_e_values(x: FloatArray, n: FloatArray, ptr: IntArray) -> FloatArray:
    """Return the least ln M(p) of every group of contexts, or less, (G,).

    ln M is convex in p: its slope tells on which side of p it is least, and its tangent bounds it
    in the interval that is left. Groups without evidence have -inf.

    x, n : (cells,) times the outcome, and draws, in every context
    ptr : (G + 1,) contexts of the groups
    """
    total, draws = segment_sum(x, ptr), segment_sum(n, ptr)
    logs = np.where((total == 0.0) | (total == draws), 0.0, -np.inf)  # always, or never: M = 1
    groups = np.flatnonzero((total > 0.0) & (total < draws))
    evidence = _Cells(x, n, ptr, groups).log_martingale(total[groups] / draws[groups]) > 0.0
    groups = groups[evidence]  # elsewhere the least is no more than 1
    cells, low, high = _Cells(x, n, ptr, groups), np.zeros(len(groups)), np.ones(len(groups))
    for _ in range(HALVINGS):
        p = 0.5 * (low + high)
        falls = cells.slope(p) < 0.0
        low, high = np.where(falls, p, low), np.where(falls, high, p)
    p = 0.5 * (low + high)
    logs[groups] = cells.log_martingale(p) - np.abs(cells.slope(p)) * (high - low) - SLACK
    return logs


class _Cells:
    """Contexts of some groups, made ready to evaluate ln M(p)."""

    def __init__(self, x: FloatArray, n: FloatArray, ptr: IntArray, groups: IntArray) -> None:
        at = entries(ptr, groups)
        self._ptr = starts(segment_lengths(ptr)[groups])
        self._x, self._n, self._owner = x[at], n[at], owners(self._ptr)
        self._total, self._draws = (segment_sum(a, self._ptr) for a in (self._x, self._n))
        whole = (gammaln(k + self._n) - gammaln(k) for k in SPREADS)
        self._whole = [segment_sum(each, self._ptr) for each in whole]

    def _sums(
        self, p: FloatArray, k: float, function: Callable[[AnyArray], AnyArray], sign: float
    ) -> FloatArray:
        """Return the sums of function(k p + x) + sign function(k (1-p) + n-x), less x = n = 0."""
        a, b, at = k * p, k * (1.0 - p), self._owner
        cells = function(a[at] + self._x) + sign * function(b[at] + self._n - self._x)
        alone = segment_lengths(self._ptr) * (function(a) + sign * function(b))
        return segment_sum(cells, self._ptr) - alone

    def _terms(self, p: FloatArray) -> FloatArray:
        """Return the logarithms of the numerators of M(p), (spreads, G)."""
        pairs = zip(SPREADS, self._whole, strict=True)
        return np.array([self._sums(p, k, gammaln, 1.0) - each for k, each in pairs])

    def log_martingale(self, p: FloatArray) -> FloatArray:
        """Return ln M(p) of every group, (G,)."""
        mixed: FloatArray = np.logaddexp.reduce(self._terms(p)) - math.log(len(SPREADS))
        null = self._total * np.log(p) + (self._draws - self._total) * np.log1p(-p)
        return np.asarray(mixed - null)

    def slope(self, p: FloatArray) -> FloatArray:
        """Return the derivative of ln M(p), (G,)."""
        terms = self._terms(p)
        weights = np.exp(terms - np.logaddexp.reduce(terms))
        rises = np.array([k * self._sums(p, k, digamma, -1.0) for k in SPREADS])
        null = self._total / p - (self._draws - self._total) / (1.0 - p)
        return np.asarray(np.sum(weights * rises, axis=0) - null)
