"""Kernels that find out which outcomes of a row can be told apart, and that multiply rows out.

They take the arrays of `FactoredMDP.structure` as `model`.
"""

from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.primitives import outer_product

PLAIN, MERGED, JOINT = 0, 1, 2  # how the outcomes of a row are identified


@inline_kernel
def _same_slice(successors, start, size, d, stride, a, b):
    """Return whether outcomes a and b of an axis lead to the same successors everywhere."""
    for block in range(0, size, d * stride):
        for k in range(stride):
            at = start + block + k
            if successors[at + a * stride] != successors[at + b * stride]:
                return False
    return True


@inline_kernel
def _representatives_differ(successors, start, size, sizes, labels, n, stamp, mark):
    """Return whether the successors of all combinations of first-of-class outcomes are distinct."""
    for k in range(size):
        rest, first = k, True
        at = labels.shape[0]
        for i in range(n - 1, -1, -1):
            d = sizes[i]
            o = rest % d
            rest //= d
            at -= d
            for e in range(o):
                if labels[at + e] == labels[at + o]:
                    first = False
                    break
            if not first:
                break
        if first:
            s = successors[start + k]
            if stamp[s] == mark:
                return False
            stamp[s] = mark
    return True


@kernel
def merge_outcomes(model, slot_ptr, work, label, status):
    """Fill label (per slot and outcome, the class it belongs to) and status (R,).

    Outcomes of a marginal that give the same successors whatever the other marginals do are one
    class; classes are numbered by first appearance. A row is JOINT if its classes still cannot be
    told from the successor.

    work : stamp (S,) of -1, sizes (n,) of the most marginals of a row
    """
    _, marginal_ptr, row_marginals, outcome_ptr, successor_ptr, successors = model
    stamp, sizes = work
    for r in range(marginal_ptr.shape[0] - 1):
        first, last = marginal_ptr[r], marginal_ptr[r + 1]
        start, size = successor_ptr[r], successor_ptr[r + 1] - successor_ptr[r]
        status[r] = PLAIN
        stride = size
        for slot in range(first, last):
            j = row_marginals[slot]
            d = outcome_ptr[j + 1] - outcome_ptr[j]
            sizes[slot - first] = d
            stride //= d
            at, classes = slot_ptr[slot], 0
            for o in range(d):
                label[at + o] = classes
                for e in range(o):
                    if _same_slice(successors, start, size, d, stride, o, e):
                        label[at + o] = label[at + e]
                        status[r] = MERGED
                        break
                if label[at + o] == classes:
                    classes += 1
        if last > first:
            part = label[slot_ptr[first] : slot_ptr[last]]
            if not _representatives_differ(
                successors, start, size, sizes, part, last - first, stamp, r
            ):
                status[r] = JOINT


@kernel
def joint_rows(rows, model, probability, work, size_N, targets, joint):
    """Multiply the listed rows out: distinct successors in order of appearance, and their mass.

    Fills size_N, and targets and joint one row after the other; returns the entries used.

    work : place (S,) of -1, product (K,) of the largest row
    """
    _, marginal_ptr, row_marginals, outcome_ptr, successor_ptr, successors = model
    place, product = work
    used = 0
    for i in range(rows.shape[0]):
        r = rows[i]
        start, begin = successor_ptr[r], used
        first, last = marginal_ptr[r], marginal_ptr[r + 1]
        size = outer_product(outcome_ptr, probability, row_marginals, first, last, product, 0)
        for k in range(size):
            s = successors[start + k]
            if place[s] < begin:
                place[s] = used
                targets[used] = s
                joint[used] = 0.0
                used += 1
            joint[place[s]] += product[k]
        size_N[i] = used - begin
        for e in range(begin, used):
            place[targets[e]] = -1
    return used


@kernel
def reduced_tensors(rows, model, slots, new_ptr, pick, out):
    """Fill out[new_ptr[r] : ...] with the successors of every combination of classes.

    slots : slot_ptr, label, see `merge_outcomes`; classes of every slot
    pick : (n,) of the most marginals of a row, scratch memory
    """
    _, marginal_ptr, row_marginals, outcome_ptr, successor_ptr, successors = model
    slot_ptr, label, classes = slots
    for r in rows:
        first, last = marginal_ptr[r], marginal_ptr[r + 1]
        for k in range(new_ptr[r + 1] - new_ptr[r]):
            rest = k
            for slot in range(last - 1, first - 1, -1):
                wanted = rest % classes[slot]
                rest //= classes[slot]
                o = 0
                while label[slot_ptr[slot] + o] != wanted:
                    o += 1
                pick[slot - first] = o
            at = 0
            for slot in range(first, last):
                j = row_marginals[slot]
                at = at * (outcome_ptr[j + 1] - outcome_ptr[j]) + pick[slot - first]
            out[new_ptr[r] + k] = successors[successor_ptr[r] + at]
