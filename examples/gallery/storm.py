"""What does Storm say about your model, and what does the export lose?

A file of single transitions has one interval for each, so intervals of factors are multiplied.
Storm's value of the file is sound, but looser than the exact one.
"""

import matplotlib.pyplot as plt
import stormpy

import rfmdp as rf

aircraft = rf.domain("aircraft", instance="learning", maxX=10, maxY=8, height=4)
question = stormpy.parse_property('Pmax=? [ !"collision" U "goal" ]')
worst = stormpy.UncertaintyResolutionMode.ROBUST
radii = [0.01, 0.02, 0.03, 0.04]
values = {"exact": [], "Storm": []}
for radius in radii:
    model = aircraft.with_radius(radius)
    values["exact"].append(rf.solve(model, rf.domain_spec("aircraft")).at_initial().lower)
    flat = rf.to_stormpy(model)
    result = stormpy.model_checking(flat, question, uncertainty_resolution_mode=worst)
    values["Storm"].append(result.get_value(flat.initial_states[0]))

figure, axes = plt.subplots()
for name, line in values.items():
    axes.plot(radii, line, "o-", label=name)
axes.set(xlabel="radius", ylabel="probability to pass, at least")
axes.legend()
figure.savefig("storm.png")
exact, storm = (line[-1] for line in values.values())
print(f"At radius 0.04 the exact value is {exact:.4f}, Storm's of the export {storm:.4f}.")
