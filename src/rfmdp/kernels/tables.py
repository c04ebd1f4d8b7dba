"""Hash tables of packed states, keys and segments; numbers of successors; the final order of rows.

Tables hold index + 1, so zeros are empty: a fresh page of zeros is. Numbering stops before a row
that could overflow its buffers; the caller grows them and calls again from that row.
"""

import numpy as np

from rfmdp.kernels.addresses import DENSE, ENTRIES, OWNER, SIZE, STATES
from rfmdp.kernels.decorator import inline_kernel, kernel, step_kernel

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


@kernel
def fill_states(table, known, count):
    """Enter the states `known[:count]` into an empty table that is not dense."""
    for index in range(count):
        table[state_slot(known, index, table, known)] = index + 1


@kernel
def enter_states(table, known, memory, words, out):
    """Give numbers to some states (N, words), new ones the next; fills out (N,)."""
    for k in range(words.shape[0]):
        slot = words[k, 0] if memory[DENSE] else state_slot(words, k, table, known)
        if table[slot] == 0:
            for w in range(known.shape[1]):
                known[memory[STATES], w] = words[k, w]
            memory[STATES] += 1
            table[slot] = memory[STATES]
        out[k] = table[slot] - 1


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
    """Enter the keys whose records lie between two addresses into the table."""
    while first < end:
        size = keys[first + SIZE]
        slot = key_slot(keys, first + ENTRIES, size, keys[first + OWNER], table, keys)
        table[slot] = first + 1
        first += ENTRIES + size


@kernel
def number_segments(data, begin, end, table, ids, first):
    """Give equal segments data[begin : end] equal numbers, by first appearance; returns how many.

    data : integers of any width
    table : (a power of two above 2 N,) of zeros
    first : (N,) filled with the first segment of every number
    """
    mask = table.shape[0] - 1
    count = 0
    for i in range(begin.shape[0]):
        size, mixed = end[i] - begin[i], 0
        for k in range(begin[i], end[i]):
            mixed = (mixed ^ np.int64(data[k])) * _SPREAD
            mixed ^= mixed >> 29
        slot = mixed & mask
        while table[slot] != 0:
            j = first[table[slot] - 1]
            same, k = end[j] - begin[j] == size, 0
            while same and k < size:
                same = data[begin[i] + k] == data[begin[j] + k]
                k += 1
            if same:
                break
            slot = (slot + 1) & mask
        if table[slot] == 0:
            first[count] = i
            count += 1
            table[slot] = count
        ids[i] = table[slot] - 1
    return count


@inline_kernel
def row_codes(rest, contribution, offset, size, r, codes):
    """Fill codes (K, 1) with those of the successors of row `r`, C order, and return their number.

    code[o1, ..., on] = rest + sum_i contribution_i[o_i]; `contribution[r, offset[i] + o]` is that
    of outcome `o` of move `i`, and only the first `size[r, i]` outcomes are read.
    """
    base = rest[r]
    for i in range(size.shape[1]):
        if size[r, i] == 1:
            base += contribution[r, offset[i]]
    codes[0, 0] = base
    total = 1
    for i in range(size.shape[1]):
        d = size[r, i]
        if d == 1:
            continue
        at = offset[i]
        # backwards in place: entry k*d + o never lies before an entry that is still to be read
        for k in range(total - 1, -1, -1):
            head = codes[k, 0]
            for o in range(d - 1, -1, -1):
                codes[k * d + o, 0] = head + contribution[r, at + o]
        total *= d
    return total


@kernel
def number_successors(block, row, table, known, count, scratch, out, domain, dense):
    """Give numbers to the successors of rows `row..`, new ones the next.

    Returns (next row, count, entries of `out` filled). A next row of -1 - r says that row r left
    the domain.

    block : rest, contribution, offset, size, tensor: see `row_codes`; tensor (N,) successors
    table : a place for every code of the domain if `dense`, else a hash table of a power of two
        slots, at most half full (`kernels.tables`)
    known : (room, 1), of which `count` codes are numbered so far
    scratch : (largest tensor, 1)
    out : starts at the first successor of `row`
    """
    rest, contribution, offset, size, tensor = block
    at = 0
    for r in range(row, rest.shape[0]):
        room = count + tensor[r]
        if room > known.shape[0] or (not dense and 2 * room > table.shape[0]):
            return r, count, at
        total = row_codes(rest, contribution, offset, size, r, scratch)
        for k in range(total):
            code = scratch[k, 0]
            if code < 0 or code >= domain:
                return -1 - r, count, at
            slot = code if dense else state_slot(scratch, k, table, known)
            if table[slot] == 0:
                known[count, 0] = code
                count += 1
                table[slot] = count
            out[at] = table[slot] - 1
            at += 1
    return rest.shape[0], count, at


@kernel
def arrange(found, rank, place_S, position, rows, marginals, successors):
    """Put rows in the order of their states, those of one state as they were found.

    found : rows (R, 4) state, action, number of marginals, number of successors; marginals (U, 2)
        and successors (K,), row by row
    rank : (S,) final numbers of states
    place_S : (S,) first row of every final state; moved on
    position : (R,) filled with the place of every row
    rows : filled with action (R,), marginal_ptr (R + 1,), successor_ptr (R + 1,); these are zeros
    marginals : filled with identifier (U,), factor (U,)
    """
    old_rows, old_marginals, old_successors = found
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
