"""Why a policy decides as it does in one state, and which uncertainty costs most."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.learning.run import Run
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, BudgetUntil
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Bounds, Solution, written
from rfmdp.policies.decisions import decisions, reached, values_after
from rfmdp.policies.induced import without_budget
from rfmdp.ragged import entries, segment
from rfmdp.sets.families import Singleton
from rfmdp.sets.marginals import Marginals
from rfmdp.solving import solve

NEXT = 8  # likeliest successors that are listed
SECONDS = 20.0  # for all gains together
TRIED = 40  # identifiers, at most


@dataclass(frozen=True, slots=True)
class ActionValue:
    """An action of a state, with proven bounds of what taking it is worth."""

    action: str
    value: Bounds
    chosen: bool


@dataclass(frozen=True, slots=True)
class OutcomeShift:
    """One outcome of a marginal: its set, its nominal probability, and nature's."""

    effect: str
    lower: float
    upper: float
    nominal: float
    nature: float


@dataclass(frozen=True, slots=True)
class MarginalShift:
    """Nature's answer to the policy's action, in one marginal."""

    marginal: str
    outcomes: tuple[OutcomeShift, ...]


@dataclass(frozen=True, slots=True)
class NextState:
    """Where the policy's action may lead."""

    state: str
    nominal: float
    nature: float
    value: Bounds


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision and its reasons; `str` says it in words."""

    property: str
    state: str
    side: str  # of the guarantee: "at least" or "at most"; empty if nature helps the agent
    value: Bounds
    choices: tuple[ActionValue, ...]
    nature: tuple[MarginalShift, ...]
    successors: tuple[NextState, ...]  # the likeliest ones

    def __str__(self) -> str:
        width = max(len(c.action) for c in self.choices)
        lines = [f"Property {self.property}", f"In {self.state} {self._promise()}.", "Actions:"]
        for c in self.choices:
            lines.append(f"  {'>' if c.chosen else ' '} {c.action:{width}}  {_shown(c.value)}")
        for answer in self.nature:
            lines.append(f"Nature in {answer.marginal}:")
            width = max(len(o.effect) for o in answer.outcomes)
            for o in answer.outcomes:
                change = "" if abs(o.nature - o.nominal) < 1e-9 else f" -> {o.nature:.6g}"
                numbers = f"{o.nominal:.6g}{change}  of [{o.lower:.6g}, {o.upper:.6g}]"
                lines.append(f"    {o.effect:{width}}  {numbers}")
        if not self.nature:
            lines.append("Nature has no choice here.")
        lines.append("Next, with nature's probability (nominal), and the value there:")
        for s in self.successors:
            lines.append(f"    {s.nature:.6g} ({s.nominal:.6g})  {s.state}  {_shown(s.value)}")
        return "\n".join(lines)

    def _promise(self) -> str:
        """Return what the policy is worth, and in which sense."""
        if not self.side:
            helping = ", with a nature that helps" if self.nature else ""
            return f"the value {_shown(self.value)}{helping}"
        below = self.side == "at least"
        sure = self.value.lower if below else self.value.upper
        if not math.isfinite(sure):
            return f"the policy guarantees nothing: the value {_shown(self.value)}"
        bound = written(sure, -1.0 if below else 1.0)
        return f"the policy guarantees a value of {self.side} {bound}"


def _shown(bounds: Bounds) -> str:
    low, high = f"{bounds.lower:.6g}", f"{bounds.upper:.6g}"
    if low == high:
        return f"is {low}"
    return f"is in [{written(bounds.lower, -1.0)}, {written(bounds.upper, 1.0)}]"


def explain(solution: Solution, state: int, *, step: int = 0) -> Explanation:
    """Return why the policy of a solution decides as it does in a state.

    Parameters
    ----------
    state : Its number; `model.find(x=1, y=2)` tells it.
    step : For finite horizons: how many steps are gone; under a budget what was paid of it.
    """
    if not 0 <= state < solution.model.states:
        raise ModelError(
            f"explain: the state must be a number in 0..{solution.model.states - 1}, got "
            f"{state!r}; `model.find(x=1, y=2)` tells it."
        )
    budget = isinstance(solution.spec.objective, BudgetUntil)
    most = solution.spec.objective.layers if budget else solution.spec.objective.span[1]
    if step < 0 or (most is not None and step >= max(most, 1)):
        range_ = "at least 0" if most is None else f"in 0..{max(most, 1) - 1}, the property's own"
        raise ModelError(f"explain: the step must be {range_}, got {step}.")
    if budget:
        first = step * solution.model.states
        reasons = explain(without_budget(solution), first + state)
        return replace(reasons, property=str(solution.spec))
    options = decisions(solution, np.array([state]), step)
    model, chosen, sets = options.model, options.chosen[0], options.model.marginals
    rows = zip(options.rows.tolist(), options.lower.tolist(), options.upper.tolist(), strict=True)
    choices = [
        ActionValue(model.choice_name(row), Bounds(*ends), bool(row == chosen))
        for row, *ends in rows
    ]
    place = int(np.flatnonzero(options.rows == chosen)[0])
    answers = []
    for j, answer in options.marginals(place):
        inside = segment(sets.outcome_ptr, j)
        names = model.outcome_names[inside] or [f"outcome {o + 1}" for o in range(len(answer))]
        columns = (sets.lower[inside], sets.upper[inside], sets.nominal[inside], answer)
        numbers = zip(*(column.tolist() for column in columns), strict=True)
        shifts = (OutcomeShift(name, *row) for name, row in zip(names, numbers, strict=True))
        answers.append(MarginalShift(_name(model, j), tuple(shifts)))
    states, nominal, worst = options.successors(place)
    likeliest = np.argsort(-worst, kind="stable")[:NEXT]
    ends = (side[states].tolist() for side in values_after(solution, step + 1))
    after = list(zip(states.tolist(), nominal.tolist(), worst.tolist(), *ends, strict=True))
    successors = [
        NextState(model.state_name(s), usual, bad, Bounds(low, high))
        for s, usual, bad, low, high in (after[k] for k in likeliest)
    ]
    lower, upper = options.value
    side = "at least" if solution.spec.agent is MAX else "at most"
    return Explanation(
        str(solution.spec), solution.model.state_name(state), side if solution.spec.robust else "",
        Bounds(float(lower[0]), float(upper[0])), tuple(choices), tuple(answers), tuple(successors),
    )  # fmt: skip


def _name(model: FactoredMDP, j: int) -> str:
    """Return the name of a marginal; of one that several actions share, its factor's."""
    places = np.flatnonzero(model.row_marginals == j)
    rows = np.searchsorted(model.marginal_ptr, places, side="right") - 1
    if not model.factors or len(np.unique(model.row_actions[rows])) < 2:
        return model.marginal_name(j)
    return f"{model.factors[model.row_factors[places[0]]]}, the same in several actions"


@dataclass(frozen=True, slots=True)
class IdentifierGain:
    """An identifier, and how much the guarantee would improve if it were known."""

    identifier: str
    gain: float
    samples: int
    width: float  # of the widest interval that is left; 1: nothing is known

    def __str__(self) -> str:
        return f"{self.gain:10.4g} {self.samples:10d} {self.width:9.3g}  {self.identifier}"


def collect_next(result: Run | Solution, *, seconds: float = SECONDS) -> list[IdentifierGain]:
    """Return identifiers, those first of which samples would help the guarantee most.

    A gain is how much the guarantee of the initial state improves if an identifier is known to be
    its nominal distribution (what its samples suggest), while all others stay as uncertain as they
    are; the agent may change its policy for it. Gains come from proven bounds on both sides, so
    they are at least what is said. Each is a solve of its own: those with the fewest samples are
    tried first, and as many as there is time for. A run that proves nothing has none.
    """
    solution = result.solution if isinstance(result, Run) else result
    if solution is None:
        return []
    model, sign = solution.explicit_model, solution.spec.agent.sign
    sets, start = model.marginals, int(model.initial[0])
    counts = result.counts if isinstance(result, Run) else np.zeros(len(sets.nominal))
    samples = np.add.reduceat(counts, sets.outcome_ptr[:-1])
    widths = np.maximum.reduceat(sets.upper - sets.lower, sets.outcome_ptr[:-1])
    friendly = solve(
        model, replace(solution.spec, nature=solution.spec.agent),
        limits=Limits(precision=1e-2, seconds=5.0),
    )  # fmt: skip
    met: set[int] = set()  # by the policy, or by that for a friendly nature
    for found in (solution, friendly):
        states = reached(found, model.states, model.transitions)
        rows = np.unique(found.policy.rows[:, states])
        met.update(model.row_marginals[entries(model.marginal_ptr, rows)].tolist())
    candidates = [j for j in met if widths[j] > 0.0]
    worst = solution.at(start).upper if sign > 0 else solution.at(start).lower
    deadline = time.monotonic() + seconds
    worth: list[IdentifierGain] = []
    for j in sorted(candidates, key=lambda j: (samples[j], -widths[j], j))[:TRIED]:
        remaining = deadline - time.monotonic()
        if remaining <= 0.0 and worth:
            break
        known = list(sets)
        known[j] = Singleton(sets.nominal[segment(sets.outcome_ptr, j)])
        settled = model.with_marginals(Marginals.from_sets(known))
        limits = Limits(seconds=max(remaining, 0.1))
        better = solve(settled, solution.spec, limits=limits, warm=solution).at(start)
        gain = max(sign * ((better.lower if sign > 0 else better.upper) - worst), 0.0)
        name = model.marginal_name(j)
        worth.append(IdentifierGain(name, gain, int(samples[j]), float(widths[j])))
    return sorted(worth, key=lambda one: (-one.gain, one.samples))
