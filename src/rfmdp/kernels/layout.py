"""How uncertainty sets and rows are laid out for kernels, and the names of their places.

Arrays that travel together travel as plain tuples, everywhere in the same order (neither named
tuples nor classes appear in kernel signatures: numba's cache stores types by reference, and a
cache written before a renaming could not be read any more). A constant below is the place of an
entry: asked[SIGN]. Who needs most of a tuple unpacks it in the first line.

sets     head, data, corners, minimiser: the uncertainty sets, made by `inner.packing.pack_sets`
rows     successor_ptr (R + 1,), successors (K,) int32, marginal_ptr (R + 1,), marginals int32,
         kind (R,) int32, gather_ptr (classes + 1,), gather int32
work     scratch memory of one thread, see `inner.packing.scratch`
asked    wanted (N,) rows, value (S,), sign (+1 nature minimises, -1 it maximises), first, last:
         the kernel does wanted[first : last], a part of the rows
answers  where (N,) or empty if no answers are wanted, answer: the marginals of wanted[i], in the
         rows' order of axes, are written to answer[where[i]:]
bounds   below (R,), above (R,): filled for the wanted rows

The axes of every tensor are in a solver's order. A row's `kind` is its class of shapes: rows of one
class share a table in `gather` that lists where the entries of the reordered tensor stand in the
stored one; an empty table means "as stored".

Of the sets:

head       (M, 5) int64: kind, size d, place in `data`, begin and end in `corners`
data       per marginal: free mass 1 - sum(lower), radius, exponent; lower, slack, nominal (d
           each)
corners    vertices, d numbers each: of every polytope, and of boxes where a solver branches on
           them
minimiser  the address of `curved.curved_minimum`, or 0 if no set needs it
"""

HEAD, DATA = 0, 1  # in `sets`
SINGLETON, BOX, L1, LP, POLYTOPE = 0, 1, 2, 3, 4  # as sets.marginals.Kind
KIND, SIZE, PLACE, CORNERS, CORNERS_END = 0, 1, 2, 3, 4  # columns of head
FREE, RADIUS, EXPONENT, LOWER = 0, 1, 2, 3  # offsets in data; slack and nominal follow lower

MARGINALS, ROW_KIND = 3, 4  # in `rows`
SIGN, FIRST, LAST = 2, 3, 4  # in `asked`
WHERE = 0  # in `answers`
# in `work`
LEVELS, SLICES, FOLDS, POINT, BEST, MEMBER = 0, 1, 2, 3, 4, 5  # floats
ORDER, CURSOR, CLASSES, AXES = 6, 7, 8, 9  # integers
CURVED = 10  # floats
