"""The published Chain in fractions: its second chain neither pays nor ends anything."""

from fractions import Fraction

STATES = 10
FAST, FALL = Fraction(6, 10), Fraction(4, 90)  # a step forward, and each of nine branches back


def chain_cost(radius):
    """Return the exact cost of the published Chain at a published radius (a text).

    The agent takes the faster command, nature the least probability p of a step. With that,
    V_i = 1 + p V_(i+1) + (1-p) V_0 gives all values from V_0, and the last row, in which nature
    fills the branches that fall deepest first, gives V_0. Values decrease along the chain, which
    makes that order the worst one.
    """
    radius = Fraction(radius)
    wide = radius == Fraction(1, 10)  # where the published bounds are those of the table's text
    least = Fraction(1, 1000) if wide else FALL - radius
    most = FALL * (1 if wide else Fraction(3, 2)) + radius
    step = FAST - radius
    value = [(Fraction(0), Fraction(1))]  # (constant, times V_0)
    for _ in range(STATES - 2):
        constant, times = value[-1]
        value.append(((constant - 1) / step, (times - (1 - step)) / step))
    rest, constant, times = 1 - step - 9 * least, Fraction(1), Fraction(0)
    for i in sorted([0, *range(STATES - 2)]):  # 0 is a fall-back state twice
        more = min(rest, most - least)
        rest -= more
        constant += (least + more) * value[i][0]
        times += (least + more) * value[i][1]
    first = (constant - value[-1][0]) / (value[-1][1] - times)
    values = [a + b * first for a, b in value]
    assert rest == 0
    assert values == sorted(values, reverse=True)
    return first
