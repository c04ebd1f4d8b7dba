"""The inner problem: nature's choice in one row, by several methods with one contract.

protocol    the contract (proven sides of rows, and nature's answers), and the methods by name
packing     sets and rows laid out for kernels
exact       both sides: `Exact`, and all products of vertices
relaxations one side, by a larger set of nature: sequential, interval arithmetic, radius sum
mccormick   one side, by a linear programme per row
"""
