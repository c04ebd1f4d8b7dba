"""A robot shall visit two rooms for ever. How likely does it never fall down the stairs?

The floor is slippery: a step goes astray with a probability that is known up to 0.05. The question
is a formula of linear temporal logic, so the policy has a memory: which room comes next.
"""

import matplotlib.pyplot as plt

import rfmdp as rf

model = rf.parse_prism("""mdp
module robot
  x : [0..6]; y : [0..4];
  [east]  true -> 0.9 : (x'=min(x+1,6)) + 0.1 : (y'=max(y-1,0));
  [west]  true -> 0.9 : (x'=max(x-1,0)) + 0.1 : (y'=max(y-1,0));
  [north] true -> 0.9 : (y'=min(y+1,4)) + 0.1 : (x'=min(x+1,6));
  [south] true -> 0.9 : (y'=max(y-1,0)) + 0.1 : (x'=min(x+1,6));
endmodule
label "A" = x=0 & y=4;
label "B" = x=6 & y=4;
label "stairs" = y=1 & x>0 & x!=3;""").with_radius(0.05)
solution = rf.solve(model, 'Pmaxmin=? [ (G F "A") & (G F "B") & (G !"stairs") ]')

arrows = {"east": "→", "west": "←", "north": "↑", "south": "↓"}
table = solution.to_frame()
figure, maps = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for axes, room, x in zip(maps, "AB", (0, 6), strict=True):
    memory = table[(table.x == x) & (table.y == 4)].memory.iloc[0]
    cells = table[table.memory == memory]
    axes.scatter(cells.x, cells.y, c=cells.lower, s=700, marker="s", cmap="summer", vmin=0.5)
    for cell in cells.itertuples():
        axes.text(cell.x, cell.y, arrows[cell.action], ha="center", va="center")
    axes.set(title=f"after room {room}", xlim=(-0.6, 6.6), ylim=(-0.6, 4.6))
figure.savefig("patrol.png")
print(f"The patrol never falls with a probability in {solution.at_initial()}.")
