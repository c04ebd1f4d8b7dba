"""A machine for compiled expressions.

Nothing is compiled per model: expressions are data, a few integers per operation (`addresses`).
`evaluate` runs one of them in many states; `expand` explores state spaces with the machine.
"""

import numpy as np

from rfmdp.kernels import addresses as op
from rfmdp.kernels.addresses import STACK, STAMP
from rfmdp.kernels.decorator import inline_kernel, kernel, step_kernel

_INT_LOW, _INT_HIGH = -(2**31), 2**31 - 1


@step_kernel
def _int_power(base, exponent):
    """Return (base ^ exponent, whether it exists within 32 bits)."""
    if exponent < 0:
        return 0, False
    if base == 0 or base == 1 or exponent == 0:
        return (1 if exponent == 0 else base), True
    if base == -1:
        return (1 if exponent % 2 == 0 else -1), True
    result = 1
    for _ in range(min(exponent, 32)):
        result *= base
        if result < _INT_LOW or result > _INT_HIGH:
            return 0, False
    return result, True


@step_kernel
def _logarithm(x, base):
    if not (x >= 0.0 and 0.0 < base < np.inf and base != 1.0):
        return np.nan
    return np.log(x) / np.log(base)


@inline_kernel
def run(pc, code, ints, floats):
    """Run code from a place; returns 1 for yes (or a value in its cell), 0 for no, -1 for no value.

    `ints` is the memory. Its `STAMP` is a number of the state: a shared part whose cell holds it
    is known.
    """
    stamp, stack = ints[STAMP], ints[STACK]
    while True:
        operation, x, y, z = code[pc, 0], code[pc, 1], code[pc, 2], code[pc, 3]
        pc += 1
        if operation == op.YES:
            return 1
        elif operation == op.NO:
            return 0
        elif operation == op.CALL:
            if ints[y] != stamp:
                ints[stack] = pc
                stack += 1
                pc = x
        elif operation == op.RETURN:
            ints[x] = stamp
            stack -= 1
            pc = ints[stack]
        elif operation == op.JUMP:
            pc = z
        elif operation == op.IF_NOT:
            if ints[x] == 0:
                pc = z
        elif operation == op.IF:
            if ints[x] != 0:
                pc = z
        elif operation == op.IF_EQ:
            if ints[x] == ints[y]:
                pc = z
        elif operation == op.IF_NE:
            if ints[x] != ints[y]:
                pc = z
        elif operation == op.IF_LT:
            if ints[x] < ints[y]:
                pc = z
        elif operation == op.IF_LE:
            if ints[x] <= ints[y]:
                pc = z
        elif operation == op.IF_GT:
            if ints[x] > ints[y]:
                pc = z
        elif operation == op.IF_GE:
            if ints[x] >= ints[y]:
                pc = z
        elif operation == op.MOVE:
            ints[x] = ints[y]
        elif operation == op.ADD:
            ints[x] = ints[y] + ints[z]
        elif operation == op.SUBTRACT:
            ints[x] = ints[y] - ints[z]
        elif operation == op.MULTIPLY:
            ints[x] = ints[y] * ints[z]
        elif operation == op.MODULO:
            if ints[z] <= 0:
                return -1
            ints[x] = ints[y] % ints[z]
        elif operation == op.POWER:
            power, exists = _int_power(ints[y], ints[z])
            if not exists:
                return -1
            ints[x] = power
        elif operation == op.MIN:
            ints[x] = min(ints[y], ints[z])
        elif operation == op.MAX:
            ints[x] = max(ints[y], ints[z])
        elif operation == op.CHECK:
            if ints[x] < _INT_LOW or ints[x] > _INT_HIGH:
                return -1
        elif operation == op.EQ:
            ints[x] = ints[y] == ints[z]
        elif operation == op.NE:
            ints[x] = ints[y] != ints[z]
        elif operation == op.LT:
            ints[x] = ints[y] < ints[z]
        elif operation == op.LE:
            ints[x] = ints[y] <= ints[z]
        elif operation == op.FLOAT:
            floats[x] = float(ints[y])
        elif operation == op.FMOVE:
            floats[x] = floats[y]
        elif operation == op.FADD:
            floats[x] = floats[y] + floats[z]
        elif operation == op.FSUBTRACT:
            floats[x] = floats[y] - floats[z]
        elif operation == op.FMULTIPLY:
            floats[x] = floats[y] * floats[z]
        elif operation == op.FDIVIDE:
            floats[x] = floats[y] / floats[z]
        elif operation == op.FPOWER:
            floats[x] = floats[y] ** floats[z]
        elif operation == op.FLOG:
            floats[x] = _logarithm(floats[y], floats[z])
        elif operation == op.FMIN:
            first, second = floats[y], floats[z]
            floats[x] = first if first <= second or first != first else second
        elif operation == op.FMAX:
            first, second = floats[y], floats[z]
            floats[x] = first if first >= second or first != first else second
        elif operation <= op.ROUND:
            value = floats[y]
            whole = np.floor(value)
            if operation == op.CEIL:
                whole = np.ceil(value)
            elif operation == op.ROUND and value - whole >= 0.5:
                whole += 1.0
            if not (_INT_LOW <= whole <= _INT_HIGH):
                return -1
            ints[x] = int(whole)
        elif operation == op.FEQ:
            ints[x] = floats[y] == floats[z]
        elif operation == op.FNE:
            ints[x] = floats[y] != floats[z]
        elif operation == op.FLT:
            ints[x] = floats[y] < floats[z]
        else:
            ints[x] = floats[y] <= floats[z]


@kernel
def evaluate(program, memory, variables, states, out):
    """Fill `out` (N,) with an expression in some states; returns the first without a value, or N.

    program : code, the place to begin at, and the cell of its value; a condition has none (-1)
    memory : ints, floats, and that of both which has the cell, as integers
    variables : cells of those that it needs, their columns, and the valuations (S, columns)
    """
    code, place, cell = program
    ints, floats, results = memory
    cells, columns, valuations = variables
    for i in range(out.shape[0]):
        same = i > 0
        for k in range(cells.shape[0]):
            value = valuations[states[i], columns[k]]
            same &= ints[cells[k]] == value
            ints[cells[k]] = value
        if same:
            out[i] = out[i - 1]
            continue
        ints[STAMP] += 1
        found = run(place, code, ints, floats)
        if found < 0:
            return i
        out[i] = results[cell] if cell >= 0 else found
    return out.shape[0]
