"""A taxi drives in the rain. How likely does it bring its passenger home within 30 steps?

Gymnasium's Taxi slips off its way with a probability that nobody tells. It is learned from 300
episodes; the guarantee holds with probability 0.9999. The map is about one passenger.
"""

import gymnasium
import matplotlib.pyplot as plt

import rfmdp as rf

env = gymnasium.make("Taxi-v4", is_rainy=True)
structure = rf.gym_model(env)  # `learn` does not look at its probabilities
run = rf.learn(
    rf.GymSource(env, structure),
    'Pmaxmin=? [ F<=30 "terminal" ]',
    stop=rf.StopWhen(trajectories=300),
    length=60,
    seed=1,
)
table = run.solution.to_frame().query("passenger == 1 and destination == 2")
values = table.pivot(index="row", columns="column", values="lower")
arrows = {"south": "↓", "north": "↑", "east": "→", "west": "←", "pickup": "pick up"}

figure, axes = plt.subplots()
image = axes.imshow(values, cmap="summer")
for cell in table.itertuples():
    axes.text(cell.column, cell.row, arrows[cell.action], ha="center", va="center")
axes.set(title="The passenger waits in the north-east", xlabel="column", ylabel="row")
figure.colorbar(image, label="probability, at least")
figure.savefig("taxi.png")
print(f"From every start the ride ends in time with probability {run.guaranteed} at least.")
