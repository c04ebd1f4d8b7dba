"""Single P and R properties as specifications.

State formulas become sets that are resolved when the model is known; numbers of steps and
discounts are needed at once: without a model they may use constants of the property's own text
only, with one its constants as well.
"""

from __future__ import annotations

from dataclasses import replace

from rfmdp.answers.property import Property, StateSet, refuse
from rfmdp.language import property_ast as tree
from rfmdp.language.ast import Expr, Literal, Unary
from rfmdp.language.constants import constant_values, needed
from rfmdp.language.evaluate import Value, evaluate
from rfmdp.language.expand import substitute
from rfmdp.language.model_scope import scope
from rfmdp.language.path_formula import TRUE, NextFormula, UntilFormula, directions, normal
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
    Total,
    Until,
)


def spec_of(prop: Property, model: FactoredMDP | None = None) -> Spec:
    """Return the specification of a property that is a single P or R."""
    node, source = prop.parsed.expression, prop.file.source
    require_supported(node, source)
    if not isinstance(node, tree.Probability | tree.Reward):
        raise refuse(f"found '{prop.text}'")
    agent, nature = directions(node, None, source)
    constants = _Constants(prop, model)
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
    """The constants of a property's own text, and those of a model if there is one."""

    def __init__(self, prop: Property, model: FactoredMDP | None) -> None:
        self._file, self._given = prop.file, prop.constants
        self._known = None if model is None else scope(model, prop.file.source)

    def value(self, expr: Expr | None) -> Value:
        """Return the value of an expression over the constants."""
        assert expr is not None
        known, source = self._known, self._file.source
        outer = {} if known is None else known.constants
        formulas = {} if known is None else known.formulas
        used = needed([expr], self._file.constants, formulas)
        own = [c for c in self._file.constants if c.name in used]
        given = {name: value for name, value in self._given.items() if name in used}
        types = {} if known is None else known.variable_types()
        types |= {name: Literal(value).type for name, value in outer.items()}
        types |= {c.name: c.type for c in own}
        values = constant_values(own, given, types, formulas, source, outer)
        return evaluate(substitute(expr, formulas), {**outer, **values}, source)

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
