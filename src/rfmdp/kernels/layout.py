"""How uncertainty sets are laid out for kernels: sets = (head, data, corners, minimiser).

head       (M, 5) int64: kind, size d, place in `data`, begin and end in `corners`
data       per marginal: free mass 1 - sum(lower), radius, exponent; lower, slack, nominal (d
           each); of subset sets then the lower probabilities of all 2**d bitmasks
corners    vertices, d numbers each: of every polytope, and of boxes where a solver branches on
           them
minimiser  the address of `curved.curved_minimum`, or 0 if no set needs it

Made by `inner.packing.pack_sets`.
"""

from rfmdp.kernels.decorator import inline_kernel

SINGLETON, BOX, L1, LP, POLYTOPE, KL, SUBSETS = 0, 1, 2, 3, 4, 5, 6  # as sets.marginals.Kind
KIND, SIZE, PLACE, CORNERS, CORNERS_END = 0, 1, 2, 3, 4  # columns of head
FREE, RADIUS, EXPONENT, LOWER = 0, 1, 2, 3  # offsets in data; slack and nominal follow lower


@inline_kernel
def box_of(head, data, m):
    """Return marginal m as a box (see `kernels.primitives`)."""
    place = head[m, PLACE]
    return data, place + LOWER, head[m, SIZE], data[place + FREE]
