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

from rfmdp.kernels.decorator import inline_kernel, kernel, step_kernel
from rfmdp.kernels.packed import backup, drift, margin, sort_box, spread
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
STEADY = 0.05  # change of a rate, relative to what it leaves, that allows to extrapolate
FARTHEST = 1e3  # times the last change that values may jump
MISSES = 2  # jumps that made things worse before no more are tried
FASTEST = 1.0 - 1e-9  # rate that is still told from none
CHEAP = 40  # sweeps with fixed rows between two with all
LONG = 40  # steps of a chain, or sweeps of a bound, from which on solving pays
LONGEST = 20_000  # sweeps of one bound before another width is tried
BETWEEN = 6  # sweeps with all rows between two times that a chain is solved


@step_kernel
def solve_single(nodes, rows, players, bounds, component, stop, budget):
    """Settle nodes that have only themselves to come back to: one division per row and side.

    From `component` to the first one that is not `single`, or until the budget is used up; returns
    the next component.
    """
    component_ptr, row_ptr, single = nodes
    entry_ptr, target, _, _, _, leave, _, reward, error = rows
    sign, value, choice = players[0], bounds[0], bounds[3]
    while component < stop and single[component] and budget > 0:
        s = component_ptr[component]
        for i in range(2):
            side, x = (-1.0, bounds[1]) if i == 0 else (1.0, bounds[2])
            best, most = row_ptr[s], -float("inf")
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
        value[s] = 0.5 * (bounds[1][s] + bounds[2][s])
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
    row_ptr, inverse, sign = nodes[1], rows[6], players[0]
    side, step, floor = push
    keep = shape.shape[0] == 0
    worst, scale = -1.0 if side != 0.0 else 0.0, 0.0
    for s in range(first, last):
        begin, end = row_ptr[s], row_ptr[s + 1]
        if not every:
            begin, end = rule[s], rule[s] + 1
        best, most = begin, -float("inf")
        for r in range(begin, end):
            if inverse[r] > 0.0:
                q = sign * backup(rows, players, r, s, x)
                if q > most:
                    best, most = r, q
        rule[s] = best
        old, new = x[s], max(sign * most, 0.0)
        if side == 0.0:
            off, unit = abs(new - old), new + floor
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
    row_ptr, sign = nodes[1], players[0]
    _, _, _, _, _, leave, _, reward, error = rows
    x = bounds[1] if side < 0.0 else bounds[2]
    choice = bounds[3]
    for s in range(first, last):
        best, most = row_ptr[s], -float("inf")
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
def guess(nodes, rows, bounds, first, last, pace, width):
    """Fill the first guess of both bounds of a component; c is the shape to begin with.

    What the bounds of lower components are off by, they are off by here at most: relative to the
    values, or absolutely, or relative to more than small values, whichever is least.
    """
    entry_ptr, target = rows[:2]
    value, lower, upper, shape = bounds[0], bounds[1], bounds[2], bounds[4]
    floor, more = FLOOR * pace[SCALE], SMALL * pace[SCALE]
    relative, absolute, mixed = 0.0, 0.0, 0.0
    if pace[STEPS] == 0.0:
        for s in range(first, last):
            shape[s] = value[s] + floor
        return
    for k in range(entry_ptr[nodes[1][first]], entry_ptr[nodes[1][last]]):
        t = target[k]
        if t < first and lower[t] < upper[t]:
            off = max(upper[t] - value[t], value[t] - lower[t])
            absolute, mixed = max(absolute, off), max(mixed, off / (value[t] + more))
            if off > relative * value[t]:
                relative = off / value[t]
    step = max(width / pace[STEPS], 8.0 * LEAST)
    for s in range(first, last):
        off = min(relative * value[s], min(absolute, mixed * (value[s] + more)))
        off = step * shape[s] + 1.001 * off
        lower[s], upper[s] = max(value[s] - off, 0.0), value[s] + off


@kernel
def walk(nodes, rows, players, bounds, state, stop, width, budget, direct):
    """Settle the components from place[COMPONENT] to `stop`; returns how it ended.

    PAUSED after about `budget` entries, SLOW where the chain of a component of at most `direct`
    nodes should be solved at once (that of `choice`, in the phase of a bound that of `rule`),
    FAILED where no proof was found. To be called again.

    width : relative width of the bounds that a component may add, about
    """
    place, pace = state
    while place[COMPONENT] < stop:
        start = place[COMPONENT]
        if nodes[2][start]:
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

    With w the expected sum of c = value + floor along the chain at hand, value + e w drops by e c
    in a step of that chain, not counting moves of a node to itself, and is inductive if the
    residual is less and no other row spoils it. Where one does, the bound is iterated with every
    step dearer (or cheaper) by e c: its limit is inductive with something to spare, so it is
    enough to come near it.
    """
    place, pace = state
    component = place[COMPONENT]
    first, last = nodes[0][component], nodes[0][component + 1]
    everything = rows[0][nodes[1][last]] - rows[0][nodes[1][first]]
    width *= 0.125 ** place[TRIES]
    patience = PATIENCE + CHANCES * everything if last - first <= direct else 1 << 62
    value, rule, shape = bounds[0], bounds[5], bounds[4]
    spent = 0
    while place[PHASE] < LOWER:
        if place[PHASE] == VALUE:
            # a chain that was solved is better solved again than swept, once rows have changed
            cheap = 0 if place[SPENT] > patience and pace[STEPS] > 0.0 else CHEAP
            done, cost = iterate(nodes, rows, players, bounds, state, width, cheap)
        else:
            done, cost = add_up(rows, players, bounds, first, last, pace)
        spent += cost
        place[SPENT] += cost
        place[SWEEPS] += 1
        if done and place[PHASE] == ERRORS and pace[CHANGE] > enough(pace, width):
            place[PHASE] = VALUE  # steps are longer than they seemed
        elif done:
            place[PHASE] += 1
            place[SWEEPS] = 0
            guess(nodes, rows, bounds, first, last, pace, width)
        elif place[SPENT] > patience and (pace[STEPS] == 0.0 or place[SWEEPS] >= BETWEEN):
            place[SWEEPS] = 0
            return SLOW, spent
        elif spent > budget:
            return PAUSED, spent
    floor, step = FLOOR * pace[SCALE], max(width / pace[STEPS], 8.0 * LEAST)
    while place[PHASE] <= UPPER:
        side, x = (-1.0, bounds[1]) if place[PHASE] == LOWER else (1.0, bounds[2])
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
            forget(value, first, last)
            return FAILED if place[TRIES] > 12 else PAUSED, spent
        if spent > budget:
            return PAUSED, spent
    for s in range(first, last):
        value[s] = 0.5 * (bounds[1][s] + bounds[2][s])
    return SETTLED, spent


@inline_kernel
def enough(pace, width):
    """Return the relative change of a value that need not be made smaller."""
    steps = pace[STEPS] if pace[STEPS] > 0.0 else 1.0 / (1.0 - pace[RATE])
    return max(0.25 * width / steps, LEAST)


@inline_kernel
def iterate(nodes, rows, players, bounds, state, width, most):
    """One sweep over all rows, `most` cheap ones after it; returns (whether enough, cost)."""
    place, pace = state
    component = place[COMPONENT]
    first, last = nodes[0][component], nodes[0][component + 1]
    everything = rows[0][nodes[1][last]] - rows[0][nodes[1][first]]
    push, keep = (0.0, 0.0, FLOOR * pace[SCALE] + 1e-300), pace[STEPS] > 0.0
    value, choice = bounds[0], bounds[3]
    shape = bounds[4][:0] if keep else bounds[4]
    cheap = max(1, everything * (last - first) // (nodes[1][last] - nodes[1][first]))
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
def add_up(rows, players, bounds, first, last, pace):
    """Sweep `shape` to the expected sum of c along the chosen rows, roughly.

    Returns (whether it is near, cost); pace[STEPS] becomes the largest sum in units of c.
    """
    entry_ptr, target, low, slack, free, _, _, _, _ = rows
    order = players[2]
    value, lower, choice, shape = bounds[0], bounds[1], bounds[3], bounds[4]
    floor, change, rate, cost, steps = FLOOR * pace[SCALE], 1.0, 0.0, 0, 1.0
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
                k = order[i] if free[r] > 0.0 else entry_ptr[r] + i
                p = low[k]
                if rest > 0.0:
                    p += min(rest, slack[k])
                    rest -= min(rest, slack[k])
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
    near = change <= 0.1 * (1.0 - rate)
    if near:
        pace[STEPS] = steps
    return near, cost


@step_kernel
def forget(x, first, last):
    """Start again from 0 if some value is lost to infinity."""
    for s in range(first, last):
        if not x[s] < 1e300:
            x[first:last] = 0.0
            break


@step_kernel
def extrapolate(x, change, first, last, times):
    """Add the changes to come if each is the last one times a rate: `times` of it together."""
    times = min(times, FARTHEST)
    for s in range(first, last):
        x[s] = max(x[s] + times * change[s], 0.0)


@kernel
def chain(rows, players, value, choice, first, last, out):
    """Write I - P of the chosen rows and nature's answers to them at `value`, row by row.

    Fills out: ptr (n + 1,), inside and entry (columns and numbers among the nodes first..last,
    what stays left out of both sides), and known (n,), what the others add. Returns the entries.
    """
    entry_ptr, target, low, slack, free, _, _, _, _ = rows
    order = players[2]
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
            k = order[i] if free[r] > 0.0 else entry_ptr[r] + i
            p = low[k]
            if free[r] > 0.0:
                p += min(rest, slack[k])
                rest -= min(rest, slack[k])
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
    row_ptr, (entry_ptr, target) = nodes[1], rows[:2]
    value, choice = bounds[0], bounds[3]
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
