"""A model after the static checks: the form from which state spaces are built.

Expressions have values in its states: in many at once by the machine, in a single one by plain
evaluation. The machine only notices that a value does not exist; plain evaluation of that state
then finds the message and the place.

`scope` is a built model as the checks of properties see it. Labels stand for themselves there:
where they hold is in the model's arrays, so properties fit models from anywhere (PRISM texts,
explicit files, Python), not only those that still have their text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rfmdp.kernels import machine
from rfmdp.kernels.decorator import expect
from rfmdp.language import ast as tree
from rfmdp.language.ast import Expr, Label, Type
from rfmdp.language.evaluate import Value, evaluate
from rfmdp.language.program import Expressions, Program
from rfmdp.language.source import Position, PrismSourceError, SourceText
from rfmdp.model.arrays import Variable
from rfmdp.model.lattice import AnyModel
from rfmdp.types import AnyArray, IntArray

BUILT_IN_LABELS = ("init", "deadlock")
CHAINS = (tree.ModelType.DTMC, tree.ModelType.IDTMC)
CHUNK = 1 << 16  # states evaluated at once
DTYPE = {Type.BOOL: np.bool_, Type.INT: np.int64, Type.DOUBLE: np.float64}


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A model ready for building.

    Formulas, labels inside expressions and renamed modules are expanded, constants are values, and
    parts without variables are evaluated. The only names left in expressions are those of
    variables. A command that was copied by renaming keeps its `position`: errors name that place.

    type : never None; an interval anywhere turns DTMC into IDTMC and MDP into IMDP
    variables : globals first, then module by module, in the order of the text (as PRISM does)
    actions : all action names in order of first appearance
    init : the initial value of every variable, or the condition of `init ... endinit`
    constants : the value of every constant of the model
    """

    type: tree.ModelType
    variables: tuple[Variable, ...]
    modules: tuple[tree.Module, ...]
    labels: Mapping[str, Expr]
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
    """Return the names that properties of a model may use; errors show `source`."""
    if model is None:
        return CheckedModel(tree.ModelType.MDP, (), (), {}, (), (), {}, {}, (), source)
    constants = {k: v for k, v in model.formulas.items() if not isinstance(v, Expr)}
    return CheckedModel(
        model_type(model),
        model.variables,
        (),
        {name: Label(name) for name in model.labels if name not in BUILT_IN_LABELS},
        tuple(tree.RewardStructure(name or None, ()) for name in model.rewards),
        (),
        constants,
        {k: v for k, v in model.formulas.items() if isinstance(v, Expr)},
        model.actions,
        source,
    )


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """One state of a text, and messages that name it: `(x=2, up=true)`."""

    model: CheckedModel
    values: AnyArray  # (vars,)

    def __str__(self) -> str:
        texts = (f"{k}={str(v).lower()}" for k, v in self.names().items())
        return f"({', '.join(texts)})"

    def names(self) -> dict[str, Value]:
        """Return the value of every variable by name."""
        pairs = zip(self.model.variables, self.values, strict=True)
        return {v.name: bool(x) if v.boolean else int(x) for v, x in pairs}

    def value(self, expr: Expr) -> Value:
        """Return an expression in this state, or raise the error that names the state."""
        try:
            return evaluate(expr, self.names(), self.model.source)
        except PrismSourceError as error:
            place = Position(error.line, error.column)
            raise self.error(place, error.reason) from None

    def error(self, position: Position, reason: str) -> PrismSourceError:
        """Return (not raise) an error that names the state."""
        return self.model.source.error(position, f"{reason} in state {self}")


def evaluate_states(
    expr: Expr, model: CheckedModel, valuations: AnyArray, states: IntArray | None = None
) -> AnyArray:
    """Return a checked expression in many states, (N,) of bool, int64 or float64.

    An error names the first state in which it has no value.

    valuations : (S, vars), columns in the order of `model.variables`
    states : (N,) which of them, None for all
    """
    expressions = Expressions(model.variables, model.source)
    number = expressions.add(expr)
    program = Program(expressions)
    type_ = expressions.steps[number].type
    place, cell = (program.condition(number), -1) if type_ is Type.BOOL else program.value(number)
    code, ints, floats = program.code(), program.ints(), program.floats()
    memory = ints, floats, floats.view(np.int64) if type_ is Type.DOUBLE else ints
    used = [step.column for step in expressions.steps if step.column >= 0]
    columns = np.array(used, dtype=np.int64)
    cells = np.array(program.variables, dtype=np.int64)[columns]
    valuations = np.ascontiguousarray(valuations, dtype=np.int32).view()
    valuations.flags.writeable = False  # frozen or not: the same machine code for both
    states = np.arange(len(valuations)) if states is None else states
    expect(len(states) * len(code))
    out: AnyArray = np.empty(len(states), dtype=DTYPE[type_])
    for start in range(0, len(states), CHUNK):
        chunk = np.array(states[start : start + CHUNK], dtype=np.int64)
        cells_out = np.empty(len(chunk), dtype=np.int64)
        where = cells, columns, valuations
        done = machine.evaluate((code, place, cell), memory, where, chunk, cells_out)
        if done < len(chunk):
            state = State(model, valuations[chunk[done]])
            state.value(expr)
            raise state.error(expr.position, "the expression must have a value, found none")
        found = cells_out.view(np.float64) if type_ is Type.DOUBLE else cells_out
        out[start : start + CHUNK] = found
    return out
