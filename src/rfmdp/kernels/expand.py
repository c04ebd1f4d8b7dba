"""The exploration of state spaces with the machine.

A state is a valuation packed into words of 62 bits; a row's successors are its state's words plus
what each of its commands changes, summed over all combinations.

machine  memory, code, floats: see `kernels.addresses` and `kernels.machine`; bits: the same floats
         as ints
vectors  key, key_table, keys: a key, and a hash table of those that are known (address + 1);
         distributions, support: what commands do with a vector of probabilities, random choices
states   known (S, words): packed states by discovery; table: a hash table of them (index + 1), or,
         if dense, with a slot for every word
found    rows, marginals, successors: what was found so far
scratch  tensor, delta: words of the successors of a row, changes of words by all commands
"""

from rfmdp.kernels.addresses import (
    ACTION,
    ALONE,
    ASSIGNMENT,
    BUCKETS,
    CELL,
    CHAIN,
    CHANGES,
    CHOSEN,
    CONSTANT,
    COUNT,
    DENSE,
    DISTRIBUTION,
    DONE,
    ENABLED,
    EXPANDED,
    FACTOR,
    FIRST,
    FIRST_ASSIGNED,
    FIRST_MIXED,
    FOUND,
    GROW,
    GUARD,
    HAS_UPPER,
    HIGH,
    IDENTIFIER,
    KEY,
    KEY_LOW,
    KEY_SIZE,
    KNOWN,
    LABEL,
    LABELS,
    LAST,
    LAST_ASSIGNED,
    LOW,
    LOWER,
    LOWER_CELL,
    MARGINAL,
    MARGINALS,
    MASK,
    MISSING,
    MIXED,
    MODULE,
    MODULES,
    NEW_MIX,
    NEW_VECTOR,
    NO_ACTION,
    NO_ASSIGNMENT,
    NO_GUARD,
    NO_OWNER,
    NO_PROBABILITY,
    OUT_OF_RANGE,
    OWN_MARGINALS,
    PAUSE,
    PLACES,
    ROWS,
    SHIFT,
    SLOT,
    SLOTS,
    SOURCE,
    STAMP,
    STATES,
    SUCCESSORS,
    SUPPORT,
    SUPPORT_END,
    TENSOR,
    TOO_LARGE,
    UPDATE,
    VALUE,
    VALUE_CELL,
    VARIABLE,
    VARIABLES,
    VECTOR,
    WIDEST,
    WORD,
)
from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.machine import run
from rfmdp.kernels.tables import key_slot, state_slot


@inline_kernel
def _distribution(c, machine, vectors):
    """Return (status, distribution) of a command in the state; without a value, the update."""
    memory, code, floats, bits = machine
    _, key_table, keys, _, _ = vectors
    if memory[c + CONSTANT] >= 0:
        return DONE, memory[c + CONSTANT]
    at = memory[VECTOR]
    for side in range(1 + memory[c + HAS_UPPER]):
        for u in range(memory[c + FIRST], memory[c + LAST], UPDATE):
            if run(memory[u + LOWER + 2 * side], code, memory, floats) < 0:
                return NO_PROBABILITY, u
            floats[at] = floats[memory[u + LOWER_CELL + 2 * side]]
            at += 1
    first = memory[VECTOR]
    slot = key_slot(bits, first, at - first, c, key_table, keys)
    if key_table[slot] == 0:
        return NEW_VECTOR, c
    return DONE, keys[key_table[slot] - 1 + DISTRIBUTION]


@inline_kernel
def _moves(c, machine, vectors, delta):
    """Fill what a command changes in the words of the state; returns (status, detail)."""
    memory, code, floats, _ = machine
    _, _, _, distributions, support = vectors
    status, d = _distribution(c, machine, vectors)
    if status != DONE:
        return status, d
    at = memory[c + CHANGES]
    for k in range(distributions[d, SUPPORT], distributions[d, SUPPORT_END]):
        for w in range(delta.shape[1]):
            delta[at, w] = 0
        u = memory[c + FIRST] + UPDATE * support[k]
        for a in range(memory[u + FIRST_ASSIGNED], memory[u + LAST_ASSIGNED], ASSIGNMENT):
            if run(memory[a + VALUE], code, memory, floats) < 0:
                return NO_ASSIGNMENT, a
            v, value = memory[a + VARIABLE], memory[memory[a + VALUE_CELL]]
            if value < memory[v + LOW] or value > memory[v + HIGH]:
                return OUT_OF_RANGE, a
            change = (value - memory[memory[v + CELL]]) << memory[v + SHIFT]
            delta[at, memory[v + WORD]] += change
        at += 1
    memory[c + FOUND], memory[c + KNOWN] = d, memory[STAMP]
    return DONE, 0


@inline_kernel
def _expand_tensor(count, memory, distributions, marginals, known, scratch):
    """Fill the words of all successors of the chosen commands; returns (number, marginals)."""
    tensor, delta = scratch
    width, stored, size = known.shape[1], memory[MARGINALS], 1
    for w in range(width):
        tensor[0, w] = known[memory[EXPANDED], w]
    for k in range(count):
        c = memory[memory[CHOSEN] + k]
        d, at = memory[c + FOUND], memory[c + CHANGES]
        outcomes = distributions[d, SUPPORT_END] - distributions[d, SUPPORT]
        if distributions[d, MARGINAL] >= 0:
            marginals[stored, IDENTIFIER] = distributions[d, MARGINAL]
            marginals[stored, FACTOR] = memory[c + MODULE]
            stored += 1
        # backwards in place: entry i * outcomes + o never lies before one that is still to be read
        for i in range(size - 1, -1, -1):
            for w in range(width):
                head = tensor[i, w]
                for o in range(outcomes - 1, -1, -1):
                    tensor[i * outcomes + o, w] = head + delta[at + o, w]
        size *= outcomes
    return size, stored


@inline_kernel
def _number(size, at, memory, states, tensor, successors):
    """Give numbers to the successors of a row; fills `successors[at : at + size]`."""
    known, table = states
    count, dense = memory[STATES], memory[DENSE]
    for i in range(size):
        slot = tensor[i, 0] if dense else state_slot(tensor, i, table, known)
        if table[slot] == 0:
            for w in range(known.shape[1]):
                known[count, w] = tensor[i, w]
            count += 1
            table[slot] = count
        successors[at + i] = table[slot] - 1
    memory[STATES] = count


@inline_kernel
def _enabled(machine):
    """Find the enabled commands of the state; returns (status, detail)."""
    memory, code, floats, _ = machine
    for k in range(memory[memory[LABELS]]):
        label = memory[memory[LABELS] + 1 + k]
        memory[label + MISSING] = memory[label + SLOTS]
        for i in range(memory[label + SLOTS]):
            memory[memory[label + SLOTS + 1 + i] + COUNT] = 0
    alone = memory[ALONE]
    memory[alone] = 0
    for k in range(memory[memory[MODULES]]):
        m = memory[memory[MODULES] + 1 + k]
        value = memory[memory[m + KEY]] - memory[m + KEY_LOW] if memory[m + KEY] > 0 else 0
        bucket = memory[m + BUCKETS + value]
        for i in range(memory[bucket]):
            c = memory[bucket + 1 + i]
            found = run(memory[c + GUARD], code, memory, floats)
            if found < 0:
                return NO_GUARD, c
            if found == 0:
                continue
            slot = memory[c + SLOT]
            if slot == 0:
                memory[alone] += 1
                memory[alone + memory[alone]] = c
                continue
            if memory[slot + COUNT] == 0:
                memory[memory[slot + LABEL] + MISSING] -= 1
            memory[slot + ENABLED + memory[slot + COUNT]] = c
            memory[slot + COUNT] += 1
    return DONE, 0


@inline_kernel
def _choose(group, memory):
    """Choose the first commands of an unlabelled command or a label; returns how many."""
    chosen, alone = memory[CHOSEN], memory[ALONE]
    if group < memory[alone]:
        memory[chosen] = memory[alone + 1 + group]
        return 1
    label = memory[memory[LABELS] + 1 + group - memory[alone]]
    if memory[label + MISSING] > 0:
        return 0
    for k in range(memory[label + SLOTS]):
        memory[memory[PLACES] + k] = 0
        memory[chosen + k] = memory[memory[label + SLOTS + 1 + k] + ENABLED]
    return memory[label + SLOTS]


@inline_kernel
def _choose_next(group, memory):
    """Choose the next combination of commands, the last module first; returns whether there is."""
    if group < memory[memory[ALONE]]:
        return False
    label = memory[memory[LABELS] + 1 + group - memory[memory[ALONE]]]
    for k in range(memory[label + SLOTS] - 1, -1, -1):
        slot, place = memory[label + SLOTS + 1 + k], memory[PLACES] + k
        memory[place] += 1
        more = memory[place] < memory[slot + COUNT]
        if not more:
            memory[place] = 0
        memory[memory[CHOSEN] + k] = memory[slot + ENABLED + memory[place]]
        if more:
            return True
    return False


@inline_kernel
def _mix(row, marginal, successor, memory, vectors, found):
    """Make the rows of the state one random choice; returns `NEW_MIX` if it is not known yet."""
    key, key_table, keys, distributions, _ = vectors
    rows, marginals, _ = found
    size, at = 2 * (memory[ROWS] - row) + memory[MARGINALS] - marginal, marginal
    memory[KEY_SIZE] = max(size, memory[KEY_SIZE])
    if size > key.shape[0] or marginal >= marginals.shape[0]:
        return GROW
    memory[KEY_SIZE] = size
    size = 0
    for r in range(row, memory[ROWS]):
        key[size], key[size + 1] = rows[r, ACTION], rows[r, OWN_MARGINALS]
        size += 2
        for _ in range(rows[r, OWN_MARGINALS]):
            key[size] = marginals[at, IDENTIFIER]
            size, at = size + 1, at + 1
    slot = key_slot(key, 0, size, NO_OWNER, key_table, keys)
    if key_table[slot] == 0:
        return NEW_MIX
    d = keys[key_table[slot] - 1 + DISTRIBUTION]
    rows[row, ACTION], rows[row, OWN_MARGINALS] = distributions[d, 1], 1
    rows[row, TENSOR] = memory[SUCCESSORS] - successor
    marginals[marginal, IDENTIFIER] = distributions[d, MARGINAL]
    marginals[marginal, FACTOR] = memory[memory[MODULES]]
    memory[ROWS], memory[MARGINALS] = row + 1, marginal + 1
    if memory[MIXED] == 0:
        memory[FIRST_MIXED] = memory[EXPANDED]
    memory[MIXED] += 1
    return DONE


@kernel
def explore(machine, vectors, states, found, scratch, pause):
    """Expand states in the order of discovery; returns (status, detail).

    The state of any other status than `DONE` and `PAUSE` is taken back, and comes again at the
    next call. The detail of an error is the command, update or assignment where it is.

    pause : number of states after which to come back
    """
    memory, distributions = machine[0], vectors[3]
    known, table = states
    rows, marginals, successors = found
    tensor, delta = scratch
    while memory[EXPANDED] < memory[STATES]:
        s = memory[EXPANDED]
        if s >= pause:
            return PAUSE, 0
        row, marginal, successor = memory[ROWS], memory[MARGINALS], memory[SUCCESSORS]
        if row >= rows.shape[0] or successor >= successors.shape[0]:
            return GROW, 0
        memory[STAMP] += 1
        for k in range(memory[memory[VARIABLES]]):
            v = memory[memory[VARIABLES] + 1 + k]
            field = (known[s, memory[v + WORD]] >> memory[v + SHIFT]) & memory[v + MASK]
            memory[memory[v + CELL]] = memory[v + LOW] + field
        status, detail = _enabled(machine)
        groups = memory[memory[ALONE]] + memory[memory[LABELS]]
        group = 0
        while status == DONE and group < groups:
            count = _choose(group, memory)
            more = count > 0
            while status == DONE and more:
                total = 1.0
                for k in range(count):
                    c = memory[memory[CHOSEN] + k]
                    if memory[c + KNOWN] != memory[STAMP] and status == DONE:
                        status, detail = _moves(c, machine, vectors, delta)
                    d = memory[c + FOUND]
                    total *= distributions[d, SUPPORT_END] - distributions[d, SUPPORT]
                if status == DONE and total >= 2.0**31:
                    status = TOO_LARGE
                if status != DONE:
                    break
                memory[WIDEST] = max(memory[WIDEST], int(total))
                room, at = memory[STATES] + int(total), memory[SUCCESSORS]
                if (
                    memory[ROWS] >= rows.shape[0]
                    or memory[MARGINALS] + count > marginals.shape[0]
                    or at + int(total) > successors.shape[0]
                    or int(total) > tensor.shape[0]
                    or room > known.shape[0]
                    or (memory[DENSE] == 0 and 2 * room > table.shape[0])
                ):
                    status = GROW
                    break
                size, stored = _expand_tensor(
                    count, memory, distributions, marginals, known, scratch
                )
                _number(size, at, memory, states, tensor, successors)
                r = memory[ROWS]
                label = group - memory[memory[ALONE]]
                rows[r, SOURCE] = s
                rows[r, ACTION] = label if label >= 0 else memory[memory[LABELS]]
                rows[r, OWN_MARGINALS], rows[r, TENSOR] = stored - memory[MARGINALS], size
                memory[ROWS], memory[MARGINALS], memory[SUCCESSORS] = r + 1, stored, at + size
                more = _choose_next(group, memory)
            group += 1
        if status == DONE and memory[CHAIN] != 0 and memory[ROWS] > row + 1:
            status = _mix(row, marginal, successor, memory, vectors, found)
        if status != DONE:
            memory[ROWS], memory[MARGINALS], memory[SUCCESSORS] = row, marginal, successor
            return status, detail
        if memory[ROWS] == row:
            rows[row, SOURCE], rows[row, ACTION] = s, NO_ACTION
            rows[row, OWN_MARGINALS], rows[row, TENSOR] = 0, 1
            successors[successor] = s
            memory[ROWS], memory[SUCCESSORS] = row + 1, successor + 1
        memory[EXPANDED] += 1
    return DONE, 0
