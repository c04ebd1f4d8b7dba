"""A model after the static checks: the form from which state spaces are built.

Formulas, labels inside expressions and renamed modules are expanded, constants are values, and
parts without variables are evaluated. The only names left in expressions are those of variables.
Expressions, commands and updates are those of `ast`; in an update the probability is never None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rfmdp.language.ast import (
    Command,
    Expr,
    LabelDefinition,
    ModelType,
    Node,
    RewardStructure,
    Type,
)
from rfmdp.language.source import SourceText


@dataclass(frozen=True, slots=True)
class CheckedVariable(Node):
    """A state variable with evaluated range. A bool has the range 0..1.

    init : initial value, False/True as 0/1; None if the model has `init ... endinit`
    module : index into `CheckedModel.modules`, None for a global variable
    """

    name: str
    lower: int
    upper: int
    is_bool: bool
    init: int | None
    module: int | None

    @property
    def type(self) -> Type:
        """Return the type of the variable in expressions."""
        return Type.BOOL if self.is_bool else Type.INT


@dataclass(frozen=True, slots=True)
class CheckedModule:
    """A module, renamings carried out.

    alphabet : its actions in order of appearance, without the unlabelled one

    A command that was copied by renaming keeps its `position`: errors name that place.
    """

    name: str
    commands: tuple[Command, ...]
    alphabet: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A model ready for building.

    type : never None; an interval anywhere turns DTMC into IDTMC and MDP into IMDP
    variables : globals first, then module by module, in the order of the text (as PRISM does)
    actions : all action names in order of first appearance
    init : the condition of `init ... endinit`, or None if each variable has its initial value
    constants : the value of every constant of the model
    """

    type: ModelType
    variables: tuple[CheckedVariable, ...]
    modules: tuple[CheckedModule, ...]
    labels: tuple[LabelDefinition, ...]
    rewards: tuple[RewardStructure, ...]
    init: Expr | None
    constants: Mapping[str, bool | int | float]
    formulas: Mapping[str, Expr]  # expanded, constants not replaced: for properties
    actions: tuple[str, ...]
    source: SourceText = field(repr=False)

    def variable_types(self) -> dict[str, Type]:
        """Return the type of every variable by name."""
        return {variable.name: variable.type for variable in self.variables}
