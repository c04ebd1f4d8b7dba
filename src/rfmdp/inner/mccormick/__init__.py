"""McCormick relaxation of the inner problem: one linear programme per row.

solver      the inner solver: rows to programmes to proven bounds
groups      rows by what they share: their marginals, and their shape
programme   the linear programme of one row shape
highs       programmes on HiGHS
gurobi      programmes on Gurobi
"""
