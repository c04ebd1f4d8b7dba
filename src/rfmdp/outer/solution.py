"""What a solver returns: proven bounds, how it ended, the policy and statistics."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from rfmdp.errors import ModelError, NotCertifiedError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import Restriction
from rfmdp.model.lattice import AnyModel, LatticeMDP, write_out, written as written_out
from rfmdp.objective import MAX, Spec
from rfmdp.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.outer.nature import Nature
    from rfmdp.temporal.product import Product


class Status(Enum):
    """How a solver or an answer ended; the value says it in words, with advice."""

    CERTIFIED = "certified"
    UNDECIDED = "undecided: the bounds contain the threshold"  # of answers only
    GAP_OPEN = "gap open: the method proves one side only, or the bounds stayed apart"
    SWEEP_LIMIT = "sweep limit reached: bounds hold, raise the limit to close them"
    TIME_LIMIT = "time limit reached: bounds hold, raise the limit to close them"
    INTERRUPTED = "interrupted: bounds hold as far as they had come"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Proven bounds of one value; a side that nobody proved is infinite."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """Upper minus lower; 0 if both are the same infinity."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __str__(self) -> str:
        return f"[{written(self.lower, -1.0)}, {written(self.upper, 1.0)}]"


def written(bound: float, side: float, digits: int = 6) -> str:
    """Return a bound with few digits, rounded so that it stays one: side -1 at least, +1 at most.

    >>> written(0.61593058, -1.0), written(0.99999999, -1.0), written(0.25, -1.0)
    ('0.61593', '0.999999', '0.25')
    >>> written(16.9369561, 1.0), written(float("inf"), 1.0)
    ('16.937', 'inf')
    """
    if not math.isfinite(bound):
        return f"{bound:g}"
    rounding = ROUND_FLOOR if side < 0.0 else ROUND_CEILING
    kept = Context(prec=digits, rounding=rounding).create_decimal(Decimal(bound))
    return f"{float(kept):.{digits}g}"


def proven(lower: float, upper: float, side: float) -> str:
    """Return the digits that two bounds prove, or the bounds if they share none.

    `side` is that of the guarantee, see `shared_digits`.

    >>> proven(0.726009315208811, 0.7260093152143634, -1.0), proven(0.25, 0.75, -1.0)
    ('0.7260093152', '[0.25, 0.75]')
    >>> proven(0.5, float("inf"), -1.0), proven(1.0, 1.0, -1.0)
    ('at least 0.5', '1.0')
    """
    if math.isinf(lower) != math.isinf(upper):
        below = math.isfinite(lower)
        return f"at least {written(lower, -1.0)}" if below else f"at most {written(upper, 1.0)}"
    return shared_digits(lower, upper, side) or f"[{written(lower, -1.0)}, {written(upper, 1.0)}]"


def shared_digits(lower: float, upper: float, side: float) -> str | None:
    """Return the number that both bounds are, to as many digits as they agree in; None: in none.

    Side -1 is the lower bound, rounded down; +1 the upper one, rounded up; 0 are the digits of
    every number between them, rounded to the nearest.

    >>> [shared_digits(0.16666666666665, 0.16666666666668, side) for side in (-1.0, 0.0, 1.0)]
    ['0.1666666666666', '0.1666666666667', '0.1666666666667']
    """
    if lower == upper:
        return repr(lower)
    for digits in range(15, 1, -1):
        low, high = float(f"{lower:.{digits}g}"), float(f"{upper:.{digits}g}")
        if low == high:
            return repr(
                float(written(lower if side < 0.0 else upper, side, digits)) if side else low
            )
    return None


@dataclass(slots=True)
class Stats:
    """What the work cost."""

    robust_sweeps: int = 0
    cheap_sweeps: int = 0
    components: int = 0
    levels: int = 0
    rows: int = 0
    rows_branched: int = 0
    nodes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)  # prepare, graph, solve, certify

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the seconds of a block to a phase, less those of phases within it."""
        started = time.perf_counter()
        inner = sum(self.seconds.values())
        try:
            yield
        finally:
            inner = sum(self.seconds.values()) - inner
            gone = time.perf_counter() - started - inner
            self.seconds[name] = self.seconds.get(name, 0.0) + gone


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """The chosen row of every state; of every step and state for finite horizons.

    `rows[k]` is the decision rule with k steps gone, or with k of a budget paid; a stationary
    policy has one line.
    """

    rows: IntArray  # (1, S) or (steps, S)

    def __repr__(self) -> str:
        rules = "one rule" if self.stationary else f"{len(self.rows)} rules"
        return f"Policy({rules} for {self.rows.shape[1]:,} states)"

    @property
    def stationary(self) -> bool:
        """Whether one rule serves all steps."""
        return len(self.rows) == 1

    def row(self, state: int, step: int = 0) -> int:
        """Return the row chosen in a state at a step."""
        return int(self.rows[min(step, len(self.rows) - 1), state])


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Bounds per state, proven for the exact robust value, and the policy that attains them."""

    model: AnyModel
    spec: Spec
    method: str
    status: Status
    lower: FloatArray | None  # (S,); None if nobody proved this side
    upper: FloatArray | None  # (S,)
    value: FloatArray  # (S,) the computed value, between the bounds where both exist
    policy: Policy
    precision: float  # that was asked for; if certified, that the bounds have, see `Limits`
    stats: Stats
    witness: tuple[FloatArray | None, FloatArray | None] | None = None
    # (S,) each: inductive bounds, where `lower` and `upper` are one minus them or steps before
    # them; (layers * S,) for an objective with layers
    measure: str = "RELATIVE"  # what the precision counts by, see `Limits`
    interest: BoolArray | None = None  # (S,) where that precision was wanted; None: initial states
    subject: str = "optimum"  # whose value the bounds enclose; "policy": that of the policy alone
    product: Product | None = None  # of a path formula: `model` is that of its product
    block: IntArray | None = None  # (2, S) of a parity objective: parts that its proofs go through
    restriction: Restriction | None = None  # sets that nature keeps to on the side of her guarantee

    @property
    def explicit_model(self) -> FactoredMDP:
        """The model, whose transitions must be written out."""
        return written_out(self.model)

    def explicit(self) -> Solution:
        """Return the same solution of a model whose transitions are written out.

        One that is kept by its factors is written out, if it fits into memory; states keep their
        numbers. What explains, simulates and reports needs that.
        """
        if not isinstance(self.model, LatticeMDP):
            return self
        model, rows = write_out(self.model, self.policy.rows)
        return replace(self, model=model, policy=Policy(rows))

    @property
    def guarantee(self) -> FloatArray:
        """The side (S,) that the policy guarantees: lower if the agent maximises, else upper."""
        side = self.lower if self.spec.agent is MAX else self.upper
        if side is None:
            raise NotCertifiedError(
                f"{self.method} proves no {'lower' if self.spec.agent is MAX else 'upper'} bound "
                "here; use Exact, or a relaxation against an opposing nature."
            )
        return side

    def __repr__(self) -> str:
        where = self.model.initial
        at = self.at(int(where[0])) if len(where) == 1 else Bounds(-np.inf, np.inf)
        return (
            f"Solution({type(self.spec.objective).__name__}, {self.status.name.lower()}, "
            f"[{written(at.lower, -1.0, 9)}, {written(at.upper, 1.0, 9)}], {self.method}, "
            f"{self.model.states:,} states)"
        )

    def at(self, state: int | None = None, /, **values: int) -> Bounds:
        """Return the bounds at a state, `at(7)` or `at(x=1, y=2)`."""
        state = self.model.find(**values) if state is None else state
        if not isinstance(state, int | np.integer) or not 0 <= state < self.model.states:
            raise ModelError(
                f"at: a state must be a number in 0..{self.model.states - 1}, or its values as "
                f"in at(x=1, y=2); got {state!r}."
            )
        return Bounds(
            -np.inf if self.lower is None else float(self.lower[state]),
            np.inf if self.upper is None else float(self.upper[state]),
        )

    def at_initial(self) -> Bounds:
        """Return the bounds at the initial state; an error if there are several."""
        if len(self.model.initial) != 1:
            names = [self.model.state_name(int(s)) for s in self.model.initial[:5]]
            more = ", ..." if len(self.model.initial) > 5 else ""
            raise ModelError(
                f"The model has {len(self.model.initial)} initial states ({', '.join(names)}{more})"
                '; ask for one with `at(state)` or use a filter such as filter(min, ..., "init").'
            )
        return self.at(int(self.model.initial[0]))

    def to_frame(self) -> Any:
        """Return a pandas DataFrame: variables, action, value, lower and upper of every state.

        For finite horizons it shows the first step.
        """
        try:
            from pandas import DataFrame
        except ImportError:
            raise UnsupportedError("A table needs pandas: pip install 'rfmdp[data]'.") from None
        rows, model = self.policy.rows[0], self.explicit_model
        actions = [model.choice_name(int(row)) for row in rows]
        table = {**model.state_columns(), "action": actions, "value": self.value}
        return DataFrame({**table, "lower": self.lower, "upper": self.upper})

    def _repr_html_(self) -> str:
        """Return the repr and the first states, for notebooks."""
        try:
            first = self.to_frame().head(10).to_html(index=False)
        except UnsupportedError:
            first = ""
        return f"<p>{escape(repr(self))}</p>{first}"

    def nature(self, step: int = 0) -> Nature:
        """Return nature's optimal marginals against the policy, with `step` steps gone."""
        from rfmdp.outer.nature import worst_case

        return worst_case(self, step)

    def require_certified(self) -> Solution:
        """Return self, or raise `NotCertifiedError` with the open gap."""
        if self.status is not Status.CERTIFIED:
            raise NotCertifiedError(f"{self.method}: {self.status.value}.")
        return self
