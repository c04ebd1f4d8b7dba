"""You have a log of two machines that were run and serviced. What output can you promise?

`[0,1]` says that an outcome is possible, and that nobody knows how likely. The promise holds with
probability 0.9999. (This log is simulated; yours comes from the shop floor.)
"""

import random

import matplotlib.pyplot as plt
from pandas import DataFrame

import rfmdp as rf

model = rf.parse_prism("""mdp
module first
  a : [0..2]; // 0 new, 1 worn, 2 broken
  [run] a<2 -> [0,1] : (a'=a+1) + [0,1] : true;
  [run] a=2 -> true;
  [service_a] true -> [0,1] : (a'=0) + [0,1] : true; [service_b] true -> true;
endmodule
module second = first [a=b, service_a=service_b, service_b=service_a] endmodule
rewards [run] a<2 : 1; [run] b<2 : 1; endrewards""")
chance, a, b, log = random.Random(1), 0, 0, []
for _ in range(30_000):
    before, action = (a, b), chance.choice(["run", "service_a", "service_b"])
    if action == "run":
        a, b = (min(m + (chance.random() < 0.2), 2) for m in before)
    elif chance.random() < 0.8:
        a, b = (0, b) if action == "service_a" else (a, 0)
    log.append((*before, action, a, b))
table = DataFrame(log, columns=["a", "b", "action", "next_a", "next_b"])
sizes, promises = [300, 1_000, 3_000, 10_000, 30_000], []
for size in sizes:
    data = rf.read_log(model, table[:size], selection="none")
    promises.append(rf.learn(data, "Rmaxmin=? [ C<=30 ]").guaranteed)
plt.semilogx(sizes, [float(promise) for promise in promises], "o-")
plt.gca().set(xlabel="lines of the log", ylabel="output of 30 days, at least")
plt.savefig("maintenance.png")
print(f"30,000 lines guarantee an output of {promises[-1]} in 30 days.")
