"""Two parts move independently. How many samples does it save to know that?

Learning with one unknown distribution per factor (`anytime`) and with one per state and action
(`paper-flat`): bounds of the expected steps of a chain, by three seeds each.
"""

import matplotlib.pyplot as plt

import rfmdp as rf

chain, spec = rf.domain("chain", M=3), rf.domain_spec("chain")
stop = rf.StopWhen(trajectories=1_000)
runs = {
    name: [rf.learn(chain, spec, name, stop=stop, length=30, seed=seed) for seed in (1, 2, 3)]
    for name in ("anytime", "paper-flat")
}
best = rf.solve(chain, spec).at_initial()

figure, axes = plt.subplots()
for (name, same), colour in zip(runs.items(), ("C0", "C1"), strict=True):
    for run in same:
        axes.loglog(run.column("trajectories"), run.column("guarantee"), colour, label=name)
        name = "_"  # one name per method
axes.axhline(best.upper, color="0.5", label="optimum")
axes.set(xlabel="trajectories", ylabel="steps at most")
axes.legend()
figure.savefig("factors.png")
factored, flat = (same[0].guaranteed for same in runs.values())
print(f"At most {factored} steps with factors, {flat} without; the optimum is {best}.")
