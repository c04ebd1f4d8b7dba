"""A machine for compiled expressions: where things are in its memory, and what its code means.

Nothing is compiled per model: expressions are data, a few integers per operation. `evaluate` runs
one of them in many states; `explorer.explore` finds state spaces with the machine.

All ints of fixed number live in one array, `memory`: counters, the cells of expressions, and
records of commands, updates and so on. A record is known by its address, `memory[command + GUARD]`
is a field of it. Fewer arrays are fewer seconds of compilation.

Instructions are (operation, x, y, z) with cells of ints or of floats: `d` is the cell that an
instruction fills, `a` and `b` are its operands and `t` is a place in the code. A test that holds
jumps. What has no value (an int beyond 32 bits, a `mod` by 0) stops the machine.
"""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel, kernel, step_kernel

# what `explore` stops for
DONE, PAUSE, GROW, NEW_VECTOR, NEW_MIX = range(5)
NO_GUARD, NO_PROBABILITY, NO_ASSIGNMENT, OUT_OF_RANGE, TOO_LARGE = range(5, 10)
# counters and addresses at the beginning of the memory
STATES, EXPANDED, ROWS, MARGINALS, SUCCESSORS, MIXED, FIRST_MIXED, WIDEST, KEY_SIZE = range(9)
STAMP, CHAIN, STACK, VARIABLES, MODULES, LABELS, ALONE, CHOSEN, PLACES, VECTOR = range(9, 19)
DENSE = 19
HEADER = 20
# fields of records; a list in memory is its length and then its entries
# command: place of the guard, module, slot (0: unlabelled), updates from .. to, whether
# probabilities have upper ends, its distribution if that is constant, rows of `delta`; the stamp
# of the state for which `delta` is filled, and the distribution there
GUARD, MODULE, SLOT, FIRST, LAST, HAS_UPPER, CONSTANT, CHANGES, MOVES_STAMP, MOVES = range(10)
# update: places and cells of its probability or interval, assignments from .. to
LOWER, LOWER_CELL, UPPER, UPPER_CELL, FIRST_ASSIGNED, LAST_ASSIGNED = range(6)
UPDATE = 6
# assignment: record of the variable, place and cell of the value
VARIABLE, VALUE, VALUE_CELL = range(3)
ASSIGNMENT = 3
# variable: cell, range, field of a packed state
CELL, LOW, HIGH, MASK, SHIFT, WORD = range(6)
# module: cell of the variable by which its commands are looked up (0: none), its lowest value,
# addresses of lists of commands
KEY, KEY_LOW, BUCKETS = range(3)
# label: its number, modules without an enabled command, then its slots as a list
NUMBER, MISSING, SLOTS = range(3)
# slot: label, number of enabled commands, then these
LABEL, COUNT, ENABLED = range(3)
# columns of `rows`, `marginals` and `distributions`
SOURCE, ACTION, OWN_MARGINALS, TENSOR = range(4)
IDENTIFIER, FACTOR = range(2)
MARGINAL, SUPPORT, SUPPORT_END = range(3)  # of a random choice: marginal, action
# records of keys: owner, size, row of `distributions`, entries
OWNER, SIZE, DISTRIBUTION, ENTRIES = range(4)

NO_ACTION = -1
NO_OWNER = -1  # of the keys of random choices

# stop: the condition holds, or the value is in its cell; the condition does not hold
YES, NO = range(2)
# CALL t, cell of its stamp: compute a shared part unless it is known for this state
# RETURN cell of the stamp
CALL, RETURN = 2, 3
# JUMP _, _, t; IF and IF_NOT a, _, t; the others a, b, t compare ints
JUMP, IF_NOT, IF, IF_EQ, IF_NE, IF_LT, IF_LE, IF_GT, IF_GE = range(4, 13)
# d, a, b: ints; MOVE d, a; CHECK a: must have 32 bits
MOVE, ADD, SUBTRACT, MULTIPLY, MODULO, POWER, MIN, MAX, CHECK, EQ, NE, LT, LE = range(13, 26)
# d, a, b: floats; FLOAT d, a int; FMOVE d, a; FLOG d, a, base b
FLOAT, FMOVE, FADD, FSUBTRACT, FMULTIPLY, FDIVIDE, FPOWER, FLOG, FMIN, FMAX = range(26, 36)
# d int, a float; comparisons d int, a, b floats
FLOOR, CEIL, ROUND, FEQ, FNE, FLT, FLE = range(36, 43)

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
        if operation == YES:
            return 1
        elif operation == NO:
            return 0
        elif operation == CALL:
            if ints[y] != stamp:
                ints[stack] = pc
                stack += 1
                pc = x
        elif operation == RETURN:
            ints[x] = stamp
            stack -= 1
            pc = ints[stack]
        elif operation == JUMP:
            pc = z
        elif operation == IF_NOT:
            if ints[x] == 0:
                pc = z
        elif operation == IF:
            if ints[x] != 0:
                pc = z
        elif operation == IF_EQ:
            if ints[x] == ints[y]:
                pc = z
        elif operation == IF_NE:
            if ints[x] != ints[y]:
                pc = z
        elif operation == IF_LT:
            if ints[x] < ints[y]:
                pc = z
        elif operation == IF_LE:
            if ints[x] <= ints[y]:
                pc = z
        elif operation == IF_GT:
            if ints[x] > ints[y]:
                pc = z
        elif operation == IF_GE:
            if ints[x] >= ints[y]:
                pc = z
        elif operation == MOVE:
            ints[x] = ints[y]
        elif operation == ADD:
            ints[x] = ints[y] + ints[z]
        elif operation == SUBTRACT:
            ints[x] = ints[y] - ints[z]
        elif operation == MULTIPLY:
            ints[x] = ints[y] * ints[z]
        elif operation == MODULO:
            if ints[z] <= 0:
                return -1
            ints[x] = ints[y] % ints[z]
        elif operation == POWER:
            power, exists = _int_power(ints[y], ints[z])
            if not exists:
                return -1
            ints[x] = power
        elif operation == MIN:
            ints[x] = min(ints[y], ints[z])
        elif operation == MAX:
            ints[x] = max(ints[y], ints[z])
        elif operation == CHECK:
            if ints[x] < _INT_LOW or ints[x] > _INT_HIGH:
                return -1
        elif operation == EQ:
            ints[x] = ints[y] == ints[z]
        elif operation == NE:
            ints[x] = ints[y] != ints[z]
        elif operation == LT:
            ints[x] = ints[y] < ints[z]
        elif operation == LE:
            ints[x] = ints[y] <= ints[z]
        elif operation == FLOAT:
            floats[x] = float(ints[y])
        elif operation == FMOVE:
            floats[x] = floats[y]
        elif operation == FADD:
            floats[x] = floats[y] + floats[z]
        elif operation == FSUBTRACT:
            floats[x] = floats[y] - floats[z]
        elif operation == FMULTIPLY:
            floats[x] = floats[y] * floats[z]
        elif operation == FDIVIDE:
            floats[x] = floats[y] / floats[z]
        elif operation == FPOWER:
            floats[x] = floats[y] ** floats[z]
        elif operation == FLOG:
            floats[x] = _logarithm(floats[y], floats[z])
        elif operation == FMIN:
            first, second = floats[y], floats[z]
            floats[x] = first if first <= second or first != first else second
        elif operation == FMAX:
            first, second = floats[y], floats[z]
            floats[x] = first if first >= second or first != first else second
        elif operation <= ROUND:
            value = floats[y]
            whole = np.floor(value)
            if operation == CEIL:
                whole = np.ceil(value)
            elif operation == ROUND and value - whole >= 0.5:
                whole += 1.0
            if not (_INT_LOW <= whole <= _INT_HIGH):
                return -1
            ints[x] = int(whole)
        elif operation == FEQ:
            ints[x] = floats[y] == floats[z]
        elif operation == FNE:
            ints[x] = floats[y] != floats[z]
        elif operation == FLT:
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
