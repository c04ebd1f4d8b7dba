"""Rows of plain models as sparse arrays: pack them, take one step back, write a chain of them.

rows    entry_ptr (R + 1,), target (E,) int32, low (E,), slack (E,) or empty, free (R,),
        leave (R,), inverse (R,) of it or 0, reward (R,), error (R,)
players agent (+1 maximises, -1 minimises), nature (likewise), order: memory to sort one box

A row moves with probability `low`; if `free` is positive, nature adds that much to the entries, at
most `slack` each. Moves of a node to itself may be left out of rows without slack: `leave` is the
rest. What counts is the drift of a row, the mean of differences

    reward + sum_k p_k (x[target_k] - here),    here = x[s]: T(x)(s) - x(s),

whose float error, with its `error` per row, is relative to the differences, not to the values.
In the worth of a row without its moves to itself a node that is hardly ever left is like others.
"""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.primitives import multiply
from rfmdp.rounding import LAST_DIGITS, REWARD, SUM, TERM, TINY

DONE, NOW = 0, 1  # in `place` of `steps_back`: steps taken, side of `sides` that holds the bounds


@inline_kernel
def drift(rows, players, r, here, x):
    """Return (drift without reward, size of the differences) of row r where x is `here`.

    The float error is `error` times that size. Probabilities are known relatively, so they count
    with their differences; but the free mass is known absolutely only, so entries at which it may
    run out count in full. What has no upper bound but 1 takes all that is left.
    """
    entry_ptr, target, low, slack, free, _, _, _, error = rows
    _, _, order = players
    begin, end = entry_ptr[r], entry_ptr[r + 1]
    mean, size = 0.0, 0.0
    for k in range(begin, end):
        y = x[target[k]] - here
        mean += low[k] * y
        size += low[k] * abs(y)
    if free[r] > 0.0:
        sort_box(rows, players, r, x)
        rest, most = free[r], 0.0
        for i in range(end - begin):
            k = order[i]
            y = x[target[k]] - here
            mass = min(max(rest, 0.0), slack[k])
            mean += mass * y
            size += mass * abs(y)
            if rest >= -error[r] and rest - slack[k] <= error[r]:
                most = max(most, abs(y))
                if slack[k] == 1.0:
                    break
            rest -= slack[k]
        size += most
    if size == 0.0:
        size = differs(rows, r, x, here)
    return mean, size


@inline_kernel
def differs(rows, r, x, here):
    """Return a size for differences whose products with probabilities are too small for floats."""
    entry_ptr, target = rows[:2]
    for k in range(entry_ptr[r], entry_ptr[r + 1]):
        if x[target[k]] != here:
            return TINY
    return 0.0


@inline_kernel
def spread(error, size):
    """Return the float error of a mean of differences; none if there are none.

    `error` is eight units per term, so that times TINY it is at least `LAST_DIGITS` per term.
    """
    return error * (size + TINY) if size > 0.0 else 0.0


@inline_kernel
def backup(rows, players, r, s, x):
    """Return what row r of node s is worth if x is, by the moves that leave s.

    A sum of products, several times faster than differences: to compute with, not to prove.
    """
    entry_ptr, target, low, slack, free, _, inverse, reward, _ = rows
    _, _, order = players
    begin, end = entry_ptr[r], entry_ptr[r + 1]
    mean = 0.0
    if free[r] == 0.0:
        for k in range(begin, end):
            mean += low[k] * x[target[k]]
        return (reward[r] + mean) * inverse[r]
    sort_box(rows, players, r, x)
    rest, away = free[r], 0.0
    for i in range(end - begin):
        k = order[i]
        p = low[k] + min(rest, slack[k])
        rest -= min(rest, slack[k])
        if target[k] != s:
            mean += p * x[target[k]]
            away += p
    if away > 0.0:
        return (reward[r] + mean) / away
    return reward[r] + x[s]


@inline_kernel
def sort_box(rows, players, r, x):
    """Fill order[0 : n] with the entries of row r, those that nature prefers first."""
    entry_ptr, target = rows[:2]
    _, nature, order = players
    for i in range(entry_ptr[r + 1] - entry_ptr[r]):
        k = entry_ptr[r] + i
        y = nature * x[target[k]]
        j = i
        while j > 0 and nature * x[target[order[j - 1]]] < y:
            order[j] = order[j - 1]
            j -= 1
        order[j] = k


@inline_kernel
def nth_move(rows, players, r, i, rest):
    """Return (entry, probability, free mass left): move i of row r, as `sort_box` has sorted them.

    rest : free mass before it; free[r] if i is 0
    """
    entry_ptr, _, low, slack, free, _, _, _, _ = rows
    _, _, order = players
    k = order[i] if free[r] > 0.0 else entry_ptr[r] + i
    if rest > 0.0:
        more = min(rest, slack[k])
        return k, low[k] + more, rest - more
    return k, low[k], rest


@inline_kernel
def margin(error, reward, size, here):
    """Return a bound of the float error of a drift; `error` is relative to the differences."""
    if size == 0.0 and reward == 0.0:
        return 0.0
    return spread(error, size) + SUM * abs(here) + REWARD * reward + LAST_DIGITS


@kernel
def pack(chosen, reward, model, sets, work, rows, origin, loops, whole):
    """Fill `rows` with the allowed rows of the members, in their order.

    chosen  : members, states grouped by node; node (S,) of every state; allowed (R,)
    model   : the arrays of `FactoredMDP.structure`
    sets    : nominal, lower, upper, free (M,) positive where nature has a choice
    work    : seen (N,) of -1, by node; weight, room for the joint outcomes of a row
    origin  : (R',) the model's row of every packed one
    loops   : (R',) whether nature decides how much of it stays in its node
    whole   : whether moves of a node to itself are kept
    """
    members, node, allowed = chosen
    seen, weight = work
    row_ptr, marginal_ptr, row_marginals, outcome_ptr, successor_ptr, successors = model
    nominal, lower, upper, spare = sets
    entry_ptr, target, low, slack, free, leave, inverse, paid, error = rows
    at, place = 0, 0
    for s in members:
        for r in range(row_ptr[s], row_ptr[s + 1]):
            if not allowed[r]:
                continue
            begin, start, own = at, successor_ptr[r], node[s]
            size = successor_ptr[r + 1] - start
            box = -1
            weight[0], count = 1.0, 1
            for a in range(marginal_ptr[r], marginal_ptr[r + 1]):
                m = row_marginals[a]
                o, d = outcome_ptr[m], outcome_ptr[m + 1] - outcome_ptr[m]
                if spare[m] > 0.0:
                    box = m
                    break
                count = multiply(weight, 0, count, nominal, o, d)
            away = 0.0
            if box >= 0:
                o = outcome_ptr[box]
                for k in range(size):
                    if upper[o + k] > 0.0:
                        target[at] = node[successors[start + k]]
                        low[at], slack[at] = lower[o + k], upper[o + k] - lower[o + k]
                        if target[at] != own:
                            away = 1.0
                        else:
                            loops[place] = True
                        at += 1
                free[place] = spare[box]
            else:
                for k in range(size):
                    t = node[successors[start + k]]
                    if (t == own and not whole) or weight[k] == 0.0:
                        continue
                    away += weight[k]
                    if seen[t] >= begin:
                        low[seen[t]] += weight[k]
                    else:
                        seen[t] = at
                        target[at], low[at] = t, weight[k]
                        at += 1
                free[place] = 0.0
            leave[place], paid[place], origin[place] = away, reward[r], r
            inverse[place] = 1.0 / away if away > 0.0 else 0.0
            error[place] = TERM * (size + marginal_ptr[r + 1] - marginal_ptr[r] + 2)
            place += 1
            entry_ptr[place] = at


@kernel
def steps_back(row_ptr, rows, players, step, sides, moved, place, rules, budget):
    """Take rules.shape[0] equal steps back, from place[DONE] on, or as many as the budget lasts.

    Where `fixed` the value is `given`; elsewhere reward + discount * mean, rounded outwards, of
    the agent's best row. What can only move to one value gets exactly that. A state none of whose
    successors moved in the step before keeps its bounds; if none is left, so do all.

    step : fixed (S,), given (S,), discount
    sides : (2, S, 2) bounds, those of now in sides[place[NOW]]; moved : (2, S) likewise
    rules : (n, S) or, if there is nothing to choose, (n, 0); the last step goes to rules[0]
    """
    entry_ptr, target = rows[:2]
    fixed, given, discount = step
    while place[DONE] < rules.shape[0] and budget > 0:
        now, then = place[NOW], 1 - place[NOW]
        rule, after = rules[rules.shape[0] - 1 - place[DONE]], rules[rules.shape[0] - place[DONE] :]
        stir = False
        for s in range(fixed.shape[0]):
            fresh = place[DONE] == 0
            for k in range(entry_ptr[row_ptr[s]], entry_ptr[row_ptr[s + 1]]):
                if fresh or fixed[s]:
                    break
                fresh = moved[now, target[k]]
            a, b, best = sides[now, s, 0], sides[now, s, 1], row_ptr[s]
            if fixed[s]:
                a = b = given[s]
            elif fresh:
                a, b, best = step_back(row_ptr, rows, players, discount, sides[now], s)
                budget -= entry_ptr[row_ptr[s + 1]] - entry_ptr[row_ptr[s]]
            elif rule.shape[0] > 0:
                best = after[0, s]
            if rule.shape[0] > 0:
                rule[s] = best
            moved[then, s] = a != sides[now, s, 0] or b != sides[now, s, 1]
            stir = stir or moved[then, s]
            sides[then, s, 0], sides[then, s, 1] = a, b
        place[DONE], place[NOW] = place[DONE] + 1, then
        budget -= fixed.shape[0]
        if not stir:
            for i in range(rules.shape[0] - place[DONE]):
                for s in range(rule.shape[0]):
                    rules[i, s] = rule[s]
            place[DONE] = rules.shape[0]


@inline_kernel
def step_back(row_ptr, rows, players, discount, sides, s):
    """Return (lower, upper, best row) of state s one step before `sides` (S, 2)."""
    entry_ptr, target, low, _, free, _, _, reward, error = rows
    sign, _, _ = players
    lower, upper = sides[:, 0], sides[:, 1]
    least, most, best, choice = -np.inf, -np.inf, -np.inf, row_ptr[s]
    for r in range(row_ptr[s], row_ptr[s + 1]):
        a, b = sides[target[entry_ptr[r]], 0], sides[target[entry_ptr[r]], 1]
        if free[r] > 0.0:
            down, fall = drift(rows, players, r, a, lower)
            up, rise = drift(rows, players, r, b, upper)
        else:  # both at once: the same entries
            down, fall, up, rise = 0.0, 0.0, 0.0, 0.0
            for k in range(entry_ptr[r], entry_ptr[r + 1]):
                y, z = sides[target[k], 0] - a, sides[target[k], 1] - b
                down += low[k] * y
                fall += low[k] * abs(y)
                up += low[k] * z
                rise += low[k] * abs(z)
            if fall == 0.0:
                fall = differs(rows, r, lower, a)
            if rise == 0.0:
                rise = differs(rows, r, upper, b)
        paid = reward[r] != 0.0 or discount != 1.0
        a, b = a + down, b + up
        q = reward[r] + discount * a - step_margin(error[r], reward[r], fall, a, paid)
        least = max(least, sign * q)
        if sign > 0.0 and q > best:
            best, choice = q, r
        q = reward[r] + discount * b + step_margin(error[r], reward[r], rise, b, paid)
        most = max(most, sign * q)
        if sign < 0.0 and -q > best:
            best, choice = -q, r
    return sign * least, sign * most, choice


@inline_kernel
def step_margin(error, reward, size, mean, paid):
    """Return a bound of the float error of reward + discount * mean; 0 for one value, unpaid."""
    off = spread(error, size) + SUM * abs(mean) if size > 0.0 else 0.0
    if paid and (reward != 0.0 or mean != 0.0):
        off += REWARD * (abs(reward) + abs(mean)) + LAST_DIGITS
    return off


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
