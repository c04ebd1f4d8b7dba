"""Walk through the components of a plain model, bottom first, and leave proven bounds behind.

Rows and players come as in `kernels.packed`, with more tuples of arrays:

nodes   component_ptr (C + 1,): nodes of every component; row_ptr (N + 1,): rows of every node;
        single (C,): components of one node that is left in every step, or as often as is known
bounds  value (N,), lower (N,), upper (N,), choice (N,) row of every node, shape (N,): the last
        change of value or, where pace[STEPS] > 0, the expected sum of it along the chain,
        rule (N,): the best row of every node for the bound that is swept
state   place, pace: where the walk stands, see the names of their entries below

Node 0 is worth 0, node 1 is worth 1.
"""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel, kernel, step_kernel
from rfmdp.kernels.packed import backup, drift, margin, nth_move, sort_box, spread
from rfmdp.rounding import REWARD, SUM

SETTLED, PAUSED, SLOW, FAILED = 0, 1, 2, 3  # how a walk stops
COMPONENT, PHASE, SWEEPS, TRIES, SPENT, MISSED = 0, 1, 2, 3, 4, 5  # in `place`: where it stands
# in `pace`: last relative change, its rate, largest value, how many steps a solved chain takes
CHANGE, RATE, SCALE, STEPS = 0, 1, 2, 3
VALUE, ERRORS, LOWER, UPPER = 0, 1, 2, 3  # phases of a component
FLOOR = 1e-9  # of the largest value of a component: what relative changes are relative to at least
SMALL = 1e-3  # of it: values below are small
LEAST = 2.0**-50  # relative change that sweeps can tell
# entries that one component may cost before help is asked for, and times all of its own
PATIENCE, CHANCES = 20_000, 25
MISSES = 2  # jumps that made things worse before no more are tried
LONG = 40  # steps of a chain, or sweeps of a bound, from which on solving pays
LONGEST = 20_000  # sweeps of one bound before another width is tried
BETWEEN = 6  # sweeps with all rows between two times that a chain is solved
CHEAP = 40  # sweeps with fixed rows, at most, before something else is tried
STEADY = 0.05  # change of a rate, relative to what it leaves, that allows to extrapolate
FARTHEST = 1e3  # times the last change that values may jump
FASTEST = 1.0 - 1e-9  # rate that is still told from none


@kernel
def walk(nodes, rows, players, bounds, state, stop, width, budget, direct):
    """Settle the components from place[COMPONENT] to `stop`; returns how it ended.

    PAUSED after about `budget` entries, SLOW where the chain of a component of at most `direct`
    nodes should be solved at once (that of `choice`, in the phase of a bound that of `rule`),
    FAILED where no proof was found. To be called again.

    width : relative width of the bounds that a component may add, about
    """
    _, _, single = nodes
    place, pace = state
    while place[COMPONENT] < stop:
        start = place[COMPONENT]
        if single[start]:
            place[COMPONENT] = solve_single(nodes, rows, players, bounds, start, stop, budget)
            budget -= 4 * (place[COMPONENT] - start)
        else:
            found, cost = settle(nodes, rows, players, bounds, state, width, budget, direct)
            budget -= cost
            if found != SETTLED:
                return found
            place[COMPONENT] += 1
        place[PHASE] = place[SWEEPS] = place[TRIES] = place[SPENT] = place[MISSED] = 0
        pace[CHANGE], pace[RATE], pace[SCALE], pace[STEPS] = 1.0, 0.0, 0.0, 0.0
        if budget <= 0:
            return PAUSED
    return SETTLED


@inline_kernel
def settle(nodes, rows, players, bounds, state, width, budget, direct):
    """Settle one component with cycles: its value, how errors add up, then a bound on either side.

    Goes on in the phase where `state` stands; returns (how it ended, cost).

    With w the expected sum of c = value + floor along the chain at hand, value + e w drops by e c
    in a step of that chain, not counting moves of a node to itself, and is inductive if the
    residual is less and no other row spoils it. Where one does, the bound is iterated with every
    step dearer (or cheaper) by e c: its limit is inductive with something to spare, so it is
    enough to come near it.
    """
    place, _ = state
    first, last, everything = extent(nodes, rows, place[COMPONENT])
    for _ in range(place[TRIES]):
        width *= 0.125
    patience = PATIENCE + CHANCES * everything if last - first <= direct else 1 << 62
    found, spent = find_value(nodes, rows, players, bounds, state, width, budget, patience)
    if found == SETTLED:
        found, cost = prove_sides(
            nodes, rows, players, bounds, state, width, budget - spent, patience
        )
        spent += cost
    return found, spent


@inline_kernel
def find_value(nodes, rows, players, bounds, state, width, budget, patience):
    """Take the phases VALUE and ERRORS of a component to their end; returns (how it ended, cost).

    Leaves the value, `shape`, pace[STEPS] and the first guess of both bounds. SLOW after `patience`
    entries.
    """
    place, pace = state
    first, last, _ = extent(nodes, rows, place[COMPONENT])
    value, _, _, _, shape, _ = bounds
    spent = 0
    while place[PHASE] < LOWER:
        if place[PHASE] == VALUE:
            # a chain that was solved is better solved again than swept, once rows have changed
            cheap = 0 if place[SPENT] > patience and pace[STEPS] > 0.0 else CHEAP
            done, cost = iterate(nodes, rows, players, bounds, state, width, cheap)
        else:
            done, steps, cost = add_up(rows, players, bounds, first, last, FLOOR * pace[SCALE])
            if done:
                pace[STEPS] = steps
        spent += cost
        place[SPENT] += cost
        place[SWEEPS] += 1
        if done and place[PHASE] == ERRORS and pace[CHANGE] > enough(pace, width):
            place[PHASE] = VALUE  # steps are longer than they seemed
        elif done:
            place[PHASE] += 1
            place[SWEEPS] = 0
            if pace[STEPS] == 0.0:
                for s in range(first, last):
                    shape[s] = value[s] + FLOOR * pace[SCALE]
            else:
                step = max(width / pace[STEPS], 8.0 * LEAST)
                guess(nodes, rows, bounds, first, last, SMALL * pace[SCALE], step)
        elif place[SPENT] > patience and (pace[STEPS] == 0.0 or place[SWEEPS] >= BETWEEN):
            place[SWEEPS] = 0
            return SLOW, spent
        elif spent > budget:
            return PAUSED, spent
    return SETTLED, spent


@inline_kernel
def prove_sides(nodes, rows, players, bounds, state, width, budget, patience):
    """Take the phases LOWER and UPPER of a component to their end; returns (how it ended, cost).

    A bound that takes too long fails: all begins again with another width.
    """
    place, pace = state
    first, last, everything = extent(nodes, rows, place[COMPONENT])
    value, lower, upper, _, shape, rule = bounds
    spent = 0
    floor = FLOOR * pace[SCALE]
    step = max(width / pace[STEPS], 8.0 * LEAST)
    while place[PHASE] <= UPPER:
        side, x = (-1.0, lower) if place[PHASE] == LOWER else (1.0, upper)
        spent += everything
        if check_side(nodes, rows, players, bounds, first, last, side):
            place[PHASE] += 1
            place[SWEEPS] = 0
            continue
        worst, push = 1.0, (side, step, floor)
        while worst > -0.25 and spent <= budget:
            worst, _ = sweep(
                nodes, rows, players, first, last, x, value, rule, shape[:0], True, push
            )
            spent += everything
            place[SPENT] += everything
            place[SWEEPS] += 1
            long = pace[STEPS] > LONG or place[SWEEPS] > LONG
            if worst > -0.25 and place[SPENT] > patience and long and place[SWEEPS] % BETWEEN == 0:
                return SLOW, spent
        if place[SWEEPS] > min(100.0 + 20.0 * pace[STEPS], LONGEST):
            place[TRIES] += 1
            place[PHASE] = place[SWEEPS] = 0
            place[MISSED] = MISSES
            pace[STEPS] = 0.0
            for s in range(first, last):
                if not value[s] < 1e300:  # lost to infinity: start again
                    value[first:last] = 0.0
            return FAILED if place[TRIES] > 12 else PAUSED, spent
        if spent > budget:
            return PAUSED, spent
    for s in range(first, last):
        value[s] = 0.5 * (lower[s] + upper[s])
    return SETTLED, spent


@inline_kernel
def extent(nodes, rows, component):
    """Return (first node, end of the nodes, number of entries) of a component."""
    component_ptr, row_ptr, _ = nodes
    entry_ptr, _ = rows[:2]
    first, last = component_ptr[component], component_ptr[component + 1]
    return first, last, entry_ptr[row_ptr[last]] - entry_ptr[row_ptr[first]]


@inline_kernel
def enough(pace, width):
    """Return the relative change of a value that need not be made smaller."""
    steps = pace[STEPS] if pace[STEPS] > 0.0 else 1.0 / (1.0 - pace[RATE])
    return max(0.25 * width / steps, LEAST)


@inline_kernel
def iterate(nodes, rows, players, bounds, state, width, most):
    """One sweep over all rows, `most` cheap ones after it; returns (whether enough, cost)."""
    place, pace = state
    first, last, everything = extent(nodes, rows, place[COMPONENT])
    push, keep = (0.0, 0.0, FLOOR * pace[SCALE] + 1e-300), pace[STEPS] > 0.0
    _, row_ptr, _ = nodes
    value, _, _, choice, shape, _ = bounds
    if keep:
        shape = shape[:0]
    cheap = max(1, everything * (last - first) // (row_ptr[last] - row_ptr[first]))
    cost, change, start, rate, done = 0, pace[CHANGE], 0.0, 0.0, False
    for i in range(most + 1):
        before, old = change, rate
        change, pace[SCALE] = sweep(
            nodes, rows, players, first, last, value, value, choice, shape, i == 0, push
        )
        if i == 0:
            cost, start = everything, change
            if change > 2.0 * before:
                place[MISSED] += 1
            pace[CHANGE] = change
            if change <= enough(pace, width):
                done = True
                break
            continue
        cost += cheap
        rate = min(change / before, FASTEST) if before > 0.0 else 0.0
        if change <= max(0.1 * start, 0.5 * enough(pace, width)):
            break
        if abs(rate - old) < STEADY * (1.0 - rate) and not keep and place[MISSED] < MISSES:
            extrapolate(value, shape, first, last, rate / (1.0 - rate))
            break
    pace[CHANGE] = change
    if not keep and not done:
        pace[RATE] = max(rate, 0.9 * pace[RATE])
    return done, cost


@step_kernel
def solve_single(nodes, rows, players, bounds, component, stop, budget):
    """Settle nodes that have only themselves to come back to: one division per row and side.

    From `component` to the first one that is not `single`, or until the budget is used up; returns
    the next component.
    """
    component_ptr, row_ptr, single = nodes
    entry_ptr, target, _, _, _, leave, _, reward, error = rows
    sign, _, _ = players
    value, lower, upper, choice, _, _ = bounds
    while component < stop and single[component] and budget > 0:
        s = component_ptr[component]
        for i in range(2):
            side, x = (-1.0, lower) if i == 0 else (1.0, upper)
            best, most = row_ptr[s], -np.inf
            for r in range(row_ptr[s], row_ptr[s + 1]):
                if leave[r] <= 0.0:
                    continue
                here = x[target[entry_ptr[r]]]
                mean, size = drift(rows, players, r, here, x)
                q = here + (reward[r] + mean) / leave[r]
                off = margin(error[r], reward[r], size, q) + error[r] * reward[r]
                q += side * (off / leave[r] + (SUM * q if off > 0.0 else 0.0))
                if sign * q > most:
                    best, most = r, sign * q
            x[s] = max(sign * most, 0.0)
            if side == -sign:
                choice[s] = best
        budget -= 1 + entry_ptr[row_ptr[s + 1]] - entry_ptr[row_ptr[s]]
        value[s] = 0.5 * (lower[s] + upper[s])
        component += 1
    return component


@step_kernel
def sweep(nodes, rows, players, first, last, x, value, rule, shape, every, push):
    """One Gauss-Seidel sweep of x over all rows, or over those of the `rule`, in place.

    Without a side x is the value: returns (largest relative change, largest value), and the
    changes go to `shape` unless it is empty. With a side x is a bound, pushed outwards by
    step * (value + floor) everywhere: returns the largest of T(x) - x, outwards, in units of that
    push (below -1/2 all is well). The rule becomes that of the best rows.

    push : side (-1 lower, +1 upper, 0 none), step, floor
    """
    _, row_ptr, _ = nodes
    _, _, _, _, _, _, inverse, _, _ = rows
    sign, _, _ = players
    side, step, floor = push
    keep = shape.shape[0] == 0
    worst = -1.0 if side != 0.0 else 0.0
    scale = 0.0
    for s in range(first, last):
        begin, end = row_ptr[s], row_ptr[s + 1]
        if not every:
            begin, end = rule[s], rule[s] + 1
        best, most = begin, -np.inf
        for r in range(begin, end):
            if inverse[r] > 0.0:
                q = sign * backup(rows, players, r, s, x)
                if q > most:
                    best, most = r, q
        rule[s] = best
        old = x[s]
        new = max(sign * most, 0.0)
        if side == 0.0:
            off = abs(new - old)
            unit = new + floor
        else:
            unit = step * (value[s] + floor)
            off = side * (new - old) if side > 0.0 or old > 0.0 else -unit
            new = max(new + side * unit, 0.0)
        if off > worst * unit:
            worst = off / unit
        if not keep:
            shape[s] = new - old
        scale = max(scale, new)
        x[s] = new
    return worst, scale


@step_kernel
def check_side(nodes, rows, players, bounds, first, last, side):
    """Return whether a bound is inductive, rounding included; choice follows the guarantee."""
    _, row_ptr, _ = nodes
    _, _, _, _, _, leave, _, reward, error = rows
    sign, _, _ = players
    _, lower, upper, choice, _, _ = bounds
    x = lower if side < 0.0 else upper
    for s in range(first, last):
        best, most = row_ptr[s], -np.inf
        for r in range(row_ptr[s], row_ptr[s + 1]):
            if leave[r] > 0.0:
                mean, size = drift(rows, players, r, x[s], x)
                off = spread(error[r], size) + REWARD * reward[r]
                q = sign * (reward[r] + mean + side * off)
                if q > most:
                    best, most = r, q
        if not side * sign * most <= 0.0 and not (side < 0.0 and x[s] == 0.0):
            return False
        if side == -sign:
            choice[s] = best
    return True


@step_kernel
def guess(nodes, rows, bounds, first, last, small, step):
    """Fill the first guess of both bounds: value -+ step * shape, and what others are off by.

    What the bounds of lower components are off by, they are off by here at most: relative to the
    values, or absolutely, or relative to more than small values, whichever is least.
    """
    _, row_ptr, _ = nodes
    entry_ptr, target = rows[:2]
    value, lower, upper, _, shape, _ = bounds
    relative, absolute, mixed = 0.0, 0.0, 0.0
    for k in range(entry_ptr[row_ptr[first]], entry_ptr[row_ptr[last]]):
        t = target[k]
        if t < first and lower[t] < upper[t]:
            off = max(upper[t] - value[t], value[t] - lower[t])
            absolute = max(absolute, off)
            mixed = max(mixed, off / (value[t] + small))
            if off > relative * value[t]:
                relative = off / value[t]
    for s in range(first, last):
        off = min(relative * value[s], min(absolute, mixed * (value[s] + small)))
        off = step * shape[s] + 1.001 * off
        lower[s] = max(value[s] - off, 0.0)
        upper[s] = value[s] + off


@step_kernel
def add_up(rows, players, bounds, first, last, floor):
    """Sweep `shape` to the expected sum of c = value + floor along the chosen rows, roughly.

    Returns (whether it is near, largest sum in units of c, cost). `lower` is scratch memory.
    """
    entry_ptr, target, _, _, free, _, _, _, _ = rows
    value, lower, _, choice, shape, _ = bounds
    change, rate, cost, steps = 1.0, 0.0, 0, 1.0
    for _ in range(CHEAP):
        before, old = change, rate
        change, steps = 0.0, 1.0
        for s in range(first, last):
            r = choice[s]
            c = value[s] + floor
            rest, away, new = free[r], 0.0, 0.0
            if rest > 0.0:
                sort_box(rows, players, r, value)
            for i in range(entry_ptr[r + 1] - entry_ptr[r]):
                k, p, rest = nth_move(rows, players, r, i, rest)
                if target[k] != s:
                    away += p
                    if target[k] >= first:
                        new += p * shape[target[k]]
            new = c + (new / away if away > 0.0 else shape[s])
            change = max(change, abs(new - shape[s]) / new)
            steps = max(steps, new / c)
            lower[s] = new - shape[s]
            shape[s] = new
            cost += entry_ptr[r + 1] - entry_ptr[r]
        rate = min(change / before, FASTEST)
        if change <= 0.1 * (1.0 - rate) or steps > 1e15:
            break
        if abs(rate - old) < STEADY * (1.0 - rate):
            extrapolate(shape, lower, first, last, rate / (1.0 - rate))
            change = 1.0
    return change <= 0.1 * (1.0 - rate), steps, cost


@step_kernel
def extrapolate(x, change, first, last, times):
    """Add the changes to come if each is the last one times a rate: `times` of it together."""
    times = min(times, FARTHEST)
    for s in range(first, last):
        x[s] = max(x[s] + times * change[s], 0.0)
