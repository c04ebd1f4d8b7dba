"""Successor codes of whole blocks of rows, their numbering, and the final order of rows.

The numbering kernels stop before a row that could overflow their buffers; the caller grows them
and calls again from that row. Tables hold index + 1, so that a fresh page of zeros is empty.
"""

from rfmdp.kernels.decorator import kernel

# 2**64 / golden ratio: multiplying by it spreads neighbouring codes over the high bits
_SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)


@kernel
def row_codes(rest, contribution, offset, size, r, codes):
    """Fill the successor codes of row `r` in C order and return their number.

    code[o1, ..., on] = rest + sum_i contribution_i[o_i]; `contribution[r, offset[i] + o]` is that
    of outcome `o` of move `i`, and only the first `size[r, i]` outcomes are read.
    """
    base = rest[r]
    for i in range(size.shape[1]):
        if size[r, i] == 1:
            base += contribution[r, offset[i]]
    codes[0] = base
    total = 1
    for i in range(size.shape[1]):
        d = size[r, i]
        if d == 1:
            continue
        at = offset[i]
        # backwards in place: entry k*d + o never lies before an entry that is still to be read
        for k in range(total - 1, -1, -1):
            head = codes[k]
            for o in range(d - 1, -1, -1):
                codes[k * d + o] = head + contribution[r, at + o]
        total *= d
    return total


@kernel
def number_dense(rest, contribution, offset, size, tensor, row, table, known, count, scratch, out):
    """Give numbers to the successors of rows `row..`, with a table over the whole packed domain.

    `tensor[r]` is the number of successors of a row, `known[:count]` the codes numbered so far,
    `out` starts at the first successor of `row`. Returns (next row, count, entries of `out`
    filled); a next row of -1 - r says that row `r` left the domain.
    """
    at = 0
    for r in range(row, rest.shape[0]):
        if count + tensor[r] > known.shape[0]:
            return r, count, at
        total = row_codes(rest, contribution, offset, size, r, scratch)
        for k in range(total):
            code = scratch[k]
            if code < 0 or code >= table.shape[0]:
                return -1 - r, count, at
            index = table[code]
            if index == 0:
                known[count] = code
                count += 1
                index = count
                table[code] = index
            out[at] = index - 1
            at += 1
    return rest.shape[0], count, at


@kernel
def slot_of(code, table, known):
    """Return the slot of a code in an open-addressed table, or the free slot where it belongs."""
    mask = table.shape[0] - 1
    mixed = code * _SPREAD
    slot = (mixed ^ (mixed >> 29)) & mask
    while table[slot] != 0 and known[table[slot] - 1] != code:
        slot = (slot + 1) & mask
    return slot


@kernel
def number_hashed(
    rest, contribution, offset, size, tensor, row, table, known, count, scratch, out, domain
):
    """Do the same as `number_dense` with a hash table of a power of two slots, half full."""
    at = 0
    for r in range(row, rest.shape[0]):
        room = count + tensor[r]
        if room > known.shape[0] or 2 * room > table.shape[0]:
            return r, count, at
        total = row_codes(rest, contribution, offset, size, r, scratch)
        for k in range(total):
            code = scratch[k]
            if code < 0 or code >= domain:
                return -1 - r, count, at
            slot = slot_of(code, table, known)
            if table[slot] == 0:
                known[count] = code
                count += 1
                table[slot] = count
            out[at] = table[slot] - 1
            at += 1
    return rest.shape[0], count, at


@kernel
def fill_table(table, known, count):
    """Enter the codes `known[:count]` into an empty table."""
    for index in range(count):
        table[slot_of(known[index], table, known)] = index + 1


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
