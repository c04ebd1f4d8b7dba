"""Kernels that run trajectories of a factored model and count outcomes.

Random numbers are a function of (seed, trajectory, draw): trajectory i owns the SplitMix64 stream
[SteeleLeaFlood2014] that starts at a hash of seed and i. A run is therefore the same for every
number of threads, and can be continued at any trajectory.

An outcome is drawn in O(1) from an alias table [Walker1977]: a slot, then the slot's own outcome
or its alias. Counts are integers, so adding the parts of several threads is exact.

world      model: row_ptr, marginal_ptr, slots (U, 2): where the outcomes of every marginal of a
           row begin and how many there are, successor_ptr, successors;
           tables: accept, alias (O,); initial states; stop (S,): where a trajectory ends
behaviour  rows_TS (steps, S): the policy's rows, the last step repeats; other: chance of another
wanted     length: most steps of a trajectory; seed; first, count: which trajectories
"""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.rounding import UNIT

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
S30, S27, S31, S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
RANDOM_ROW = -1  # in a policy: any row of the state, each with the same probability


@inline_kernel
def _mix(z):
    """Return the output function of SplitMix64: a bijection of 64 bits."""
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    return z ^ (z >> S31)


@inline_kernel
def _unit(z):
    """Return the top 53 bits of a mixed state as a number in [0, 1)."""
    return np.float64(_mix(z) >> S11) * UNIT


@kernel
def alias_tables(outcome_ptr, probability, work, accept, alias):
    """Fill the alias table of every marginal: slot i gives i with accept[i], else alias[i].

    work : (d,) integers of the largest marginal
    """
    for j in range(outcome_ptr.shape[0] - 1):
        begin, end = outcome_ptr[j], outcome_ptr[j + 1]
        d = end - begin
        total = 0.0
        for i in range(begin, end):
            total += probability[i]
        small, large = 0, d  # stacks from both ends of work
        for i in range(d):
            accept[begin + i] = probability[begin + i] / total * d
            alias[begin + i] = i
            if accept[begin + i] < 1.0:
                work[small] = i
                small += 1
            else:
                large -= 1
                work[large] = i
        while small > 0 and large < d:
            low, high = work[small - 1], work[large]
            small -= 1
            alias[begin + low] = high
            accept[begin + high] -= 1.0 - accept[begin + low]
            if accept[begin + high] < 1.0:
                large += 1
                work[small] = high
                small += 1
        # what is left differs from 1 by rounding only, unless it is impossible
        while small > 0:
            small -= 1
            if probability[begin + work[small]] > 0.0:
                accept[begin + work[small]] = 1.0


@inline_kernel
def _pick(behaviour, row_ptr, state, step, z):
    """Return (row, new generator state): the policy's row, or another one by chance `other`."""
    rows_TS, other = behaviour
    row = rows_TS[min(step, rows_TS.shape[0] - 1), state]
    first = row_ptr[state]
    choices = row_ptr[state + 1] - first
    if row == RANDOM_ROW:
        if choices == 1:
            return first, z
        z += GAMMA
        return first + np.int64(_unit(z) * choices), z
    if other > 0.0 and choices > 1:
        z += GAMMA
        x = _unit(z)
        if x < other:
            pick = first + np.int64(x / other * (choices - 1))
            return (pick if pick < row else pick + 1), z
    return np.int64(row), z


@inline_kernel
def _draw(begin, d, tables, z):
    """Return (one of the d outcomes at `begin`, new generator state)."""
    accept, alias = tables
    z += GAMMA
    x = _unit(z) * d
    o = np.int64(x)
    spare = alias[begin + o]
    # a select, not a branch: nobody can predict a random number
    return (o if x - o < accept[begin + o] else spare), z


@inline_kernel
def _begin(initial, seed, trajectory):
    """Return (first state, generator state) of a trajectory."""
    z = _mix(_mix(np.uint64(seed)) + np.uint64(trajectory) * GAMMA)
    if initial.shape[0] == 1:
        return initial[0], z
    z += GAMMA
    return initial[np.int64(_unit(z) * initial.shape[0])], z


@kernel
def run_trajectories(world, behaviour, wanted, paid, tally, limits, ends, trace):
    """Run trajectories first .. first + count - 1; returns (trajectories, steps).

    A trajectory ends after `length` steps or in a state where `stop` holds. Its return is the sum
    of discount**t * reward[row]. The run stops after a trajectory in which some total[j] reaches
    its limit. Where arrays are empty, nobody asks for them.

    paid   : reward (R,), discount
    tally  : counts (O,), total (M,), visits (R,): added to
    limits : row_marginals, limit (M,) of the totals
    ends   : returns (count,), final states (count,), lengths (count,): filled
    trace  : rows and successors (count * length,) of all steps: filled
    """
    model, tables, initial, stop = world
    row_ptr, marginal_ptr, slots, successor_ptr, successors = model
    length, seed, first, count = wanted
    reward, discount = paid
    counts, total, visits = tally
    row_marginals, limit = limits
    returns, final, lengths = ends
    rows_N, successors_N = trace
    steps = 0
    for i in range(count):
        state, z = _begin(initial, seed, first + i)
        begin, worth, weight, due = steps, 0.0, 1.0, False
        for t in range(length):
            if stop[state]:
                break
            row, z = _pick(behaviour, row_ptr, state, t, z)
            place = 0
            for k in range(marginal_ptr[row], marginal_ptr[row + 1]):
                # side by side: the chain of dependent loads to a successor is what a step costs
                at, d = slots[k, 0], slots[k, 1]
                o, z = _draw(at, d, tables, z)
                counts[at + o] += 1
                place = place * d + o
                if total.shape[0] > 0:
                    j = row_marginals[k]
                    total[j] += 1
                    due |= total[j] >= limit[j]
            state = successors[successor_ptr[row] + place]
            if visits.shape[0] > 0:
                visits[row] += 1
            if reward.shape[0] > 0:
                worth += weight * reward[row]
                weight *= discount
            if rows_N.shape[0] > 0:
                rows_N[steps], successors_N[steps] = row, state
            steps += 1
        if final.shape[0] > 0:
            returns[i], final[i], lengths[i] = worth, state, steps - begin
        if due:
            return i + 1, steps
    return count, steps
