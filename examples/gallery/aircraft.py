"""Two aircraft fly towards each other. Where can a safe passage still be guaranteed?

Altitudes change by chance, with probabilities that are known up to 0.025. The map shows the
guarantee over both altitudes when the aircraft are twelve columns apart.
"""

import matplotlib.pyplot as plt

import rfmdp as rf

model = rf.domain("aircraft").with_radius(0.025)
solution = rf.solve(model, 'Pmaxmin=? [ !"collision" U "goal" ]')

table = solution.to_frame()
near = table[(table.x == 4) & (table.ax == 16)]
values = near.pivot(index="ay", columns="y", values="lower")
figure, axes = plt.subplots(layout="constrained")
image = axes.pcolormesh(values.columns, values.index, values)
axes.set(xlabel="altitude of the own aircraft", ylabel="altitude of the other one", aspect="equal")
figure.colorbar(image, label="probability to pass, at least")
figure.savefig("aircraft.png")
print(f"From the start they pass with a probability in {solution.at_initial()}.")
