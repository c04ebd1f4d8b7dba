"""The independent checker; `solution.verify` is where to begin.

It reads the arrays of a file by itself and shares nothing with the solver. What is claimed, why that
holds if the checks pass, and where they are:

- *The file says what it seems to.* Every field is looked at before it is used (`fields`, `reading`),
  and every set is settled to what its numbers stand for, once (`sets`).
- *b bounds the value of an unbounded objective.* T is the Bellman operator, from the side of b. If
  b holds against T(b) in every state, then T applied for ever only improves on b. On the loose side
  that ends in the value, as it does with a discount. On the strict side it may end in another fixed
  point; not if from every state, whatever the opposing do, b gains with positive probability in some
  number of steps, or the game ends: what would be left of the difference would have to grow for ever
  (`solution`, `gains`, `forcing`).
- *The policy attains the guarantee.* On the side of the guarantee T has the rows of the policy only.
  So the same check proves that nobody does better against it; on the other side T has all rows.
- *A bound is infinite.* Players force that, by which successors are possible alone (`forcing`).
- *Bounds over finitely many steps.* All steps are made again, rounded outwards (`horizon`).
- *Certified.* Both sides are there, and as close as the precision asks (`solution`).

All of this asks what nature's best mean in a row is, over the product of the row's sets:

game.py, gains.py  what rows are worth, and in which a bound gains: floats, else fractions
rows.py            rows in batches of one shape; which successors they can have
batches.py         bounds from both sides by choosing set after set
products.py        the same by vertices of the sets, where these leave a doubt
means.py           one set: means from below by dual solutions, from above by members
curved.py          the same of balls and tables of subsets
margins.py         what rounding can do
exact.py           sets and products in fractions, and which outcomes can be empty

A learning run is its solution, which is proven as above, and the way to it (`learning`): the error
probabilities add up to no more than stated; the sets have all that counts do not rule out
(`confidence`), outcomes that were never seen included (`supports`); rows pay no more than is proven
(`rewards`); frozen policies won or earned enough (`rollouts`); and every assumption is stated.

`verdict` is what is said in the end. What is not proven is not valid.
"""
