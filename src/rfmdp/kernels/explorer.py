"""The exploration of state spaces with the machine, its hash tables and the final order of rows.

A state is a valuation packed into words of 62 bits; a row's successors are its state's words plus
what each of its commands changes, summed over all combinations.

machine  memory, code, floats: see `kernels.machine`; bits: the same floats as ints
vectors  key, key_table, keys: a key, and a hash table of those that are known (address + 1);
         distributions, support: what commands do with a vector of probabilities, random choices
states   known (S, words): packed states by discovery; table: a hash table of them (index + 1), or,
         if dense, with a slot for every word
explored rows, marginals, successors: those of all states so far
scratch  tensor, delta: words of the successors of a row, changes of words by all commands

Tables hold numbers from 1 on, so zeros are empty: a fresh page of zeros is.
"""

from rfmdp.kernels import machine as at
from rfmdp.kernels.decorator import inline_kernel, kernel, step_kernel
from rfmdp.kernels.machine import run

# 2**64 / golden ratio: multiplying by it spreads neighbouring codes over the high bits
_SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)


@inline_kernel
def enter_state(words, k, states, count, dense):
    """Return (number, how many are known) of state `words[k]`, which is entered if it is new.

    states : known, table; it has a place for every word of the domain if `dense`
    """
    known, table = states
    width, mask, mixed = known.shape[1], table.shape[0] - 1, 0
    slot = words[k, 0]
    if not dense:
        for w in range(width):
            mixed = (mixed ^ words[k, w]) * _SPREAD
            mixed ^= mixed >> 29
        slot = mixed & mask
    while not dense and table[slot] != 0:
        index = table[slot] - 1
        same = True
        for w in range(width):
            same &= known[index, w] == words[k, w]
        if same:
            break
        slot = (slot + 1) & mask
    if table[slot] == 0:
        for w in range(width):
            known[count, w] = words[k, w]
        count += 1
        table[slot] = count
    return table[slot] - 1, count


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
        same = keys[record + at.OWNER] == owner and keys[record + at.SIZE] == size
        k = 0
        while same and k < size:
            same = keys[record + at.ENTRIES + k] == entries[first + k]
            k += 1
        if same:
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def fill_keys(table, keys, first, end):
    """Enter the keys whose records lie between two addresses; equal ones get one distribution."""
    while first < end:
        size = keys[first + at.SIZE]
        slot = key_slot(keys, first + at.ENTRIES, size, keys[first + at.OWNER], table, keys)
        if table[slot] == 0:
            table[slot] = first + 1
        keys[first + at.DISTRIBUTION] = keys[table[slot] - 1 + at.DISTRIBUTION]
        first += at.ENTRIES + size


@inline_kernel
def _distribution(c, machine, vectors):
    """Return (status, distribution) of a command in the state; without a value, the update."""
    memory, code, floats, bits = machine
    _, key_table, keys, _, _ = vectors
    if memory[c + at.CONSTANT] >= 0:
        return at.DONE, memory[c + at.CONSTANT]
    end = memory[at.VECTOR]
    for side in range(1 + memory[c + at.HAS_UPPER]):
        for u in range(memory[c + at.FIRST], memory[c + at.LAST], at.UPDATE):
            if run(memory[u + at.LOWER + 2 * side], code, memory, floats) < 0:
                return at.NO_PROBABILITY, u
            floats[end] = floats[memory[u + at.LOWER_CELL + 2 * side]]
            end += 1
    first = memory[at.VECTOR]
    slot = key_slot(bits, first, end - first, c, key_table, keys)
    if key_table[slot] == 0:
        return at.NEW_VECTOR, c
    return at.DONE, keys[key_table[slot] - 1 + at.DISTRIBUTION]


@inline_kernel
def _moves(c, machine, vectors, delta):
    """Fill what a command changes in the words of the state; returns (status, detail)."""
    memory, code, floats, _ = machine
    _, _, _, distributions, support = vectors
    status, d = _distribution(c, machine, vectors)
    if status != at.DONE:
        return status, d
    row = memory[c + at.CHANGES]
    for k in range(distributions[d, at.SUPPORT], distributions[d, at.SUPPORT_END]):
        for w in range(delta.shape[1]):
            delta[row, w] = 0
        u = memory[c + at.FIRST] + at.UPDATE * support[k]
        for a in range(memory[u + at.FIRST_ASSIGNED], memory[u + at.LAST_ASSIGNED], at.ASSIGNMENT):
            if run(memory[a + at.VALUE], code, memory, floats) < 0:
                return at.NO_ASSIGNMENT, a
            v, value = memory[a + at.VARIABLE], memory[memory[a + at.VALUE_CELL]]
            if value < memory[v + at.LOW] or value > memory[v + at.HIGH]:
                return at.OUT_OF_RANGE, a
            change = (value - memory[memory[v + at.CELL]]) << memory[v + at.SHIFT]
            delta[row, memory[v + at.WORD]] += change
        row += 1
    memory[c + at.MOVES], memory[c + at.MOVES_STAMP] = d, memory[at.STAMP]
    return at.DONE, 0


@inline_kernel
def _expand_tensor(count, memory, distributions, marginals, known, scratch):
    """Fill the words of all successors of the chosen commands; returns (number, marginals)."""
    tensor, delta = scratch
    width, stored, size = known.shape[1], memory[at.MARGINALS], 1
    for w in range(width):
        tensor[0, w] = known[memory[at.EXPANDED], w]
    for k in range(count):
        c = memory[memory[at.CHOSEN] + k]
        d, first = memory[c + at.MOVES], memory[c + at.CHANGES]
        outcomes = distributions[d, at.SUPPORT_END] - distributions[d, at.SUPPORT]
        if distributions[d, at.MARGINAL] >= 0:
            marginals[stored, at.IDENTIFIER] = distributions[d, at.MARGINAL]
            marginals[stored, at.FACTOR] = memory[c + at.MODULE]
            stored += 1
        # backwards in place: entry i * outcomes + o never lies before one that is still to be read
        for i in range(size - 1, -1, -1):
            for w in range(width):
                head = tensor[i, w]
                for o in range(outcomes - 1, -1, -1):
                    tensor[i * outcomes + o, w] = head + delta[first + o, w]
        size *= outcomes
    return size, stored


@inline_kernel
def _enabled(machine):
    """Find the enabled commands of the state; returns (status, detail)."""
    memory, code, floats, _ = machine
    for k in range(memory[memory[at.LABELS]]):
        label = memory[memory[at.LABELS] + 1 + k]
        memory[label + at.MISSING] = memory[label + at.SLOTS]
        for i in range(memory[label + at.SLOTS]):
            memory[memory[label + at.SLOTS + 1 + i] + at.COUNT] = 0
    alone = memory[at.ALONE]
    memory[alone] = 0
    for k in range(memory[memory[at.MODULES]]):
        m = memory[memory[at.MODULES] + 1 + k]
        value = memory[memory[m + at.KEY]] - memory[m + at.KEY_LOW] if memory[m + at.KEY] > 0 else 0
        bucket = memory[m + at.BUCKETS + value]
        for i in range(memory[bucket]):
            c = memory[bucket + 1 + i]
            holds = run(memory[c + at.GUARD], code, memory, floats)
            if holds < 0:
                return at.NO_GUARD, c
            if holds == 0:
                continue
            slot = memory[c + at.SLOT]
            if slot == 0:
                memory[alone] += 1
                memory[alone + memory[alone]] = c
                continue
            if memory[slot + at.COUNT] == 0:
                memory[memory[slot + at.LABEL] + at.MISSING] -= 1
            memory[slot + at.ENABLED + memory[slot + at.COUNT]] = c
            memory[slot + at.COUNT] += 1
    return at.DONE, 0


@inline_kernel
def _choose(group, memory):
    """Choose the first commands of an unlabelled command or a label; returns how many."""
    chosen, alone = memory[at.CHOSEN], memory[at.ALONE]
    if group < memory[alone]:
        memory[chosen] = memory[alone + 1 + group]
        return 1
    label = memory[memory[at.LABELS] + 1 + group - memory[alone]]
    if memory[label + at.MISSING] > 0:
        return 0
    for k in range(memory[label + at.SLOTS]):
        memory[memory[at.PLACES] + k] = 0
        memory[chosen + k] = memory[memory[label + at.SLOTS + 1 + k] + at.ENABLED]
    return memory[label + at.SLOTS]


@inline_kernel
def _choose_next(group, memory):
    """Choose the next combination of commands, the last module first; returns whether there is."""
    if group < memory[memory[at.ALONE]]:
        return False
    label = memory[memory[at.LABELS] + 1 + group - memory[memory[at.ALONE]]]
    for k in range(memory[label + at.SLOTS] - 1, -1, -1):
        slot, place = memory[label + at.SLOTS + 1 + k], memory[at.PLACES] + k
        memory[place] += 1
        more = memory[place] < memory[slot + at.COUNT]
        if not more:
            memory[place] = 0
        memory[memory[at.CHOSEN] + k] = memory[slot + at.ENABLED + memory[place]]
        if more:
            return True
    return False


@inline_kernel
def _mix(row, marginal, successor, memory, vectors, explored):
    """Make the rows of the state one random choice; returns `NEW_MIX` if it is not known yet."""
    key, key_table, keys, distributions, _ = vectors
    rows, marginals, _ = explored
    size, own = 2 * (memory[at.ROWS] - row) + memory[at.MARGINALS] - marginal, marginal
    memory[at.KEY_SIZE] = max(size, memory[at.KEY_SIZE])
    if size > key.shape[0] or marginal >= marginals.shape[0]:
        return at.GROW
    memory[at.KEY_SIZE] = size
    size = 0
    for r in range(row, memory[at.ROWS]):
        key[size], key[size + 1] = rows[r, at.ACTION], rows[r, at.OWN_MARGINALS]
        size += 2
        for _ in range(rows[r, at.OWN_MARGINALS]):
            key[size] = marginals[own, at.IDENTIFIER]
            size, own = size + 1, own + 1
    slot = key_slot(key, 0, size, at.NO_OWNER, key_table, keys)
    if key_table[slot] == 0:
        return at.NEW_MIX
    d = keys[key_table[slot] - 1 + at.DISTRIBUTION]
    rows[row, at.ACTION], rows[row, at.OWN_MARGINALS] = distributions[d, 1], 1
    rows[row, at.TENSOR] = memory[at.SUCCESSORS] - successor
    marginals[marginal, at.IDENTIFIER] = distributions[d, at.MARGINAL]
    marginals[marginal, at.FACTOR] = memory[memory[at.MODULES]]
    memory[at.ROWS], memory[at.MARGINALS] = row + 1, marginal + 1
    if memory[at.MIXED] == 0:
        memory[at.FIRST_MIXED] = memory[at.EXPANDED]
    memory[at.MIXED] += 1
    return at.DONE


@kernel
def explore(machine, vectors, states, explored, scratch, pause):
    """Expand states in the order of discovery; returns (status, detail).

    The state of any other status than `DONE` and `PAUSE` is taken back, and comes again at the
    next call. The detail of an error is the command, update or assignment where it is.

    pause : number of states after which to come back
    """
    memory, _, _, _ = machine
    _, _, _, distributions, _ = vectors
    known, table = states
    rows, marginals, successors = explored
    tensor, delta = scratch
    while memory[at.EXPANDED] < memory[at.STATES]:
        s = memory[at.EXPANDED]
        if s >= pause:
            return at.PAUSE, 0
        row, marginal, successor = memory[at.ROWS], memory[at.MARGINALS], memory[at.SUCCESSORS]
        if row >= rows.shape[0] or successor >= successors.shape[0]:
            return at.GROW, 0
        memory[at.STAMP] += 1
        for k in range(memory[memory[at.VARIABLES]]):
            v = memory[memory[at.VARIABLES] + 1 + k]
            field = (known[s, memory[v + at.WORD]] >> memory[v + at.SHIFT]) & memory[v + at.MASK]
            memory[memory[v + at.CELL]] = memory[v + at.LOW] + field
        status, detail = _enabled(machine)
        groups = memory[memory[at.ALONE]] + memory[memory[at.LABELS]]
        group = 0
        while status == at.DONE and group < groups:
            count = _choose(group, memory)
            more = count > 0
            while status == at.DONE and more:
                total = 1.0
                for k in range(count):
                    c = memory[memory[at.CHOSEN] + k]
                    if memory[c + at.MOVES_STAMP] != memory[at.STAMP] and status == at.DONE:
                        status, detail = _moves(c, machine, vectors, delta)
                    d = memory[c + at.MOVES]
                    total *= distributions[d, at.SUPPORT_END] - distributions[d, at.SUPPORT]
                if status == at.DONE and total >= 2.0**31:
                    status = at.TOO_LARGE
                if status != at.DONE:
                    break
                memory[at.WIDEST] = max(memory[at.WIDEST], int(total))
                room = memory[at.STATES] + int(total)
                begin = memory[at.SUCCESSORS]
                if (
                    memory[at.ROWS] >= rows.shape[0]
                    or memory[at.MARGINALS] + count > marginals.shape[0]
                    or begin + int(total) > successors.shape[0]
                    or int(total) > tensor.shape[0]
                    or room > known.shape[0]
                    or (memory[at.DENSE] == 0 and 2 * room > table.shape[0])
                ):
                    status = at.GROW
                    break
                size, stored = _expand_tensor(
                    count, memory, distributions, marginals, known, scratch
                )
                known_states, dense = memory[at.STATES], memory[at.DENSE]
                for i in range(size):
                    successors[begin + i], known_states = enter_state(
                        tensor, i, states, known_states, dense
                    )
                memory[at.STATES] = known_states
                r = memory[at.ROWS]
                label = group - memory[memory[at.ALONE]]
                rows[r, at.SOURCE] = s
                rows[r, at.ACTION] = label if label >= 0 else memory[memory[at.LABELS]]
                rows[r, at.OWN_MARGINALS], rows[r, at.TENSOR] = stored - memory[at.MARGINALS], size
                memory[at.ROWS], memory[at.MARGINALS] = r + 1, stored
                memory[at.SUCCESSORS] = begin + size
                more = _choose_next(group, memory)
            group += 1
        if status == at.DONE and memory[at.CHAIN] != 0 and memory[at.ROWS] > row + 1:
            status = _mix(row, marginal, successor, memory, vectors, explored)
        if status != at.DONE:
            memory[at.ROWS], memory[at.MARGINALS], memory[at.SUCCESSORS] = row, marginal, successor
            return status, detail
        if memory[at.ROWS] == row:
            rows[row, at.SOURCE], rows[row, at.ACTION] = s, at.NO_ACTION
            rows[row, at.OWN_MARGINALS], rows[row, at.TENSOR] = 0, 1
            successors[successor] = s
            memory[at.ROWS], memory[at.SUCCESSORS] = row + 1, successor + 1
        memory[at.EXPANDED] += 1
    return at.DONE, 0


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
