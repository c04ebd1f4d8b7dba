"""Steps of the qualitative analysis: predecessor lists, attractors, components, supports.

Tuples of arrays come from `outer.graph`:

edges   row_ptr (S + 1,), row_state (R,) int32, successor_ptr (R + 1,), successors int32: those
        that can occur
nature  flexible (R,) bool: rows in which nature can choose a support; tensor_ptr (R + 1,),
        tensor (K,) int32: all their successors; marginal_ptr (R + 1,), row_marginals,
        support_ptr (M + 1,), minimal_end (M,), member_ptr, members, sizes (M,)
work    codes (n, K') uint8, cursor (n,), queue (S,) int32, pending (R,) int32
marks   status (R,), missing (S,), reached (S,), inside (S,), choice (S,): see `attract`

Supports `support_ptr[m] : support_ptr[m + 1]` of marginal m have the outcomes
`members[member_ptr[b] : member_ptr[b + 1]]`; those before `minimal_end[m]` are minimal.

To enumerate those of boxes and balls: a set of outcomes is *feasible* if some member has its
support within it. For the sets here that is: it is not empty and its weights sum to at least a
threshold (see `sets.supports`, which leaves only those outcomes that can be empty or not). Weights
are integers of L digits to the base 2^32, the highest first; so sums are exact, at all scales.

Feasible sets stay feasible when an outcome is replaced by a heavier one. So taking outcomes by
descending weight and stopping at the first feasible set gives minimal sets only, and every
branch that is entered ends in one.

Rows handed to steps are made int64: for an int32 they would be compiled once more.
"""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel, kernel, step_kernel
from rfmdp.kernels.primitives import outer_product

WAITING, FIRED, PENDING, CLOSED = 0, 1, 2, 3  # status of a row in `attract`
ANY, CERTAIN, TOGETHER = 0, 1, 2  # when a row that nature can bend fires, see `attract`
OUTSIDE, UNSEEN = -2, -1  # in Tarjan's index
FLEXIBLE, SUPPORT_PTR, MINIMAL_END = 0, 5, 6  # in `nature`
BITS = 32  # of a digit; sums of 62 of them are far from the end of 64 bits


@kernel
def mark_present(model, possible, present):
    """Fill present[k]: every outcome of transition k has a positive upper bound.

    model : the arrays of `FactoredMDP.structure`
    """
    _, marginal_ptr, row_marginals, outcome_ptr, successor_ptr, _ = model
    for r in range(successor_ptr.shape[0] - 1):
        first, last, to = marginal_ptr[r], marginal_ptr[r + 1], successor_ptr[r]
        outer_product(outcome_ptr, possible, row_marginals, first, last, present, to)


@kernel
def list_predecessors(edges, last_S, place_S, pred_rows):
    """Move place_S[s] on by one for every row that may move to s; write the rows where it was.

    last_S starts at -1. If pred_rows is empty, nothing is written: it only counts.
    """
    _, _, successor_ptr, successors = edges
    writes = pred_rows.shape[0] > 0
    for r in range(successor_ptr.shape[0] - 1):
        for k in range(successor_ptr[r], successor_ptr[r + 1]):
            s = successors[k]
            if last_S[s] != r:
                last_S[s] = r
                if writes:
                    pred_rows[place_S[s]] = r
                place_S[s] += 1


@kernel
def rows_stay(edges, nature, work, inside_S, out_R):
    """Fill out[r]: nature can choose in row r a support inside `inside`."""
    _, _, successor_ptr, successors = edges
    flexible, minimal_end = nature[FLEXIBLE], nature[MINIMAL_END]  # larger supports stay no better
    for r in range(out_R.shape[0]):
        stays, meets = True, False
        for k in range(successor_ptr[r], successor_ptr[r + 1]):
            stays = stays and inside_S[successors[k]]
            meets = meets or inside_S[successors[k]]
        out_R[r] = stays or (
            meets and flexible[r] and fits(nature, work, r, inside_S, inside_S, minimal_end)
        )


@step_kernel
def fits(nature, work, r, inside_S, hit_S, ends_M):
    """Whether a product of supports of row r lies inside `inside` and meets `hit`.

    Depth first over the axes. An entry's code has bit 1 if all that was merged into it lies
    inside, bit 2 if something of it is in `hit`; a branch without an entry 3 is hopeless.
    ends_M : minimal_end if `hit` is `inside`, otherwise support_ptr[1:]
    """
    _, tensor_ptr, tensor, marginal_ptr, row_marginals = nature[:SUPPORT_PTR]
    support_ptr, _, member_ptr, members, sizes = nature[SUPPORT_PTR:]
    codes, cursor, _, _ = work
    start = tensor_ptr[r]
    size = tensor_ptr[r + 1] - start
    for k in range(size):
        s = tensor[start + k]
        codes[0, k] = (1 if inside_S[s] else 0) | (2 if hit_S[s] else 0)
    first = marginal_ptr[r]
    last = marginal_ptr[r + 1] - first - 1
    level = 0
    cursor[0] = support_ptr[row_marginals[first]]
    while level >= 0:
        m = row_marginals[first + level]
        b = cursor[level]
        if b == ends_M[m]:
            level -= 1
            if level >= 0:
                size *= sizes[row_marginals[first + level]]
            continue
        cursor[level] = b + 1
        rest = size // sizes[m]
        if _merge(codes, level, rest, members, member_ptr[b], member_ptr[b + 1]):
            if level == last:
                return True
            level += 1
            size = rest
            cursor[level] = support_ptr[row_marginals[first + level]]
    return False


@inline_kernel
def _merge(codes, level, rest, members, begin, end):
    """Merge the slices of the first axis named by members; False if no entry of code 3 is left."""
    hopeful = False
    for j in range(rest):
        inside, hit = 1, 0
        for i in range(begin, end):
            code = codes[level, members[i] * rest + j]
            inside &= code
            hit |= code
        code = (inside & 1) | (hit & 2)
        codes[level + 1, j] = code
        hopeful = hopeful or code == 3
    return hopeful


@kernel
def attract(row_state, predecessors, nature, work, mode, marks):
    """Grow `reached` to the least set closed under firing rows. Changes the marks in place.

    A row fires when it may move to a reached state; if nature can bend the row, then
    in mode ANY as well; in mode CERTAIN if no support avoids the reached states (`inside` is
    their complement and kept so); in mode TOGETHER if some support inside `inside` meets them.
    A state is reached when `missing` of its rows have fired; never if that is 0. Its `choice`
    becomes the last of these.

    status : WAITING, FIRED (fires at once) or CLOSED (never fires); ends as WAITING or FIRED
    """
    flexible = nature[FLEXIBLE]
    pred_ptr, pred_rows = predecessors
    _, _, queue, pending = work
    status_R, missing_S, reached_S, inside_S, _ = marks
    head, tail = 0, 0
    for s in range(reached_S.shape[0]):
        if reached_S[s]:
            queue[tail] = s
            tail += 1
    for r in range(status_R.shape[0]):
        if status_R[r] == FIRED:
            tail = _fire(r, row_state, marks, mode, queue, tail)
    while head < tail:
        waiting = 0
        while head < tail:
            s = queue[head]
            head += 1
            for e in range(pred_ptr[s], pred_ptr[s + 1]):
                r = np.int64(pred_rows[e])
                if status_R[r] != WAITING:
                    continue
                if mode == ANY or not flexible[r]:
                    status_R[r] = FIRED
                    tail = _fire(r, row_state, marks, mode, queue, tail)
                elif missing_S[row_state[r]] > 0:
                    status_R[r] = PENDING
                    pending[waiting] = r
                    waiting += 1
        # rows that nature can bend are looked at only when nothing cheaper is left
        for i in range(waiting):
            r = np.int64(pending[i])
            status_R[r] = WAITING
            if mode == CERTAIN:
                fires = not fits(nature, work, r, inside_S, inside_S, nature[MINIMAL_END])
            else:
                fires = fits(nature, work, r, inside_S, reached_S, nature[SUPPORT_PTR][1:])
            if fires:
                status_R[r] = FIRED
                tail = _fire(r, row_state, marks, mode, queue, tail)


@inline_kernel
def _fire(r, row_state, marks, mode, queue, tail):
    """Count row r of its state; queue the state if it was the last one missing."""
    _, missing_S, reached_S, inside_S, choice_S = marks
    s = row_state[r]
    missing_S[s] -= 1
    if missing_S[s] == 0 and not reached_S[s]:
        reached_S[s] = True
        choice_S[s] = r
        if mode == CERTAIN:
            inside_S[s] = False
        queue[tail] = s
        tail += 1
    return tail


@kernel
def strong_components(edges, rows_R, visits, path, stack, component_S):
    """Tarjan's algorithm on an explicit stack; returns the number of components.

    Components are numbered bottom first. visits : index, low, row, edge (S,); the index is UNSEEN
    for the states wanted and OUTSIDE for the others. Afterwards `stack` lists the states, component
    after component, and within one a state after all that it can move to, but where that closes a
    cycle.
    """
    row_ptr, _, successor_ptr, _ = edges
    index_S, low_S, row_S, edge_S = visits
    count, seen, emitted = 0, 0, 0
    top = stack.shape[0]  # states left for good wait downwards, those of whole components upwards
    for root in range(index_S.shape[0]):
        if index_S[root] != UNSEEN:
            continue
        depth, child = 0, root
        while True:
            if child >= 0:
                index_S[child] = low_S[child] = seen
                seen += 1
                row_S[child] = row_ptr[child]
                edge_S[child] = successor_ptr[row_ptr[child]]
                path[depth] = child
                depth += 1
            v = path[depth - 1]
            child = _next_child(edges, rows_R, v, visits)
            if child >= 0:
                continue
            depth -= 1
            if depth > 0:
                low_S[path[depth - 1]] = min(low_S[path[depth - 1]], low_S[v])
            top -= 1
            stack[top] = v
            if low_S[v] == index_S[v]:
                top, emitted = _close(v, stack, top, emitted, index_S, component_S, count)
                count += 1
            if depth == 0:
                break
    return count


@inline_kernel
def _next_child(edges, rows_R, v, visits):
    """Return the next unseen successor of v, or -1; lowers low[v] on the way."""
    index_S, low_S, row_S, edge_S = visits
    row_ptr, _, successor_ptr, successors = edges
    r, k, low = row_S[v], edge_S[v], low_S[v]
    child = -1
    while child < 0 and r < row_ptr[v + 1]:
        if not rows_R[r] or k >= successor_ptr[r + 1]:
            r += 1
            k = successor_ptr[r]
            continue
        seen = index_S[successors[k]]
        if seen == UNSEEN:
            child = successors[k]
        elif seen >= 0:
            low = min(low, seen)
        k += 1
    row_S[v], edge_S[v], low_S[v] = r, k, low
    return child


@inline_kernel
def _close(v, stack, top, emitted, index_S, component_S, number):
    """List the component of root v, which waits at `top`, among the finished states."""
    size, first = 0, index_S[v]
    while top + size < stack.shape[0] and index_S[stack[top + size]] >= first:
        size += 1
    for i in range(size // 2):  # those that were left first go first
        a, b = top + i, top + size - 1 - i
        stack[a], stack[b] = stack[b], stack[a]
    for i in range(size):
        s = stack[top + i]
        index_S[s] = OUTSIDE
        component_S[s] = number
        stack[emitted + i] = s
    return top + size, emitted + size


@kernel
def component_levels(edges, rows_R, component_S, states, kind_C, level_C, loop_C):
    """Raise the levels of components, and fill which ones have an edge within.

    level[c] = max over successor components b of level[b] + (kind[b] != kind[c]), at least what it
    was. With a kind each, that is the longest way down.

    states : by component, bottom first, as `strong_components` leaves them
    """
    row_ptr, _, successor_ptr, successors = edges
    for s in states:
        c = component_S[s]
        for r in range(row_ptr[s], row_ptr[s + 1]):
            if not rows_R[r]:
                continue
            for k in range(successor_ptr[r], successor_ptr[r + 1]):
                other = component_S[successors[k]]
                if other == c:
                    loop_C[c] = True
                elif other >= 0:
                    step = 1 if kind_C[other] != kind_C[c] else 0
                    level_C[c] = max(level_C[c], level_C[other] + step)


@kernel
def rows_within(edges, component_S, rows_R):
    """Drop from `rows` those that may leave the component of their state."""
    _, row_state, successor_ptr, successors = edges
    for r in range(rows_R.shape[0]):
        if not rows_R[r]:
            continue
        c = component_S[row_state[r]]
        for k in range(successor_ptr[r], successor_ptr[r + 1]):
            if component_S[successors[k]] != c:
                rows_R[r] = False
                break


@inline_kernel
def feasible(mask, bare, weight, threshold, total):
    """Return whether the weights (d, L) of mask sum to at least threshold (L,); total is scratch.

    bare : whether nothing else is in the set, so that an empty mask is none
    """
    if mask == 0 and bare:
        return False
    digits = threshold.shape[0]
    for k in range(digits):
        total[k] = -threshold[k]
    for i in range(weight.shape[0]):
        if (mask >> i) & 1:
            for k in range(digits):
                total[k] += weight[i, k]
    # carry from the lowest digit up: the sign is then that of the highest one
    for k in range(digits - 1, 0, -1):
        total[k - 1] += total[k] >> BITS
    return total[0] >= 0


@inline_kernel
def supersets(extra, bare, weight, threshold, scratch, masks, used):
    """Append the minimal feasible supersets of `extra`; returns the new length or -1.

    With an extra outcome (one bit) only those are kept that are feasible without it: the others
    are minimal among all feasible sets. Outcomes are ordered by descending weight.
    """
    rest, path, total = scratch[0], scratch[1], scratch[2]
    size = weight.shape[0]
    rest[size] = 0
    for i in range(size - 1, -1, -1):
        rest[i] = rest[i + 1] | (1 << i)
    mask, depth, i = extra, 0, 0
    done = feasible(extra, bare, weight, threshold, total)
    while True:
        if done:
            if extra == 0 or feasible(mask ^ extra, bare, weight, threshold, total):
                if used == masks.shape[0]:
                    return -1
                masks[used] = mask
                used += 1
        elif i < size and feasible(mask | rest[i], bare, weight, threshold, total):
            if (mask >> i) & 1 == 0:
                mask |= 1 << i
                path[depth] = i
                depth += 1
                done = feasible(mask, bare, weight, threshold, total)
            i += 1
            continue
        if depth == 0:
            return used
        depth -= 1
        i = path[depth] + 1
        mask ^= 1 << (i - 1)
        done = False


@kernel
def enumerate_supports(ptr, bare, weight, threshold, scratch, masks, ends):
    """Enumerate the supports of N sets until `masks` is full; returns how many were finished.

    ends[n] = (end of the minimal supports, end of all) of set n. All supports: for every outcome
    the minimal ones that contain it.

    ptr : (N + 1,) outcomes of every set in `weight` (O, L), by descending weight
    bare : (N,), threshold : (N, L), scratch : (3, 64) int64
    """
    used = 0
    for n in range(ptr.shape[0] - 1):
        w = weight[ptr[n] : ptr[n + 1]]
        for e in range(-1, w.shape[0]):
            extra = 1 << e if e >= 0 else 0
            used = supersets(extra, bare[n], w, threshold[n], scratch, masks, used)
            if used < 0:
                return n
            if e < 0:
                ends[n, 0] = used
        ends[n, 1] = used
    return ptr.shape[0] - 1
