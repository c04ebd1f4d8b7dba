"""Marginal uncertainty sets: data checked once, and what other layers may ask of them.

families    what every set is, exactly
marginals   many sets packed into arrays for the kernels; sets around nominal distributions
bounds      attainable bounds of the entries of one set
supports, vertices
            what other layers ask of many
exact       sums of floats, decided exactly
rational    sets and products in fractions
boxes       boxes in bulk: what must hold of them, their members, their attainable bounds
box_vertices, halfspaces
            the geometry behind them
"""
