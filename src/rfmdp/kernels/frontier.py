"""Successor codes of whole blocks of rows, their numbering, and the final order of rows.

Numbering stops before a row that could overflow its buffers; the caller grows them and calls again
from that row. Tables hold index + 1, so that a fresh page of zeros is empty.
"""

from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.tables import state_slot


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
