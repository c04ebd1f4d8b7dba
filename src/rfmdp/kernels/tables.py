"""Hash tables of packed states and keys; rows multiplied out, and their final order.

Tables hold index + 1, so zeros are empty: a fresh page of zeros is.
"""

from rfmdp.kernels.decorator import inline_kernel, kernel, step_kernel
from rfmdp.kernels.machine import DISTRIBUTION, ENTRIES, OWNER, SIZE
from rfmdp.kernels.primitives import outer_product

# 2**64 / golden ratio: multiplying by it spreads neighbouring codes over the high bits
_SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)


@inline_kernel
def state_slot(words, k, table, known):
    """Return the slot of state `words[k]` in an open-addressed table, or the free one for it."""
    mask = table.shape[0] - 1
    width = known.shape[1]
    mixed = 0
    for w in range(width):
        mixed = (mixed ^ words[k, w]) * _SPREAD
        mixed ^= mixed >> 29
    slot = mixed & mask
    while table[slot] != 0:
        index = table[slot] - 1
        same = True
        for w in range(width):
            same &= known[index, w] == words[k, w]
        if same:
            break
        slot = (slot + 1) & mask
    return slot


@inline_kernel
def enter_state(words, k, states, count, dense):
    """Return (number, how many are known) of state `words[k]`, which is entered if it is new.

    states : known, table; it has a place for every word of the domain if `dense`
    """
    known, table = states
    slot = words[k, 0] if dense else state_slot(words, k, table, known)
    if table[slot] == 0:
        for w in range(known.shape[1]):
            known[count, w] = words[k, w]
        count += 1
        table[slot] = count
    return table[slot] - 1, count


@kernel
def fill_states(table, known, count):
    """Enter the states `known[:count]` into an empty table that is not dense."""
    for index in range(count):
        table[state_slot(known, index, table, known)] = index + 1


@kernel
def enter_states(table, known, count, dense, words, numbers):
    """Fill the numbers (N,) of states (N, words), new ones the next; returns how many are known."""
    for k in range(words.shape[0]):
        numbers[k], count = enter_state(words, k, (known, table), count, dense)
    return count


@step_kernel
def key_slot(entries, first, size, owner, table, keys):
    """Return the slot of the key `entries[first : first + size]`, or the free one for it."""
    mask = table.shape[0] - 1
    mixed = owner
    for k in range(first, first + size):
        mixed = (mixed ^ entries[k]) * _SPREAD
        mixed ^= mixed >> 29
    slot = mixed & mask
    while table[slot] != 0:
        record = table[slot] - 1
        same = keys[record + OWNER] == owner and keys[record + SIZE] == size
        k = 0
        while same and k < size:
            same = keys[record + ENTRIES + k] == entries[first + k]
            k += 1
        if same:
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def fill_keys(table, keys, first, end):
    """Enter the keys whose records lie between two addresses; equal ones get one distribution."""
    while first < end:
        size = keys[first + SIZE]
        slot = key_slot(keys, first + ENTRIES, size, keys[first + OWNER], table, keys)
        if table[slot] == 0:
            table[slot] = first + 1
        keys[first + DISTRIBUTION] = keys[table[slot] - 1 + DISTRIBUTION]
        first += ENTRIES + size


@kernel
def arrange(explored, rank, place_S, position, rows, marginals, successors):
    """Put rows in the order of their states, those of one state as they were met.

    explored : rows (R, 4) state, action, number of marginals, number of successors; marginals
        (U, 2) and successors (K,), row by row
    rank : (S,) final numbers of states
    place_S : (S,) first row of every final state; moved on
    position : (R,) filled with the place of every row
    rows : filled with action (R,), marginal_ptr (R + 1,), successor_ptr (R + 1,); these are zeros
    marginals : filled with identifier (U,), factor (U,)
    """
    old_rows, old_marginals, old_successors = explored
    action, marginal_ptr, successor_ptr = rows
    identifier, factor = marginals
    for r in range(position.shape[0]):
        s = rank[old_rows[r, 0]]
        to = place_S[s]
        position[r], place_S[s] = to, to + 1
        action[to] = old_rows[r, 1]
        marginal_ptr[to + 1], successor_ptr[to + 1] = old_rows[r, 2], old_rows[r, 3]
    for r in range(position.shape[0]):
        marginal_ptr[r + 1] += marginal_ptr[r]
        successor_ptr[r + 1] += successor_ptr[r]
    m, k = 0, 0
    for r in range(position.shape[0]):
        for to in range(marginal_ptr[position[r]], marginal_ptr[position[r] + 1]):
            identifier[to], factor[to] = old_marginals[m, 0], old_marginals[m, 1]
            m += 1
        for to in range(successor_ptr[position[r]], successor_ptr[position[r] + 1]):
            successors[to] = rank[old_successors[k]]
            k += 1


@kernel
def joint_rows(rows, model, probability, work, size_N, targets, joint):
    """Multiply the listed rows out: distinct successors in order of appearance, and their mass.

    Fills size_N, and targets and joint one row after the other; returns the entries used.

    model : the arrays of `FactoredMDP.structure`
    work : place (S,) of -1, product (K,) of the largest row
    """
    _, marginal_ptr, row_marginals, outcome_ptr, successor_ptr, successors = model
    place, product = work
    used = 0
    for i in range(rows.shape[0]):
        r = rows[i]
        start, begin = successor_ptr[r], used
        first, last = marginal_ptr[r], marginal_ptr[r + 1]
        size = outer_product(outcome_ptr, probability, row_marginals, first, last, product, 0)
        for k in range(size):
            s = successors[start + k]
            if place[s] < begin:
                place[s] = used
                targets[used] = s
                joint[used] = 0.0
                used += 1
            joint[place[s]] += product[k]
        size_N[i] = used - begin
        for e in range(begin, used):
            place[targets[e]] = -1
    return used
