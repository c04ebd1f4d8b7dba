"""Properties as users hold them: a text that was read, to be asked of any model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike

from rfmdp.answers.specification import directions, probability, reward
from rfmdp.errors import UnsupportedError
from rfmdp.language import ast as tree
from rfmdp.language.ast import Expr
from rfmdp.language.check import model_type, scope
from rfmdp.language.check_properties import (
    CheckedProperty,
    check_property,
    require_supported,
    with_numbers,
)
from rfmdp.language.expressions import nodes, path_operators, write_expression
from rfmdp.language.names import Constants, plain_values
from rfmdp.language.parse import parse_property_file
from rfmdp.language.source import Position, read_text
from rfmdp.model.lattice import AnyModel
from rfmdp.objective import Spec
from rfmdp.types import BoolArray


@dataclass(frozen=True, slots=True)
class Property:
    """A property in PRISM's language; `solve` and `check` take it.

    file : where its constants, formulas, labels and references come from
    constants : values of constants that the file leaves open
    """

    parsed: tree.PropertyDefinition = field(repr=False)
    file: tree.PropertyFile = field(repr=False)
    constants: Mapping[str, bool | int | float | str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str | None:
        """The name before the colon, if there is one."""
        return self.parsed.name

    @property
    def text(self) -> str:
        """The property in PRISM's notation, without its name."""
        return write_expression(self.parsed.expression)

    def __str__(self) -> str:
        return self.text

    def bind(self, model: AnyModel, constants: Constants | None = None) -> CheckedProperty:
        """Return the property with its names resolved against a model."""
        constants = {**self.constants, **plain_values(constants)}
        return check_property(self.parsed, self.file, scope(model, self.file.source), constants)

    def spec(self, model: AnyModel | None = None, *, settled: bool = False) -> Spec:
        """Return the specification of a single P or R; of one with a bound, what it bounds.

        Sets of states are resolved when the specification meets a model. Numbers of steps and
        discounts are needed at once: they may use constants of the property's own text, and those
        of `model`. What is more than a single P or R is refused; use `check`.

        Parameters
        ----------
        settled
            Whether nobody's direction matters (a policy and nature's choice are given, say). Then,
            and without a model, `P=?` is taken for `Pmax=?`.
        """
        node, source = self.parsed.expression, self.file.source
        require_supported(node, source)
        if not isinstance(node, tree.Probability | tree.Reward):
            raise _refuse(f"found '{self.text}'")
        kind = None if model is None or settled else model_type(model)
        agent, nature = directions(node, kind, source)
        path = with_numbers(node.path, self.file, scope(model, source), self.constants)
        if isinstance(node, tree.Probability):
            if not path_operators(path):
                raise _refuse("found a state formula inside P")
            objective, negated = probability(path, self.states)
            if negated:
                raise _refuse("found a negated bound on a reward inside P")
            return Spec(objective, agent, nature)
        if isinstance(node.structure, Expr):
            raise _refuse("found rewards by number")
        return Spec(reward(path, node.structure, self.states), agent, nature)

    def states(self, expr: Expr) -> FormulaStates:
        """Return where a formula over the names of this property holds, in any model."""
        return FormulaStates(expr, self)


@dataclass(frozen=True, slots=True)
class FormulaStates:
    """Where a part of a property holds; an objective takes it as a set of states."""

    expr: Expr
    of: Property = field(repr=False)

    @property
    def text(self) -> str:
        """The formula in PRISM's notation."""
        return write_expression(self.expr)

    @property
    def probabilistic(self) -> bool:
        """Whether probabilities decide where it holds: a P, R or filter is inside."""
        return any(isinstance(node, tree.OPERATORS) for node in nodes(self.expr))

    def holds(self, model: AnyModel) -> BoolArray:
        """Return a (S,) array; raise if bounds of a nested P or R leave it open somewhere."""
        from rfmdp.answers.evaluator import states_where

        definition = tree.PropertyDefinition(None, self.expr, position=self.expr.position)
        return states_where(model, Property(definition, self.of.file, self.of.constants))


def _refuse(what: str) -> UnsupportedError:
    """Return (not raise) the error of a property that is no single specification."""
    return UnsupportedError(
        f"A specification is a single P or R over X, F, G, U or a reward; {what}. "
        "Answer it with `rfmdp solve`, in Python `check(model, property)`."
    )


def parse_property(text: str, constants: Constants | None = None) -> Property:
    """Return a property; the text may define constants, labels and formulas before it.

    Raises
    ------
    PrismError
        If the text is not one property that rfmdp supports, with place and caret.

    Examples
    --------
    >>> parse_property('const int k = 3; Pmaxmin=? [ F<=k "goal" ]').text
    'Pmaxmin=? [ F<=k "goal" ]'
    """
    file = parse_property_file(text, "<property>")
    properties = file.properties
    if len(properties) != 1:
        place = properties[1].position if properties else Position(1, 1)
        raise file.source.error(place, f"expected one property, found {len(properties)}")
    require_supported(properties[0].expression, file.source)
    return Property(properties[0], file, plain_values(constants))


def parse_properties(
    text: str, constants: Constants | None = None, *, filename: str = "<properties>"
) -> list[Property]:
    """Return all properties of a text; those that are not supported say so when they are used."""
    file = parse_property_file(text, filename)
    return [Property(parsed, file, plain_values(constants)) for parsed in file.properties]


def load_properties(
    path: str | PathLike[str], constants: Constants | None = None
) -> list[Property]:
    """Return all properties of a file; see `parse_properties`."""
    return parse_properties(read_text(path), constants, filename=str(path))
