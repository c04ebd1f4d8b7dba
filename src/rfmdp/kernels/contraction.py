"""One backward step of a model whose transitions are never written out.

The states are a lattice: factor d has `size[d]` local states, and a state is a number in mixed
radix, factor 0 the most significant. W_0 = V, and contracting factor d with a move (a set and the
local states that its outcomes lead to) gives

    W_{d+1}(x_{d+1}, ..) = min over p in the set of sum over outcomes o of p(o) W_d(target(o), ..).

After the last factor W is a number: the worst expectation of one row. Rows that begin with the same
moves share these contractions, so they are walked as a trie, depth first, with one array per depth.
A depth decides the current values of the variables that its factor reads and that are not decided
yet (a *branch*); an action leaves the walk where the factor does not allow it. A factor with far
more local states than outcomes may be *postponed*: its outcomes are picked first and stay the least
significant digit, and are contracted last.

Nature answers every fibre separately, so W is never above the row's value. One answer for all
fibres of a node costs at most the node's *loss*, and what the rest of the walk averages cannot
enlarge it: W plus the losses of its nodes is never below the value (up to rounding, for which the
caller adds a margin).

The twin is the explicit solver on the same text (`tests/outer/lattice`).
"""

from rfmdp.kernels.decorator import inline_kernel, kernel, step_kernel

NOT_YET = -1  # no move was contracted at this depth
KNOWN, TWO, BOX, PICK = 0, 1, 2, 3
# kinds of moves: a known distribution, two outcomes, more; outcomes that are only picked
FEW = 16  # fibres that are rather contracted one by one
BITS, SKIP, MOVE, AT, TO, COUNT, PARENT, SLOT = range(8)  # columns of a program's operations
TOLERANCE, UNDER, ROWS, MIXED, WORST = 0, 1, 2, 3, 4  # places in `totals`


@inline_kernel
def few_fibres(source, first, second, work, to, count, low, high):
    """Contract as `two_outcomes` does, which sets out to run through long arrays."""
    most = 0.0
    least = 0.0
    for i in range(count):
        b = source[second + i]
        d = source[first + i] - b
        x, y = high * d, low * d
        work[to + i] = b + (x if x < y else y)
        most = d if d > most else most
        least = d if d < least else least
    return (high - low) * (most if most < -least else -least)


@step_kernel
def two_outcomes(source, first, second, work, to, count, low, high):
    """Contract two outcomes, the first with probability low..high; returns the loss."""
    a, b = source[first : first + count], source[second : second + count]
    out = work[to : to + count]
    up = 0
    down = 0
    for i in range(count):
        d = a[i] - b[i]
        x, y = high * d, low * d
        out[i] = b[i] + (x if x < y else y)
        up |= d > 0.0
        down |= d < 0.0
    if not (up and down):
        return 0.0
    most = 0.0
    least = 0.0
    for i in range(count):
        d = a[i] - b[i]
        most = max(most, d)
        least = min(least, d)
    return (high - low) * min(most, -least)


@step_kernel
def known_outcomes(source, at, moves, sets, move, work, to, count):
    """Contract a known distribution."""
    _, move_ptr, targets, begins = moves
    first = move_ptr[move]
    base = source[at + targets[first] * count : at + (targets[first] + 1) * count]
    out = work[to : to + count]
    for i in range(count):
        out[i] = base[i]
    for k in range(1, move_ptr[move + 1] - first):
        p = sets[0][begins[move] + k]
        start = at + targets[first + k] * count
        other = source[start : start + count]
        for i in range(count):
            out[i] += p * (other[i] - base[i])


@step_kernel
def picked_outcomes(source, at, moves, move, work, to, count):
    """Copy what outcomes lead to, outcomes last; the last one fills what others of the factor have.

    `begins` of such a move is the number of outcomes that there is room for.
    """
    _, move_ptr, targets, begins = moves
    first, width = move_ptr[move], begins[move]
    rest = count // width
    for k in range(width):
        start = at + targets[min(first + k, move_ptr[move + 1] - 1)] * rest
        for i in range(rest):
            work[to + i * width + k] = source[start + i]


@inline_kernel
def worst_of_box(values, size, sets, begin, order, member):
    """Fill member[0 : size] with the distribution of a box that has the least mean of `values`."""
    lower, upper = sets
    free = 1.0
    for k in range(size):
        member[k] = lower[begin + k]
        free -= lower[begin + k]
        j = k
        while j > 0 and values[order[j - 1]] > values[k]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = k
    for j in range(size):
        k = order[j]
        more = min(free, upper[begin + k] - lower[begin + k])
        if more <= 0.0:
            break
        member[k] += more
        free -= more


@inline_kernel
def mean_from(values, size, member):
    """Return the mean of values, as the least of them plus what the others add."""
    least = values[0]
    for k in range(1, size):
        least = min(least, values[k])
    mean = 0.0
    for k in range(size):
        mean += member[k] * (values[k] - least)
    return least + mean


@step_kernel
def box_outcomes(source, at, moves, sets, move, work, to, count, scratch, order):
    """Contract three and more outcomes of a box; returns the loss.

    The one answer for all fibres that the loss is of is the answer to their sum.
    """
    _, move_ptr, targets, begins = moves
    first, begin = move_ptr[move], begins[move]
    size = move_ptr[move + 1] - first
    values, member, common = scratch[0], scratch[1], scratch[2]
    for k in range(size):
        total = 0.0
        for i in range(count):
            total += source[at + targets[first + k] * count + i]
        values[k] = total
    worst_of_box(values, size, sets, begin, order, common)
    loss = 0.0
    for i in range(count):
        for k in range(size):
            values[k] = source[at + targets[first + k] * count + i]
        worst_of_box(values, size, sets, begin, order, member)
        least = mean_from(values, size, member)
        work[to + i] = least
        loss = max(loss, mean_from(values, size, common) - least)
    return loss


@inline_kernel
def contract(source, at, work, to, count, moves, sets, move, scratch, order):
    """Contract W_d at `at` of source by a move to W_{d+1} at `to` of work; returns the loss."""
    kind, move_ptr, targets, begins = moves
    if kind[move] == TWO:
        lower, upper = sets
        first, begin = move_ptr[move], begins[move]
        one, two = at + targets[first] * count, at + targets[first + 1] * count
        if count < FEW:
            return few_fibres(source, one, two, work, to, count, lower[begin], upper[begin])
        return two_outcomes(source, one, two, work, to, count, lower[begin], upper[begin])
    if kind[move] == KNOWN:
        known_outcomes(source, at, moves, sets, move, work, to, count)
        return 0.0
    if kind[move] == PICK:
        picked_outcomes(source, at, moves, move, work, to, count)
        return 0.0
    return box_outcomes(source, at, moves, sets, move, work, to, count, scratch, order)


@inline_kernel
def lowest_bit(mask):
    """Return the number of the lowest bit that is set."""
    place = 0
    width = 32
    while width > 0:
        if mask & ((1 << width) - 1) == 0:
            mask >>= width
            place += width
        width >>= 1
    return place


@kernel
def step_back(
    trie, program, moves, sets, rewards, signs, value, work, out, choice, mixed, totals, stack
):
    """Fill out (S,) and choice (S,) with the best rows' worth before a step; nature minimises.

    trie    (inner, begins, entry_ptr, code_first, entry_move, entry_branch, entry_actions, offset,
            change_ptr, change_depth, change_by); entries of a depth d and a code c are
            entry_ptr[code_first[d] + c] .. , sorted by move: move (negative: the certain local
            state -1 - move), branch, and the actions (bits) that make it. A branch moves the state
            by `offset` and changes the codes of later depths.
    program (first, end, ops (N, 8)): what is left of the trie below the last of these depths, by
            its code; see the columns above
    moves   (kind, move_ptr, targets, begin): where a move's outcomes begin in `sets`
    sets    (lower, upper): of boxes
    rewards (class_actions (C,) bits, pays (C, S)): what actions pay, by classes
    signs   (agent, discount)
    value   (S,) W_0
    work    room for W_d, d > 0, at begins[d]
    mixed   (states, actions, lows, losses): room for rows whose loss is above tolerance
    totals  see the places above
    stack   room: integers (7, D + 1), floats (2, D + 1), bits (D + 1,), floats (3, widest),
            integers (widest,), floats (room of programs,), losses (slots,)
    """
    inner, begins, entry_ptr, code_first, entry_move, entry_branch, entry_actions = trie[:7]
    offset, change_ptr, change_depth, change_by = trie[7:]
    op_first, op_end, ops = program
    class_actions, pays = rewards
    classes = len(class_actions)
    agent, discount = signs
    mixed_state, mixed_action, mixed_low, mixed_loss = mixed
    bottom = len(inner) - 1
    integers, floats, actions, scratch, order, small, losses = stack
    code, place, end, at, state, done, moved = integers
    loss, cost = floats
    for d in range(bottom + 1):
        code[d] = 0
    at[0], state[0], loss[0], done[0], moved[0] = 0, 0, 0.0, NOT_YET, 0
    actions[0] = -1
    tolerance = totals[TOLERANCE]
    under = 0.0
    rows = 0
    count_mixed = 0
    worst = 0.0
    d = 0
    if bottom > 0:
        place[0] = entry_ptr[code_first[0]]
        end[0] = entry_ptr[code_first[0] + 1]
    while d >= 0:
        if d < bottom:
            entry = place[d]
            if entry < end[d]:
                able = actions[d] & entry_actions[entry]
                if able == 0:
                    place[d] = entry + 1
                    continue
                move = entry_move[entry]
                path = loss[d]
                after = moved[d]
                if move < 0:
                    here = at[d] - (1 + move) * inner[d]
                else:
                    here = begins[d + 1]
                    after = 1
                    if done[d] != move:
                        source = work if moved[d] else value
                        cost[d] = contract(
                            source, at[d], work, here, inner[d], moves, sets, move, scratch, order
                        )
                        done[d] = move
                    path += cost[d]
                branch = entry_branch[entry]
                for k in range(change_ptr[branch], change_ptr[branch + 1]):
                    code[change_depth[k]] += change_by[k]
                base = state[d] + offset[branch]
                d += 1
                at[d] = here
                moved[d] = after
                state[d] = base
                loss[d] = path
                actions[d] = able
                done[d] = NOT_YET
                if d < bottom:
                    first = code_first[d] + code[d]
                    place[d] = entry_ptr[first]
                    end[d] = entry_ptr[first + 1]
                continue
        else:
            able = actions[d]
            base = state[d]
            losses[0] = loss[d]
            source = work if moved[d] else value
            for i in range(inner[d]):
                small[i] = source[at[d] + i]
            k = op_first[code[d]]
            stop = op_end[code[d]]
            while k < stop:
                op = ops[k]
                members = able & op[BITS]
                if members == 0:
                    k = op[SKIP]
                    continue
                k += 1
                move = op[MOVE]
                if move >= 0:
                    losses[op[SLOT]] = losses[op[PARENT]] + contract(
                        small, op[AT], small, op[TO], op[COUNT], moves, sets, move, scratch, order
                    )
                    continue
                s = base + op[TO]
                path = losses[op[PARENT]]
                best = 0.0
                bits = 0
                for c in range(classes):
                    payers = members & class_actions[c]
                    if payers != 0 and (bits == 0 or agent * (pays[c, s] - best) > 0.0):
                        best = pays[c, s]
                        bits = payers
                q = best + discount * small[op[AT]]
                rows += 1
                if path > tolerance:
                    worst = max(worst, path)
                    count_mixed += 1
                    if count_mixed <= len(mixed_state):
                        mixed_state[count_mixed - 1] = s
                        mixed_action[count_mixed - 1] = lowest_bit(bits)
                        mixed_low[count_mixed - 1] = q
                        mixed_loss[count_mixed - 1] = discount * path
                        continue
                elif path > under:
                    under = path
                if agent * (q - out[s]) > 0.0:
                    out[s] = q
                    choice[s] = lowest_bit(bits)
        d -= 1
        if d >= 0:
            entry = place[d]
            branch = entry_branch[entry]
            for k in range(change_ptr[branch], change_ptr[branch + 1]):
                code[change_depth[k]] -= change_by[k]
            place[d] = entry + 1
    totals[UNDER], totals[ROWS], totals[MIXED], totals[WORST] = under, rows, count_mixed, worst
