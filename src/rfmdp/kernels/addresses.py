"""Where things are in the memory of the machine, and what its codes and instructions mean.

All ints of fixed number live in one array, `memory`: counters, the cells of expressions, and
records of commands, updates and so on. A record is known by its address, `memory[command + GUARD]`
is a field of it. Fewer arrays are fewer seconds of compilation.

Instructions are (operation, x, y, z) with cells of ints or of floats: `d` is the cell that an
instruction fills, `a` and `b` are its operands and `t` is a place in the code. A test that holds
jumps. What has no value (an int beyond 32 bits, a `mod` by 0) stops the machine. They stand here
because the compiler of expressions needs no numba.
"""

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
