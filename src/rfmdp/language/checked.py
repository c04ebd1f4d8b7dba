"""A model after the static checks: the form from which state spaces are built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rfmdp.language.ast import Expr, LabelDefinition, ModelType, Module, RewardStructure, Type
from rfmdp.language.source import SourceText
from rfmdp.model.arrays import Variable


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

    type: ModelType
    variables: tuple[Variable, ...]
    modules: tuple[Module, ...]
    labels: tuple[LabelDefinition, ...]
    rewards: tuple[RewardStructure, ...]
    init: tuple[int, ...] | Expr
    constants: Mapping[str, bool | int | float]
    formulas: Mapping[str, Expr]  # expanded, constants not replaced: for properties
    actions: tuple[str, ...]
    source: SourceText = field(repr=False)
    undefined: tuple[str, ...] = ()  # constants that the model does not need, and have no value

    def variable_types(self) -> dict[str, Type]:
        """Return the type of every variable by name."""
        return {v.name: Type.BOOL if v.boolean else Type.INT for v in self.variables}
