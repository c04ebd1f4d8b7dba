"""The independent checker; `solution.verify` is where to begin.

It reads the arrays of a file by itself and shares nothing with the solver. Every field is looked at
before it is used (`fields`, `reading`), every set is settled once to what its numbers stand for
(`sets`), and what is claimed is put into words from these alone (`statement`). docs/soundness.md
has why a claim holds if the checks of its objective (`checker`) pass. T, the Bellman operator, has
the rows of the policy only on the side of its guarantee, and all rows on the other side. What
players can force follows from which successors are possible (`forcing`). Models by their factors
go the same course, by steps that contract factor by factor (`lattice`); a learning run is its
solution, and the way to it (`learning`).

All of this asks for nature's best mean in a row, over the product of the row's sets, each file
resting on those below it:

game.py      rows in batches; what they are worth, and in which a bound gains
products.py  the least mean over a product, from both sides: set by set, else by vertices
means.py     the least mean over one set: from below by dual solutions, from above by members
margins.py   what rounding can do
sets.py      sets as they are exactly, and in fractions: which outcomes can be empty

Boxes and L1 balls are one thing: {p : p(A) >= low(A) for all A}. The least mean takes the layers of
the values, each with `low` of the outcomes that reach it, in floats (`means`) as in fractions
(`sets`). Infinite values are so in fractions, too: these have parts, of which the first decides.
What floats cannot hold proves nothing in floats. What is not proven is not valid.
"""
