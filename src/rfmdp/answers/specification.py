"""From P and R to specifications: what path formulas and reward formulas measure.

`solve` takes a single P or R as the `Spec` that `spec_of` makes of it. `check` makes an objective
of every P and R that it meets. Both bring a function that makes a set of states of a formula: one
that waits for its model, or one that is decided already.
"""

from __future__ import annotations

from collections.abc import Callable

from rfmdp.answers.property import Property
from rfmdp.errors import UnsupportedError
from rfmdp.language import property_ast as tree
from rfmdp.language.ast import Expr, Literal, Unary
from rfmdp.language.check_properties import with_numbers
from rfmdp.language.model_scope import scope
from rfmdp.language.path_formula import (
    TRUE,
    NextFormula,
    NowFormula,
    UntilFormula,
    directions,
    normal,
)
from rfmdp.language.supported import require_supported
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import (
    Cumulative,
    Discounted,
    Globally,
    Instantaneous,
    Next,
    Objective,
    Reach,
    ReachReward,
    Spec,
    StateSet,
    Total,
    Until,
)

Sets = Callable[[Expr], StateSet]


def spec_of(prop: Property, model: FactoredMDP | None = None) -> Spec:
    """Return the specification of a property that is a single P or R.

    Sets of states are resolved when the specification meets a model. Numbers of steps and discounts
    are needed at once: they may use constants of the property's own text, and those of `model`.
    """
    node, source = prop.parsed.expression, prop.file.source
    require_supported(node, source)
    if not isinstance(node, tree.Probability | tree.Reward):
        raise _refuse(f"found '{prop.text}'")
    agent, nature = directions(node, None, source)
    path = with_numbers(node.path, prop.file, scope(model, source), prop.constants)
    if isinstance(node, tree.Probability):
        form = normal(path)
        if isinstance(form, NowFormula):
            raise _refuse("found a state formula inside P")
        objective, negated = probability(form, prop.states)
        if negated:
            raise _refuse("found W, R or a negated U inside P")
        return Spec(objective, agent, nature)
    if isinstance(node.structure, Expr):
        raise _refuse("found rewards by number")
    if isinstance(path, tree.Path) and is_discounted(path):
        raise _refuse("found a discounted reward to a target")
    return Spec(reward(path, node.structure, prop.states), agent, nature)


def probability(form: NextFormula | UntilFormula, states: Sets) -> tuple[Objective, bool]:
    """Return the objective of a path formula, and whether the answer is one minus its value."""
    target = form.target
    if isinstance(form, NextFormula):
        return Next(states(Unary("!", target) if form.negated else target)), False
    if form.negated and form.stay == TRUE:
        stay = target.operand if isinstance(target, Unary) else Unary("!", target)
        return Globally(states(stay), form.latest, form.earliest), False
    if form.stay == TRUE and (form.earliest, form.latest) == (0, None):
        return Reach(states(target)), form.negated
    return Until(states(form.stay), states(target), form.latest, form.earliest), form.negated


def reward(path: Expr, name: str | None, states: Sets) -> Objective:
    """Return the objective of a reward formula; a discounted one must have no target."""
    match path:
        case tree.Path(right=target):
            return ReachReward(states(target), name)
        case tree.InstantaneousReward(step):
            return Instantaneous(int(number(step)), name)
        case tree.CumulativeReward(steps, discount):
            limit = None if steps is None else int(number(steps))
            factor = 1.0 if discount is None else float(number(discount))
            return _cumulated(limit, factor, name)
    raise AssertionError(path)  # `require_supported` lets nothing else pass


def is_discounted(path: tree.Path) -> bool:
    """Return whether a path formula of R has a discount that is not 1."""
    return path.discount is not None and number(path.discount) != 1.0


def number(expr: Expr) -> int | float:
    """Return a number that the static checks evaluated."""
    assert isinstance(expr, Literal)
    return expr.value


def _cumulated(steps: int | None, discount: float, name: str | None) -> Objective:
    if discount == 0.0:  # only the first step pays
        return Cumulative(1 if steps is None else min(steps, 1), name)
    if steps is not None:
        return Cumulative(steps, name, discount)
    return Total(name) if discount == 1.0 else Discounted(discount, name)


def _refuse(what: str) -> UnsupportedError:
    """Return (not raise) the error of a property that is no single specification."""
    return UnsupportedError(
        f"A specification is a single P or R over X, F, G, U or a reward; {what}. "
        "Use `check(model, property)`."
    )
