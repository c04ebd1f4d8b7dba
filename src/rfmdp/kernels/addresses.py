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


YES = 0  # stop: the condition holds, or the value is in its cell
NO = 1  # stop: the condition does not hold
CALL = 2  # t, cell of its stamp: compute a shared part unless it is known for this state
RETURN = 3  # cell of the stamp
JUMP = 4  # _, _, t
IF_NOT = 5  # a, _, t
IF = 6  # a, _, t
IF_EQ = 7  # a, b, t: ints
IF_NE = 8
IF_LT = 9
IF_LE = 10
IF_GT = 11
IF_GE = 12
MOVE = 13  # d, a: ints
ADD = 14  # d, a, b
SUBTRACT = 15
MULTIPLY = 16
MODULO = 17
POWER = 18
MIN = 19
MAX = 20
CHECK = 21  # a: must have 32 bits
EQ = 22  # d, a, b: ints
NE = 23
LT = 24
LE = 25
MOVE_IF = 26  # d, a, b: only if b is not 0
FLOAT = 27  # d float, a int
FMOVE = 28  # d, a: floats
FMOVE_IF = 29  # d, a floats, b int
FADD = 30  # d, a, b: floats
FSUBTRACT = 31
FMULTIPLY = 32
FDIVIDE = 33
FPOWER = 34
FLOG = 35  # d, a, base b
FMIN = 36
FMAX = 37
FLOOR = 38  # d int, a float
CEIL = 39
ROUND = 40
FEQ = 41  # d int, a, b floats
FNE = 42
FLT = 43
FLE = 44
