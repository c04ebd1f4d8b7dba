"""A model after the static checks: the form from which state spaces are built.

`scope` is a built model as the checks of properties see it. Labels stand for themselves there:
where they hold is in the model's arrays, so properties fit models from anywhere (PRISM texts,
explicit files, Python), not only those that still have their text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rfmdp.language import ast as tree
from rfmdp.language.expressions import Expr, Label, Type
from rfmdp.language.source import SourceText
from rfmdp.model.arrays import Variable
from rfmdp.model.lattice import AnyModel

BUILT_IN_LABELS = ("init", "deadlock")


CHAINS = (tree.ModelType.DTMC, tree.ModelType.IDTMC)


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A model ready for building.

    Formulas, labels inside expressions and renamed modules are expanded, constants are values, and
    parts without variables are evaluated. The only names left in expressions are those of
    variables. In an update the probability is never None. A command that was copied by renaming
    keeps its `position`: errors name that place.

    type : never None; an interval anywhere turns DTMC into IDTMC and MDP into IMDP
    variables : globals first, then module by module, in the order of the text (as PRISM does)
    actions : all action names in order of first appearance
    init : the initial value of every variable, or the condition of `init ... endinit`
    constants : the value of every constant of the model
    """

    type: tree.ModelType
    variables: tuple[Variable, ...]
    modules: tuple[tree.Module, ...]
    labels: tuple[tree.LabelDefinition, ...]
    rewards: tuple[tree.RewardStructure, ...]
    init: tuple[int, ...] | Expr
    constants: Mapping[str, bool | int | float]
    formulas: Mapping[str, Expr]  # expanded, constants not replaced: for properties
    actions: tuple[str, ...]
    source: SourceText = field(repr=False)
    undefined: tuple[str, ...] = ()  # constants that the model does not need, and have no value

    def variable_types(self) -> dict[str, Type]:
        """Return the type of every variable by name."""
        return {v.name: Type.BOOL if v.boolean else Type.INT for v in self.variables}


@dataclass(frozen=True, slots=True)
class Work:
    """What questions ask of a model: backward steps, or plays that go on until they end."""

    steps: int = 0
    ends: tuple[Expr, ...] = ()  # where plays end, of questions without a number of steps


def model_type(model: AnyModel) -> tree.ModelType:
    """Return the PRISM type that a model amounts to; one row per state is a chain."""
    if model.rows == model.states:
        return tree.ModelType.IDTMC if model.uncertain else tree.ModelType.DTMC
    return tree.ModelType.IMDP if model.uncertain else tree.ModelType.MDP


def scope(model: AnyModel | None, source: SourceText) -> CheckedModel:
    """Return the names that properties of a model may use; none without a model.

    Errors show `source`.
    """
    if model is None:
        return CheckedModel(tree.ModelType.MDP, (), (), (), (), (), {}, {}, (), source)
    constants = {k: v for k, v in model.formulas.items() if not isinstance(v, Expr)}
    return CheckedModel(
        model_type(model),
        model.variables,
        (),
        tuple(tree.LabelDefinition(k, Label(k)) for k in model.labels if k not in BUILT_IN_LABELS),
        tuple(tree.RewardStructure(name or None, ()) for name in model.rewards),
        (),
        constants,
        {k: v for k, v in model.formulas.items() if isinstance(v, Expr)},
        model.actions,
        source,
    )
