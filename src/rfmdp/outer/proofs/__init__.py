"""Bounds around a value that policy iteration has found, each proven.

certify     looks for inductive bounds and checks them; its table says what proves what
backups     the operator on open states from its proven side, as the checks take it; and groups of
            states in which somebody could stay for ever, where staying proves nothing
faces       nature's vertices in rows where it can empty outcomes, for both
approach    bounds from the strict side, where a value may be a wrong fixed point
"""
