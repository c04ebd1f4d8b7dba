"""Kernels of the outer loop: pick rows, evaluate a chain. Direction is a sign."""

from rfmdp.kernels.decorator import kernel


@kernel
def choose(q, row_ptr, states, sign, slack, choice, value):
    """Best row of every listed state: sign=+1 maximises, -1 minimises.

    Fills value[s] with the best q. choice[s] moves to the best row only if that is better by more
    than `slack`: ties keep the old row, on which a proper policy stays proper.
    """
    for i in range(states.shape[0]):
        s = states[i]
        best = row_ptr[s]
        for r in range(best + 1, row_ptr[s + 1]):
            if sign * q[r] > sign * q[best]:
                best = r
        old = choice[s]
        if old < row_ptr[s] or old >= row_ptr[s + 1] or sign * q[best] > sign * q[old] + slack:
            choice[s] = best
        value[s] = q[best]


@kernel
def share_group(group_ptr, members, q, sign, choice, value):
    """Give all states of a group the best value and row of its members (an end component)."""
    for g in range(group_ptr.shape[0] - 1):
        best = members[group_ptr[g]]
        for i in range(group_ptr[g] + 1, group_ptr[g + 1]):
            if sign * value[members[i]] > sign * value[best]:
                best = members[i]
        for i in range(group_ptr[g], group_ptr[g + 1]):
            value[members[i]] = value[best]
            choice[members[i]] = choice[best]


@kernel
def pack_chain(nodes, moves, value, reward, discount, chain):
    """Write x[i] = constants[i] + sum of weights[k] * x[targets[k]], k in ptr[i] : ptr[i + 1].

    State states[i] moves by row rows[states[i]] with the distribution at begin[i]; a state s is
    number place[s] of the chain, or worth value[s] if that is negative. The part that stays is
    solved for; moves of probability zero are left out.

    nodes : states (n,), rows (S,), place (S,)
    moves : successor_ptr (R + 1,), successors (K,), begin (n,), probability
    chain : ptr (n + 1,), targets, weights, constants (n,), to be filled
    """
    states, rows, place = nodes
    successor_ptr, successors, begin, probability = moves
    ptr, targets, weights, constants = chain
    end = 0
    ptr[0] = 0
    for i in range(states.shape[0]):
        row = rows[states[i]]
        start = successor_ptr[row]
        count = successor_ptr[row + 1] - start
        stay = 0.0
        for k in range(count):
            if place[successors[start + k]] == i:
                stay += probability[begin[i] + k]
        leave = 1.0 - discount * stay
        if leave > 1e-12:
            known = reward[row]
            for k in range(count):
                x = probability[begin[i] + k]
                t = place[successors[start + k]]
                if x != 0.0 and t < 0:
                    known += discount * x * value[successors[start + k]]
                elif x != 0.0 and t != i:
                    targets[end], weights[end] = t, discount * x / leave
                    end += 1
            constants[i] = known / leave
        else:  # (almost) a trap of the chain: keep what is known instead of dividing by zero
            constants[i], targets[end], weights[end] = 0.0, i, 1.0
            end += 1
        ptr[i + 1] = end


@kernel
def sweep_chain(chain, x, sweeps, accuracy):
    """Gauss-Seidel sweeps of a chain as `pack_chain` writes it.

    Stops after `sweeps`, or when no value changes by more than accuracy[i]; returns (sweeps done,
    whether it stopped so).
    """
    ptr, targets, weights, constants = chain
    done = 0
    settled = False
    for _ in range(sweeps):
        settled = True
        done += 1
        for i in range(x.shape[0]):
            new = constants[i]
            for k in range(ptr[i], ptr[i + 1]):
                new += weights[k] * x[targets[k]]
            if not abs(new - x[i]) <= accuracy[i]:
                settled = False
            x[i] = new
        if settled:
            break
    return done, settled


@kernel
def row_span(rows, successor_ptr, successors, value, low, high):
    """Fill the smallest and largest successor value of every listed row."""
    for i in range(rows.shape[0]):
        a, b = value[successors[successor_ptr[rows[i]]]], value[successors[successor_ptr[rows[i]]]]
        for k in range(successor_ptr[rows[i]] + 1, successor_ptr[rows[i] + 1]):
            x = value[successors[k]]
            a, b = min(a, x), max(b, x)
        low[i], high[i] = a, b
