"""Expressions in states: in many at once by the machine, in a single one by plain evaluation.

The machine only notices that a value does not exist; plain evaluation of that state then finds
the message and the place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.kernels import machine
from rfmdp.kernels.decorator import expect
from rfmdp.language.checked import CheckedModel
from rfmdp.language.evaluate import Value, evaluate
from rfmdp.language.expressions import Expr, Type
from rfmdp.language.program import Expressions, Program
from rfmdp.language.source import Position, PrismSourceError
from rfmdp.types import AnyArray, IntArray

CHUNK = 1 << 16  # states evaluated at once
DTYPE = {Type.BOOL: np.bool_, Type.INT: np.int64, Type.DOUBLE: np.float64}


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """One state of a text, and messages that name it.

    >>> from rfmdp.language.check import check_model
    >>> from rfmdp.language.parse import parse_model
    >>> text = "mdp module m x : [0..3]; up : bool; [] true -> (x'=1); endmodule"
    >>> print(State(check_model(parse_model(text)), np.array([2, 1])))
    (x=2, up=true)
    """

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

    >>> from rfmdp.language.check import check_model
    >>> from rfmdp.language.parse import parse_expression, parse_model
    >>> model = check_model(parse_model("mdp module m x : [0..9]; [] true -> true; endmodule"))
    >>> expr = parse_expression("x>0 ? 6/x : mod(x-1, 3)")
    >>> evaluate_states(expr, model, np.array([[0], [4]])).tolist()
    [2.0, 1.5]
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
        out[start : start + CHUNK] = (
            cells_out.view(np.float64) if type_ is Type.DOUBLE else cells_out
        )
    return out
