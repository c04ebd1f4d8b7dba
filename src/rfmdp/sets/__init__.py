"""Marginal uncertainty sets: data checked once, and what other layers may ask of them.

families    what every set is, exactly, and the attainable bounds of its entries
boxes       boxes in bulk: exact sums, what must hold of them, their attainable bounds
marginals   many sets packed into arrays for the kernels; sets around nominal distributions
supports, vertices
            what other layers ask of many
"""
