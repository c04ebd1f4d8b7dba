"""Single P and R properties as specifications, without a model at hand.

State formulas become sets that are resolved when the model is known; numbers of steps and
discounts are needed at once, so they may use constants of the property's own text only.
"""

from __future__ import annotations

from dataclasses import replace

from rfmdp.answers.property import Property, StateSet, refuse
from rfmdp.language import property_ast as tree
from rfmdp.language.ast import Expr, Literal, Unary
from rfmdp.language.constants import constant_values
from rfmdp.language.evaluate import Value, evaluate
from rfmdp.language.expand import names_in
from rfmdp.language.path_formula import TRUE, NextFormula, UntilFormula, directions, normal
from rfmdp.language.supported import require_supported
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
    Total,
    Until,
)


def spec_of(prop: Property) -> Spec:
    """Return the specification of a property that is a single P or R."""
    node, source = prop.parsed.expression, prop.file.source
    require_supported(node, source)
    if not isinstance(node, tree.Probability | tree.Reward):
        raise refuse(f"found '{prop.text}'")
    agent, nature = directions(node, None, source)
    constants = _Constants(prop)
    if isinstance(node, tree.Probability):
        objective = probability(prop, constants.path(node.path))
    else:
        objective = reward(prop, node, constants)
    return Spec(objective, agent, nature)


def probability(prop: Property, path: Expr) -> Objective:
    """Return the objective of a path formula."""
    form = normal(path)
    if isinstance(form, NextFormula):
        target = Unary("!", form.target) if form.negated else form.target
        return Next(prop.states(target))
    if not isinstance(form, UntilFormula):
        raise refuse("found a state formula inside P")
    target = form.target
    if form.negated and form.stay == TRUE:
        stay = target.operand if isinstance(target, Unary) else Unary("!", target)
        return Globally(prop.states(stay), form.latest, form.earliest)
    if form.negated:
        raise refuse("found W, R or a negated U inside P")
    if form.stay == TRUE and (form.earliest, form.latest) == (0, None):
        return Reach(prop.states(target))
    return Until(prop.states(form.stay), prop.states(target), form.latest, form.earliest)


def reward(prop: Property, node: tree.Reward, constants: _Constants) -> Objective:
    """Return the objective of a reward formula."""
    name = node.structure if isinstance(node.structure, str) or node.structure is None else ""
    if name == "":
        raise refuse("found rewards by number")
    match node.path:
        case tree.Path(discount=None, right=target):
            return ReachReward(prop.states(target), name)
        case tree.Cumulative(None, None):
            return Total(name)
        case tree.Cumulative(None, discount):
            return Discounted(float(constants.value(discount)), name)
        case tree.Cumulative(steps, discount):
            factor = 1.0 if discount is None else float(constants.value(discount))
            return Cumulative(int(constants.value(steps)), name, factor)
        case tree.Instantaneous(step):
            return Instantaneous(int(constants.value(step)), name)
    raise refuse("found a discounted reward to a target")


class _Constants:
    """The constants of a property's own text that have a value without a model."""

    def __init__(self, prop: Property) -> None:
        self._file, self._given = prop.file, prop.constants
        self._values: dict[str, Value] | None = None

    def value(self, expr: Expr | None) -> Value:
        """Return the value of an expression over the constants."""
        assert expr is not None
        if self._values is None and names_in(expr):
            own = [c for c in self._file.constants if c.value or c.name in self._given]
            given = {c.name: self._given[c.name] for c in own if c.name in self._given}
            types = {c.name: c.type for c in own}
            self._values = constant_values(own, given, types, {}, self._file.source)
        return evaluate(expr, self._values or {}, self._file.source)

    def path(self, path: Expr) -> Expr:
        """Return a path formula with evaluated step bounds."""
        if isinstance(path, Unary):
            return replace(path, operand=self.path(path.operand))
        if not isinstance(path, tree.Path) or path.time is None:
            return path
        ends = (path.time.lower, path.time.upper)
        lower, upper = (None if end is None else Literal(self.value(end)) for end in ends)
        return replace(path, time=replace(path.time, lower=lower, upper=upper))


__all__ = ["StateSet", "probability", "reward", "spec_of"]
