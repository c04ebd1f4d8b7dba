"""Another aircraft comes closer. Why does the policy decide as it does?

The bars show what each action is worth at least, and the probabilities that nature chooses against
the one that is taken.
"""

import matplotlib.pyplot as plt

import rfmdp as rf

model = rf.domain("aircraft").with_radius(0.025)
solution = rf.solve(model, 'Pmaxmin=? [ !"collision" U "goal" ]')
reasons = rf.explain(solution, model.find(x=5, y=8, ax=15, ay=6))
best = next(choice for choice in reasons.choices if choice.chosen)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
names = [choice.action for choice in reasons.choices]
colours = ["tab:orange" if choice.chosen else "tab:blue" for choice in reasons.choices]
left.barh(names, [choice.value.lower for choice in reasons.choices], color=colours)
left.set(title="What an action is worth", xlabel="probability to pass, at least")
outcomes = reasons.nature[0].outcomes
places = range(len(outcomes))
right.barh([k + 0.2 for k in places], [o.nominal for o in outcomes], 0.4, label="nominal")
right.barh([k - 0.2 for k in places], [o.nature for o in outcomes], 0.4, label="nature's choice")
right.set(title=f"Nature against '{best.action}'", xlabel="probability")
right.set_yticks(places, [o.effect for o in outcomes])
right.legend()
figure.savefig("explain.png")
print(reasons)
print(f"The policy takes '{best.action}', which is worth {best.value}.")
