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

The last factors take most of the work, with arrays of a few numbers. What is left to do there is a
list of operations, the same for all places of the walk with the same *code*. So these places wait
until there are LANES of them, and each operation is done for all of them at once: the lanes are the
last axis of every array, so that inner loops run over vectors.

Nature answers every fibre separately, so W is never above the row's value. One answer for all
fibres of a node costs at most the node's *loss*, and what the rest of the walk averages cannot
enlarge it: W plus the losses of its nodes is never below the value (up to rounding, for which the
caller adds a margin).

The twin is the explicit solver on the same text (`tests/outer/lattice`).
"""

import math

import numpy as np

from rfmdp.kernels import layout as slot
from rfmdp.kernels.decorator import inline_kernel, kernel, step_kernel
from rfmdp.kernels.oracle import minimise
from rfmdp.kernels.primitives import reset

NOT_YET = -1  # no move was contracted at this depth
KNOWN, TWO, OTHER, PICK = 0, 1, 2, 3
# kinds of moves: a known distribution, a box of two outcomes, another set; outcomes only picked
BITS, SKIP, MOVE, AT, TO, COUNT, PARENT, SLOT = range(8)  # columns of a program's operations
TOLERANCE, UNDER, ROWS, MIXED, WORST = 0, 1, 2, 3, 4  # places in `totals`
LANES = 16  # places of the walk that are finished together
QUEUES = 64  # of places that wait, by their code and by what their actions are to the program


@step_kernel
def two_outcomes(source, first, second, work, to, count, low, high):
    """Contract two outcomes, the first with probability low..high; return if answers differ."""
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
    return up and down


@step_kernel
def losses_of_two(source, first, second, count, lanes, wide, cost):
    """Fill cost[0 : lanes] with the losses of a box `wide`; return whether there are any."""
    lossy = False
    for lane in range(lanes):
        most = 0.0
        least = 0.0
        for i in range(lane, count, lanes):
            d = source[first + i] - source[second + i]
            most = max(most, d)
            least = min(least, d)
        cost[lane] = wide * min(most, -least)
        lossy = lossy or cost[lane] > 0.0
    return lossy


@step_kernel
def known_outcomes(source, at, moves, data, place, move, work, to, count):
    """Contract a known distribution, data[place :]."""
    _, move_ptr, targets, _ = moves
    first = move_ptr[move]
    base = source[at + targets[first] * count : at + (targets[first] + 1) * count]
    out = work[to : to + count]
    for i in range(count):
        out[i] = base[i]
    for k in range(1, move_ptr[move + 1] - first):
        p = data[place + k]
        start = at + targets[first + k] * count
        other = source[start : start + count]
        for i in range(count):
            out[i] += p * (other[i] - base[i])


@step_kernel
def picked_outcomes(source, at, moves, move, work, to, count):
    """Copy what outcomes lead to, outcomes last; the last one fills what others of the factor have.

    The set of such a move is the number of outcomes that there is room for.
    """
    _, move_ptr, targets, set_of = moves
    first, width = move_ptr[move], set_of[move]
    rest = count // width
    for k in range(width):
        start = at + targets[min(first + k, move_ptr[move + 1] - 1)] * rest
        for i in range(rest):
            work[to + i * width + k] = source[start + i]


@step_kernel
def other_outcomes(source, at, moves, sets, move, work, to, count, lanes, scratch, order, cost):
    """Contract a set of any kind; fill cost[0 : lanes] with losses, return whether there are any.

    The one answer for all fibres of a lane that the loss is of is the answer to their sum.
    """
    _, move_ptr, targets, set_of = moves
    first, m = move_ptr[move], set_of[move]
    size = move_ptr[move + 1] - first
    values, member, common = scratch[0], scratch[1], scratch[2]
    curved, least = scratch[3], scratch[4]
    lossy = False
    for lane in range(lanes):
        reset(order, size)
        for k in range(size):
            values[k] = 0.0
            for i in range(lane, count, lanes):
                values[k] += source[at + targets[first + k] * count + i]
        minimise(sets, m, (values, 0, 1), order, curved, (least, 0), (common, 0))
        cost[lane] = 0.0
        for i in range(lane, count, lanes):
            base = source[at + targets[first] * count + i]
            for k in range(1, size):
                base = min(base, source[at + targets[first + k] * count + i])
            mean = 0.0
            for k in range(size):
                values[k] = source[at + targets[first + k] * count + i] - base
                mean += common[k] * values[k]
            minimise(sets, m, (values, 0, 1), order, curved, (least, 0), (member, 0))
            work[to + i] = base + least[0]
            cost[lane] = max(cost[lane], mean - least[0])
        lossy = lossy or cost[lane] > 0.0
    return lossy


@inline_kernel
def contract(source, at, work, to, count, lanes, moves, sets, move, room, cost):
    """Contract W_d at `at` of source by a move to W_{d+1} at `to` of work.

    Return whether there are losses; they are in cost[0 : lanes] then.
    """
    kind, move_ptr, targets, set_of = moves
    if kind[move] == PICK:
        picked_outcomes(source, at, moves, move, work, to, count)
        return False
    head, data = sets[0], sets[1]
    place = head[set_of[move], slot.PLACE] + slot.LOWER
    if kind[move] == TWO:
        first = move_ptr[move]
        low, wide = data[place], data[place + 2]
        one, two = at + targets[first] * count, at + targets[first + 1] * count
        if two_outcomes(source, one, two, work, to, count, low, low + wide):
            return losses_of_two(source, one, two, count, lanes, wide, cost)
        return False
    if kind[move] == KNOWN:
        known_outcomes(source, at, moves, data, place, move, work, to, count)
        return False
    scratch, order = room
    return other_outcomes(
        source, at, moves, sets, move, work, to, count, lanes, scratch, order, cost
    )


@inline_kernel
def lowest_bit(mask):
    """Return the number of the lowest bit that is set."""
    return math.frexp(float(mask & -mask))[1] - 1


@step_kernel
def finish(queue, waiting, program, moves, sets, rewards, signs, results, totals, rooms):
    """Do the operations of a code for all places that wait in a queue, and empty it."""
    states, losses, actions, arrays, keys = waiting
    op_first, op_end, ops = program[:3]
    small, lost, lossy, room, members, best, makers = rooms
    code, width = keys[queue, 0], keys[queue, 2]
    if width == 0:
        return
    keys[queue, 2] = 0
    some = actions[queue, 0]  # all lanes have actions of the same groups
    for i in range(arrays.shape[1] // LANES):
        for lane in range(width):
            small[i * width + lane] = arrays[queue, i * LANES + lane]
    lossy[0] = False
    for lane in range(width):
        lost[0, lane] = losses[queue, lane]
        lossy[0] = lossy[0] or lost[0, lane] > 0.0
    for c in range(len(best)):
        if some & rewards[0][c] != 0:
            for i in range(best.shape[1]):
                best[c, i] = -signs[0] * np.inf
    k = op_first[code]
    while k < op_end[code]:
        op = ops[k]
        if some & op[BITS] == 0:
            k = op[SKIP]
            continue
        k += 1
        parent = op[PARENT]
        if op[MOVE] < 0:
            totals[ROWS] += width
            for lane in range(width):
                members[lane] = actions[queue, lane] & op[BITS]
            if lossy[parent]:
                set_aside(op, small, members, states[queue], lost[parent], width, rewards, signs,
                          results, totals)  # fmt: skip
            keep_best(op, small, members, some, width, rewards[0], signs[0], best, makers)
            continue
        own = op[SLOT]
        more = contract(
            small, op[AT] * width, small, op[TO] * width, op[COUNT] * width, width,
            moves, sets, op[MOVE], room, lost[own],
        )  # fmt: skip
        lossy[own] = more or lossy[parent]
        if lossy[own]:
            for lane in range(width):
                before = lost[parent, lane] if lossy[parent] else 0.0
                lost[own, lane] = before + (lost[own, lane] if more else 0.0)
    settle(code, states[queue], actions[queue], width, program, rewards, signs, best, makers,
           results)  # fmt: skip


@step_kernel
def keep_best(op, small, members, some, width, class_actions, agent, best, makers):
    """Compare what follows some rows with the best of their states and classes of payments."""
    at, to = op[AT] * width, op[COUNT] * LANES
    for c in range(len(class_actions)):
        payers = class_actions[c]
        if some & op[BITS] & payers == 0:
            continue
        mean = small[at : at + width]
        top, maker = best[c, to : to + LANES], makers[c, to : to + LANES]
        for lane in range(width):
            able = members[lane] & payers
            better = (able != 0) & (agent * (mean[lane] - top[lane]) > 0.0)
            top[lane] = mean[lane] if better else top[lane]
            maker[lane] = able if better else maker[lane]


@step_kernel
def set_aside(op, small, members, states, lost, width, rewards, signs, results, totals):
    """List rows whose loss is above tolerance, and take them out of `members`."""
    class_actions, pays = rewards
    agent, discount = signs
    listed_state, listed_action, listed_low, listed_loss = results[2:]
    for lane in range(width):
        path = lost[lane]
        if path <= totals[TOLERANCE]:
            totals[UNDER] = max(totals[UNDER], path)
            continue
        place = int(totals[MIXED])
        totals[MIXED] += 1.0
        totals[WORST] = max(totals[WORST], path)
        if place < len(listed_state):
            s = states[lane] + op[TO]
            pay = 0.0
            bits = 0
            for c in range(len(class_actions)):
                payers = members[lane] & class_actions[c]
                if payers != 0 and (bits == 0 or agent * (pays[c, s] - pay) > 0.0):
                    pay = pays[c, s]
                    bits = payers
            listed_state[place] = s
            listed_action[place] = lowest_bit(bits)
            listed_low[place] = pay + discount * small[op[AT] * width + lane]
            listed_loss[place] = discount * path
            members[lane] = 0


@step_kernel
def settle(code, states, actions, width, program, rewards, signs, best, makers, results):
    """Compare the best rows of all lanes with those of their states; ties: the first action."""
    ends_first, ends_last, ends = program[4:]
    class_actions, pays = rewards
    agent, discount = signs
    out, choice = results[0], results[1]
    first = ends_first[code]
    for c in range(len(class_actions)):
        for lane in range(width):
            able = actions[lane] & class_actions[c]
            if able == 0:
                continue
            several = able & (able - 1) != 0
            number = lowest_bit(able)
            for k in range(ends_last[code] - first):
                s = states[lane] + ends[first + k]
                q = pays[c, s] + discount * best[c, k * LANES + lane]
                gain = agent * (q - out[s])
                if several:
                    if not gain >= 0.0:
                        continue
                    number = lowest_bit(makers[c, k * LANES + lane])
                better = (gain > 0.0) | ((gain == 0.0) & (number < choice[s]))
                out[s] = q if better else out[s]
                choice[s] = number if better else choice[s]


@kernel
def step_back(trie, program, moves, sets, rewards, signs, value, work, results, totals, stack):
    """Fill out (S,) and choice (S,) with the best rows' worth before a step; nature minimises.

    trie    (inner, begins, entry_ptr, code_first, entry_move, entry_branch, entry_actions, offset,
            change_ptr, change_depth, change_by); entries of a depth d and a code c are
            entry_ptr[code_first[d] + c] .. , sorted by move: move (negative: the certain local
            state -1 - move), branch, and the actions (bits) that make it. A branch moves the state
            by `offset` and changes the codes of later depths.
    program (first, end, ops (N, 8), groups, ends_first, ends_last, ends): what is left of the trie
            below the last of these depths, by its code; see the columns above. Actions (bits) of a
            group are in the same operations and pay alike. Its rows end in COUNT, a place in
            ends[ends_first[code] :], what is added to the state there.
    moves   (kind, move_ptr, targets, set)
    sets    see `kernels.layout`
    rewards (class_actions (C,) bits, pays (C, S)): what actions pay, by classes
    signs   (agent, discount)
    value   (S,) W_0
    work    room for W_d, d > 0, at begins[d]
    results (out, choice, states, actions, lows, losses): the last four have room for rows whose
            loss is above tolerance
    totals  see the places above
    stack   room: integers (7, D + 1), losses (D + 1,), their parts (D + 1, 1), bits (D + 1,),
            what waits in queues (see `finish`), and what finishing needs
    """
    inner, begins, entry_ptr, code_first, entry_move, entry_branch, entry_actions = trie[:7]
    offset, change_ptr, change_depth, change_by = trie[7:]
    bottom = len(inner) - 1
    integers, loss, cost, actions, waiting, rooms = stack
    code, place, end, at, state, done, moved = integers
    wait_state, wait_loss, wait_actions, wait_array, keys = waiting
    groups = program[3]
    for d in range(bottom + 1):
        code[d] = 0
    at[0], state[0], loss[0], done[0], moved[0] = 0, 0, 0.0, NOT_YET, 0
    actions[0] = -1
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
                        lossy = contract(
                            source, at[d], work, here, inner[d], 1, moves, sets, move, rooms[3],
                            cost[d],
                        )  # fmt: skip
                        if not lossy:
                            cost[d, 0] = 0.0
                        done[d] = move
                    path += cost[d, 0]
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
            signature = 0
            for g in range(len(groups)):
                if actions[d] & groups[g] != 0:
                    signature |= 1 << g
            queue = (code[d] * 31 + signature * 17) & (QUEUES - 1)
            if keys[queue, 0] != code[d] or keys[queue, 1] != signature or keys[queue, 2] == LANES:
                finish(queue, waiting, program, moves, sets, rewards, signs, results, totals, rooms)
                keys[queue, 0] = code[d]
                keys[queue, 1] = signature
            lane = keys[queue, 2]
            keys[queue, 2] = lane + 1
            wait_state[queue, lane] = state[d]
            wait_loss[queue, lane] = loss[d]
            wait_actions[queue, lane] = actions[d]
            source = work if moved[d] else value
            for i in range(inner[d]):
                wait_array[queue, i * LANES + lane] = source[at[d] + i]
        d -= 1
        if d >= 0:
            entry = place[d]
            branch = entry_branch[entry]
            for k in range(change_ptr[branch], change_ptr[branch + 1]):
                code[change_depth[k]] -= change_by[k]
            place[d] = entry + 1
    for queue in range(QUEUES):
        finish(queue, waiting, program, moves, sets, rewards, signs, results, totals, rooms)
