"""What does a guarantee lose as uncertainty grows, and what does a looser method give away?

Expected steps until a chain arrives, at most, by three methods: the exact one, McCormick's
relaxation and multiplied intervals.
"""

import matplotlib.pyplot as plt

import rfmdp as rf

chain, spec = rf.domain("chain", M=4), rf.domain_spec("chain")
methods = [rf.Exact(), rf.McCormick(), rf.IntervalArithmetic()]
radii = [0.01, 0.02, 0.03, 0.04, 0.05]
costs = [
    [rf.solve(chain.with_radius(radius), spec, inner=method).at_initial().upper for radius in radii]
    for method in methods
]

figure, axes = plt.subplots(layout="constrained")
for method, line, style in zip(methods, costs, ("o-", "x--", "s-"), strict=True):
    axes.plot(radii, line, style, label=method.name)
axes.set(xlabel="radius", ylabel="expected steps, at most")
axes.legend()
figure.savefig("radii.png")
loss = 100.0 * (costs[-1][-1] / costs[0][-1] - 1.0)
print(f"At radius 0.05 multiplied intervals promise {loss:.1f} % more steps than necessary.")
