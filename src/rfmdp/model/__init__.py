"""What an rf-MDP is, and the ways to make one.

`arrays` is the finished model, `build` makes one from a Python description (`Action`, `Move`),
`FactoredMDP.from_rows` from numbers, `validate` lists what is wrong with one. Underneath,
`expander` explores packed states (`packing`), and `frontier` puts in order what was found.
`flatten` and `unroll` make a model of another one.
"""
