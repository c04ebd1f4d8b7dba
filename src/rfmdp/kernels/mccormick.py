"""Kernels of the McCormick relaxation: matrix entries, costs, safe bounds and witnesses.

Everything is in normalised variables: p = low + width x, prefix products h = low + width xi, and
t = xi x for a pair, all of them in [0, 1] (`inner/mccormick/programme.py` has the programme).
Singular widths never divide: an entry of width zero has share zero.

Tuples that travel together, everywhere in the same order:

asked      value (S,), sign (+1 nature minimises, -1 it maximises), rows (B,), all with the same
           marginals
tensors    successor_ptr, successors of the model; table (K,), the entry of the contracted tensor of
           every joint outcome; weight (K,), the product of the known marginals' entries
box        low_X, width_X, share_X, mass_N, free_N, low_P, width_P: see `coefficients`; of `greedy`
           the only uncertain marginal, as in `kernels.boxes`
pair       of a prefix and the next marginal: their sizes, and where they are in `box`
masses     lower mass and free mass of the next marginal, of the prefix; outcomes before it
places     where the last marginal and the last prefix are in `box`, the first columns of x, xi and
           t, outcomes of the last marginal, entries of the last prefix
programme  ptr, indices, data, right-hand sides, number of equalities, errors of the entries by row
charged    free mass of marginals that were taken as known; longest chain of products added up; the
           sum of all upper products, which bounds sum |c| / span
witness    where (B,) the distributions start, and the array to fill; empty if none are wanted
"""

from rfmdp.kernels.boxes import box_member
from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.primitives import dot, reset, sort
from rfmdp.kernels.rows import margin
from rfmdp.rounding import UNIT

PRINTED, SIMPLEX, MARGINALISED = 0, 1, 2


@inline_kernel
def _marginals(ids, bounds, box):
    """Fill bounds, widths and shares (width / free mass) of the row's marginals."""
    outcome_ptr, lower, upper = bounds
    low_X, width_X, share_X, mass_N, free_N, _, _ = box
    at = 0
    for k in range(ids.shape[0]):
        start = outcome_ptr[ids[k]]
        d = outcome_ptr[ids[k] + 1] - start
        mass, room = 0.0, 0.0
        for i in range(d):
            low_X[at + i] = lower[start + i]
            width_X[at + i] = upper[start + i] - lower[start + i]
            mass += low_X[at + i]
            room += width_X[at + i]
        # clamped, because sums of decimals may miss one by a tolerance: never infeasible
        free = min(max(1.0 - mass, 0.0), room)
        for i in range(d):
            share_X[at + i] = width_X[at + i] / free
        mass_N[k], free_N[k] = mass, free
        at += d


@inline_kernel
def _simplex_rows(count, sizes_N, share_X, free_N, data, error_R):
    """Write the rows sum_i share_i x_i = 1 of the first `count` marginals."""
    at = 0
    for k in range(count):
        for _ in range(sizes_N[k]):
            data[at] = share_X[at]
            at += 1
        error_R[k] = 4.0 * UNIT * (sizes_N[k] / free_N[k] + 2.0)
    return at, count


@inline_kernel
def _prefix_rows(at, row, pair, box, data, error_R):
    """Write xi' = (low w x + width l xi + width w t) / width' and fill the next prefix."""
    prefix, d, here, x = pair
    low_X, width_X, _, _, _, low_P, width_P = box
    then = here + prefix
    for I in range(prefix):
        for j in range(d):
            u, du = low_P[here + I], width_P[here + I]
            v, dv = low_X[x + j], width_X[x + j]
            wide = u * dv + du * v + du * dv
            low_P[then], width_P[then] = u * v, wide
            then += 1
            data[at] = 1.0
            if wide > 0.0:
                data[at + 1] = -u * dv / wide
                data[at + 2] = -du * v / wide
                data[at + 3] = -du * dv / wide
            else:  # a product without width: its variable has no effect, any definition serves
                data[at + 1], data[at + 2], data[at + 3] = 0.0, 0.0, -1.0
            at += 4
            error_R[row] = 32.0 * UNIT
            row += 1
    return at, row


@inline_kernel
def _marginal_rows(at, row, pair, box, masses, data, error_R):
    """Write sum_j share_j t_Ij = xi_I for every I and sum_I share_I t_Ij = x_j for every j."""
    prefix, d, here, x = pair
    _, _, share_X, _, _, _, width_P = box
    _, free, _, prefix_free, terms = masses
    for _ in range(prefix):
        for j in range(d):
            data[at + j] = share_X[x + j]
        data[at + d] = -1.0
        at += d + 1
        error_R[row] = 4.0 * UNIT * (d / free + 2.0)
        row += 1
    for _ in range(d):
        for I in range(prefix):
            data[at + I] = width_P[here + I] / prefix_free
        data[at + prefix] = -1.0
        at += prefix + 1
        error_R[row] = 4.0 * UNIT * (terms / prefix_free + 8.0)
        row += 1
    return at, row


@inline_kernel
def _total_row(at, row, pair, box, factors, data, error_R):
    """Write sum h = 1, divided by its right-hand side (see `_total_factors`)."""
    prefix, d, here, x = pair
    _, width_X, _, _, _, _, width_P = box
    on_x, on_xi, on_t, error = factors
    for j in range(d):
        data[at] = on_x * width_X[x + j]
        at += 1
    for I in range(prefix):
        data[at] = on_xi * width_P[here + I]
        at += 1
    for I in range(prefix):
        for j in range(d):
            data[at] = on_t * width_P[here + I] * width_X[x + j]
            at += 1
    error_R[row] = 4.0 * UNIT * (error + 8.0)


@inline_kernel
def _total_factors(variant, n, d, masses):
    """Return the factors of x, xi and t in sum h = 1, and the relative error in units of 4 UNIT.

    sum h - sum of lower products = M sum w x + L sum W xi + sum W w t, with M and L the lower
    masses of prefix and last marginal. Simplex rows make parts of it constant, and these are
    taken out: left in, a wide marginal beside a narrow one makes two rows nearly parallel.
    """
    mass, free, prefix_mass, prefix_free, terms = masses
    if variant == SIMPLEX and n == 2:
        return 0.0, 0.0, 1.0 / (free * prefix_free), d / free + terms / prefix_free
    if variant == SIMPLEX:
        scale = 1.0 / (prefix_free * (mass + free))
        return 0.0, mass * scale, scale, d + terms / prefix_free
    total = prefix_free * (mass + free) + prefix_mass * free
    return prefix_mass / total, mass / total, 1.0 / total, (d + terms) / total


@kernel
def coefficients(variant, sizes_N, ids_N, bounds, box, data, error_R):
    """Fill the entries of the matrix that depend on the marginals, in the order of the layout.

    `bounds` are outcome_ptr, lower and upper of all marginals. `box` is the workspace (low_X,
    width_X, share_X, mass_N, free_N, low_P, width_P); the parts of the last prefix and the last
    marginal are what `costs` and `joint` read. error_R is filled with relative errors of the
    entries of every row that was written.
    """
    low_X, width_X, share_X, mass_N, free_N, low_P, width_P = box
    _marginals(ids_N, bounds, box)
    n = sizes_N.shape[0]
    count = n if variant == SIMPLEX else (1 if variant == MARGINALISED else 0)
    at, row = _simplex_rows(count, sizes_N, share_X, free_N, data, error_R)
    prefix = sizes_N[0]
    for i in range(prefix):
        low_P[i], width_P[i] = low_X[i], width_X[i]
    mass = mass_N[0]
    free = free_N[0]
    here = 0
    x = prefix
    terms = float(prefix)
    for k in range(1, n):
        d = sizes_N[k]
        pair = prefix, d, here, x
        masses = mass_N[k], free_N[k], mass, free, terms
        if variant == MARGINALISED:
            at, row = _marginal_rows(at, row, pair, box, masses, data, error_R)
        if k < n - 1:
            at, row = _prefix_rows(at, row, pair, box, data, error_R)
            free = free * (mass_N[k] + free_N[k]) + mass * free_N[k]
            mass *= mass_N[k]
            here += prefix
            prefix *= d
            x += d
            terms += d
        elif variant != MARGINALISED:
            factors = _total_factors(variant, n, d, masses)
            _total_row(at, row, pair, box, factors, data, error_R)


@inline_kernel
def _tensor(r, value, sign, tensors, out):
    """Fill out with sign * (value - reference), known marginals contracted away.

    Returns the reference (the value of the first successor), the span and the magnitude.
    """
    successor_ptr, successors, table, weight = tensors
    start = successor_ptr[r]
    reference = value[successors[start]]
    out[:] = 0.0
    low, high = reference, reference
    for k in range(successor_ptr[r + 1] - start):
        v = value[successors[start + k]]
        low, high = min(low, v), max(high, v)
        out[table[k]] += weight[k] * (sign * (v - reference))
    return reference, high - low, max(abs(low), abs(high))


@kernel
def costs(asked, tensors, box, places, tensor, cost_BC, head_BH):
    """Fill the objective of every row of a batch that shares its marginals.

    With A the tensor of values, I the prefix and j the last outcome,
    sum A h = sum A (low_I l_j + low_I w_j x_j + width_I l_j xi_I + width_I w_j t_Ij).
    head_BH gets (reference, span, magnitude, constant term, scale): costs are divided by scale.
    """
    value, sign, rows_B = asked
    low_X, width_X, _, _, _, low_P, width_P = box
    last_x, last_P, col_x, col_xi, col_t, d, prefix = places
    for b in range(rows_B.shape[0]):
        reference, span, size = _tensor(rows_B[b], value, sign, tensors, tensor)
        cost = cost_BC[b]
        cost[:] = 0.0
        constant, scale = 0.0, 0.0
        for I in range(prefix):
            u, du = low_P[last_P + I], width_P[last_P + I]
            inner = 0.0
            for j in range(d):
                a = tensor[I * d + j]
                inner += a * low_X[last_x + j]
                cost[col_x + j] += a * u * width_X[last_x + j]
                cost[col_t + I * d + j] = a * du * width_X[last_x + j]
                scale = max(scale, abs(cost[col_t + I * d + j]))
            constant += u * inner
            cost[col_xi + I] += du * inner
            scale = max(scale, abs(cost[col_xi + I]))
        for j in range(d):
            scale = max(scale, abs(cost[col_x + j]))
        if scale > 0.0:
            for c in range(cost.shape[0]):
                cost[c] /= scale
        head_BH[b, 0], head_BH[b, 1], head_BH[b, 2] = reference, span, size
        head_BH[b, 3], head_BH[b, 4] = constant, scale


@kernel
def safe_bounds(asked, head_BH, cost_BC, dual_BR, programme, charged, reduced, bound):
    """Fill bound[rows] with a rigorous bound from approximate duals [Neumaier2004].

    For every y in the dual cone, c.z >= y.rhs + sum_j min(0, c_j - (A^T y)_j) because all z lie
    in [0, 1]; the float error of this sum, of the costs and of the entries is subtracted.
    `reduced` (C,) is scratch memory.
    """
    _, sign, rows_B = asked
    slack, terms, reach = charged
    ptr, indices, data, rhs_R, equalities, error_R = programme
    rows, columns = rhs_R.shape[0], cost_BC.shape[1]
    for b in range(rows_B.shape[0]):
        scale = head_BH[b, 4]
        span = head_BH[b, 1]
        total, weight, noise, active = 0.0, 0.0, 0.0, 0
        for c in range(columns):
            reduced[c] = cost_BC[b, c]
        for r in range(rows):
            y = dual_BR[b, r]
            if r >= equalities:
                y = min(y, 0.0)
            if y == 0.0:
                continue
            active += 1
            total += y * rhs_R[r]
            row = abs(rhs_R[r])
            for e in range(ptr[r], ptr[r + 1]):
                reduced[indices[e]] -= y * data[e]
                row += abs(data[e])
            weight += abs(y) * row
            noise += abs(y) * row * error_R[r]
        for c in range(columns):
            total += min(reduced[c], 0.0)
        size = reach * span + weight * scale
        gap = 2.0 * UNIT * (active + columns + 8) * size + noise * scale + slack * span
        gap += margin(terms, span, head_BH[b, 2])
        bound[rows_B[b]] = head_BH[b, 0] + sign * (head_BH[b, 3] + scale * total - gap)


@kernel
def joint(primal_BC, tensors, box, places, witness):
    """Fill, for every row of a batch, the joint distribution that an LP solution stands for."""
    low_X, width_X, _, _, _, low_P, width_P = box
    last_x, last_P, col_x, col_xi, col_t, d, _ = places
    _, _, table, weight = tensors
    starts_B, out = witness
    for b in range(primal_BC.shape[0]):
        z = primal_BC[b]
        total = 0.0
        for k in range(table.shape[0]):
            I, j = table[k] // d, table[k] % d
            u, du = low_P[last_P + I], width_P[last_P + I]
            v, dv = low_X[last_x + j], width_X[last_x + j]
            h = u * v + u * dv * z[col_x + j] + du * v * z[col_xi + I]
            h = max(0.0, (h + du * dv * z[col_t + table[k]]) * weight[k])
            out[starts_B[b] + k] = h
            total += h
        for k in range(table.shape[0]):
            out[starts_B[b] + k] /= total


@kernel
def greedy(asked, tensors, box, charged, work, witness, bound):
    """Solve rows with at most one uncertain marginal, a box; fill bound[rows], wanted witnesses.

    work : tensor (d,), order (d,), p (d,)
    """
    value, sign, rows_B = asked
    _, _, table, weight = tensors
    slack, terms, _ = charged
    tensor, order, p = work
    starts_B, out = witness
    d = tensor.shape[0]
    for b in range(rows_B.shape[0]):
        r = rows_B[b]
        reference, span, size = _tensor(r, value, sign, tensors, tensor)
        reset(order, d)
        sort(tensor, 0, d, order)
        box_member(box, order, p, 0)
        gap = margin(terms, span, size) + slack * span
        bound[r] = reference + sign * (dot(p, 0, tensor, 0, d) - gap)
        if out.shape[0] > 0:
            mass = 0.0
            for k in range(table.shape[0]):
                out[starts_B[b] + k] = p[table[k]] * weight[k]
                mass += p[table[k]] * weight[k]
            for k in range(table.shape[0]):
                out[starts_B[b] + k] /= mass


@kernel
def known_weights(ids_M, known_M, outcome_ptr, lower, weight):
    """Fill weight[k] with the product of the known marginals' entries of joint outcome k."""
    stride = weight.shape[0]
    weight[:] = 1.0
    for m in range(ids_M.shape[0]):
        start = outcome_ptr[ids_M[m]]
        d = outcome_ptr[ids_M[m] + 1] - start
        stride //= d
        if known_M[m]:
            for k in range(weight.shape[0]):
                weight[k] *= lower[start + (k // stride) % d]
