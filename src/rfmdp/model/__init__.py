"""What an rf-MDP is, and the ways to make one.

`arrays` is the finished model, `build` makes one from a `description` (`Action`, `Move`),
`FactoredMDP.from_rows` from numbers, `validate` lists what is wrong with one. Underneath, explorers
use packed states (`packing`), and `frontier` puts in order what they visited. `derived`
makes a model of another one.
"""
