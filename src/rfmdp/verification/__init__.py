"""The independent checker; `solution.verify` is where to begin.

It reads the arrays of a file by itself and shares nothing with the solver. What is claimed, why
that holds if the checks pass, and where they are:

- *The file says what it seems to.* Every field is looked at before it is used (`fields`,
  `reading`), and every set is settled once to what its numbers stand for (`sets`). What it
  claims is put into words from these fields alone (`statement`).
- *b bounds the value of an unbounded objective.* T is the Bellman operator, as the side of b asks.
  If b holds against T(b) in every state, then applying T again and again only improves on b. On
  the loose side, and with a discount, that ends in the value. On the strict side it may end in
  another fixed point, but not if from every state, whatever the opposing do, b gains or the game
  ends with positive probability in some number of steps (`checker`, `game`, `forcing`).
- *The policy attains the guarantee.* On that side T has the rows of the policy only; on the other
  side it has all rows, so nobody does better.
- *A bound is infinite.* Players force that, by which successors are possible alone (`forcing`).
- *Bounds over finitely many steps.* All steps are made again, rounded outwards (`checker`).
- *Certified.* Both sides are there, and as close as the precision asks (`solution`).
- *Models by their factors* go the same course, by steps that contract factor by factor (`lattice`).

All of this asks for nature's best mean in a row, over the product of the row's sets, each file
resting on those below it:

game.py      rows in batches; what they are worth, and in which a bound gains
products.py  the least mean over a product, from both sides: set by set, else by vertices
means.py     the least mean over one set: from below by dual solutions, from above by members
margins.py   what rounding can do
sets.py      sets as they are exactly, and in fractions: which outcomes can be empty

Boxes and L1 balls are one thing: {p : p(A) >= low(A) for all A}. The least mean takes the layers of
the values, each with `low` of the outcomes that reach it, in floats (`means`) as in fractions
(`sets`). Values that are infinite are so in fractions, too: these have parts, of which the first
decides. What floats cannot hold proves nothing in floats.

A learning run is its solution, which is proven as above, and the way to it (`learning`): the error
probabilities add up to no more than stated; the sets have all that counts do not rule out; rows
pay no more than is proven; and every assumption is stated.

What is not proven is not valid.
"""
