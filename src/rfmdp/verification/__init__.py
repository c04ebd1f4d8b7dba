"""The independent checker; `solution.verify` is where to begin.

To believe a verdict about a solution, read in this order, each file resting on those below it only:

solution.py   what a claim means for every objective, and what has to hold for it
game.py       what rows are worth, and what players can force
gains.py      in which rows a bound gains
rows.py       a row's least mean over the product of its sets, from both sides
products.py   the same by vertices of the sets
linear.py     the least mean over one set, in floats rounded outwards: all margins are here
exact.py      the same in fractions, and which outcomes can be empty
reading.py    what is in a file, looked at before it is used

A learning run is its solution, which the files above prove, and the way to it:

learning.py    the chain from counts to the guarantee, the ledger, what must be stated
confidence.py  sets from counts
supports.py    outcomes that were never seen
rewards.py     what rows pay, where that is learned or hangs on the successor
rollouts.py    certificates by trajectories of a frozen policy
"""
