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
def place_rows(source, rank, cursor, position):
    """Give every row its place among the rows of its state, in the order of arrival.

    `cursor[s]` is the next free row of final state `s`; it is moved on.
    """
    for r in range(source.shape[0]):
        s = rank[source[r]]
        position[r] = cursor[s]
        cursor[s] += 1


@kernel
def move_segments(length, position, pointer, values, out):
    """Copy consecutive segments of `values` to `out[pointer[position[r]] : ]`."""
    at = 0
    for r in range(length.shape[0]):
        to = pointer[position[r]]
        for k in range(length[r]):
            out[to + k] = values[at + k]
        at += length[r]


@kernel
def move_successors(length, position, pointer, values, rank, out):
    """Do the same with state indices that get their final rank on the way."""
    at = 0
    for r in range(length.shape[0]):
        to = pointer[position[r]]
        for k in range(length[r]):
            out[to + k] = rank[values[at + k]]
        at += length[r]
