"""The inner problem: nature's choice in one row, by several methods with one contract.

protocol    the contract: proven sides of rows, and nature's answers
methods     the methods by name
packing     sets and rows laid out for kernels
exact, vertices, interval, mccormick, sequential, radius_sum
            a method each
"""
