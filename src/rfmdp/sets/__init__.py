"""Marginal uncertainty sets: data checked once, and what other layers may ask of them.

families    what every set is, exactly
marginals   many sets packed into arrays for the kernels; sets around nominal distributions
questions   what other layers ask of one set: bounds, membership, the least expectation
supports, vertices
            what they ask of many
exact       sums of floats, decided exactly
rational    sets and products in fractions
boxes       boxes in bulk: what must hold of them, their members, their attainable bounds
box_vertices, halfspaces, lp_ball
            the geometry behind them
"""
