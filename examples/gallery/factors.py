"""Two parts move independently. How many samples does it save to know that?

Learning with one unknown distribution per factor (`anytime`) and with one per state and action
(`paper-flat`): bounds of the expected steps of a chain, by three seeds each.
"""

import matplotlib.pyplot as plt

import rfmdp as rf
from rfmdp.report.plots import learning_curve

chain, spec = rf.domain("chain", M=3), rf.domain_spec("chain")
stop = rf.StopWhen(trajectories=1_000)
runs = {
    name: [rf.learn(chain, spec, name, stop=stop, length=30, seed=seed) for seed in (1, 2, 3)]
    for name in ("anytime", "paper-flat")
}
best = rf.solve(chain, spec).at_initial()

figure, axes = plt.subplots()
learning_curve(runs, axes, truth=best.upper)
figure.savefig("factors.png")
factored, flat = (same[0].guaranteed for same in runs.values())
print(f"At most {factored} steps with factors, {flat} without; the optimum is {best}.")
