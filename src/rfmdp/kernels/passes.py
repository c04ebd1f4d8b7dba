"""Passes over the nodes first..last of one component of a plain model, for `kernels.walk`.

Rows and players come as in `kernels.packed`, nodes and bounds as in `kernels.walk`. A pass sweeps
or checks, and says what came of it; what to do next is decided there.
"""

import numpy as np

from rfmdp.kernels.decorator import kernel, step_kernel
from rfmdp.kernels.packed import backup, drift, margin, nth_move, sort_box, spread
from rfmdp.rounding import REWARD, SUM

CHEAP = 40  # sweeps with fixed rows, at most, before something else is tried
STEADY = 0.05  # change of a rate, relative to what it leaves, that allows to extrapolate
FARTHEST = 1e3  # times the last change that values may jump
FASTEST = 1.0 - 1e-9  # rate that is still told from none


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


@step_kernel
def forget(x, first, last):
    """Start again from 0 if some value is lost to infinity."""
    for s in range(first, last):
        if not x[s] < 1e300:
            x[first:last] = 0.0
            break


@kernel
def chain(rows, players, value, choice, first, last, out):
    """Write I - P of the chosen rows and nature's answers to them at `value`, row by row.

    Fills out: ptr (n + 1,), inside and entry (columns and numbers among the nodes first..last,
    what stays left out of both sides), and known (n,), what the others add. Returns the entries.
    """
    entry_ptr, target, _, _, free, _, _, _, _ = rows
    ptr, inside, entry, known = out
    at = 0
    ptr[0] = 0
    for s in range(first, last):
        r, diagonal = choice[s], at
        inside[at], entry[at] = s - first, 0.0
        at += 1
        known[s - first] = 0.0
        if free[r] > 0.0:
            sort_box(rows, players, r, value)
        rest = free[r]
        for i in range(entry_ptr[r + 1] - entry_ptr[r]):
            k, p, rest = nth_move(rows, players, r, i, rest)
            t = target[k]
            if t == s:
                continue
            entry[diagonal] += p
            if first <= t < last:
                inside[at], entry[at] = t - first, -p
                at += 1
            else:
                known[s - first] += p * value[t]
        ptr[s - first + 1] = at
    return at


@kernel
def make_progress(nodes, rows, bounds, first, last, reached):
    """Choose in every node a row that comes nearer to leaving first..last: a chain that ends.

    To where the value is positive if there is a way, else to anywhere. reached : (n,) of False
    """
    _, row_ptr, _ = nodes
    entry_ptr, target = rows[:2]
    value, _, _, choice, _, _ = bounds
    for anywhere in range(2):
        grown, step = True, 1
        while grown:
            grown, step = False, -step  # to and fro: ways that go against the order are as short
            for i in range(last - first):
                s = first + i if step > 0 else last - 1 - i
                for r in range(row_ptr[s], row_ptr[s + 1]):
                    if reached[s - first]:
                        break
                    for k in range(entry_ptr[r], entry_ptr[r + 1]):
                        t = target[k]
                        inside = first <= t < last
                        if reached[t - first] if inside else anywhere == 1 or value[t] > 0.0:
                            reached[s - first] = grown = True
                            choice[s] = r
                            break
