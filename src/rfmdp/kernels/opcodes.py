"""The instructions of `machine`: (operation, x, y, z) with cells of ints or of floats.

`d` is the cell that an instruction fills, `a` and `b` are its operands and `t` is a place in the
code. A test that holds jumps. What has no value (an int beyond 32 bits, a `mod` by 0) stops the
machine. They stand in a file of their own because the compiler of expressions needs no numba.
"""

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
