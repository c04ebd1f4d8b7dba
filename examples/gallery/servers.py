"""Jobs pass two servers. When shall the first one run fast, which costs more?

A job that finds a full queue is lost, and a full second queue blocks the first server. Arrivals
and services are independent events of a time slot, each with a probability known up to 0.05.
"""

import matplotlib.pyplot as plt

import rfmdp as rf

events = rf.parse_prism("""mdp
formula out = done2=1 & q2>0 ? 1 : 0;
formula over = done1=1 & q1>0 & q2-out<6 ? 1 : 0;
module queues
  q1 : [0..6]; q2 : [0..6];
  [slow] true -> (q1'=min(q1-over+came,6)) & (q2'=q2-out+over);
  [fast] true -> (q1'=min(q1-over+came,6)) & (q2'=q2-out+over);
endmodule
module jobs came : [0..1];
  [slow] true -> 0.4 : (came'=1) + 0.6 : (came'=0);
  [fast] true -> 0.4 : (came'=1) + 0.6 : (came'=0); endmodule
module first done1 : [0..1];
  [slow] true -> 0.45 : (done1'=1) + 0.55 : (done1'=0);
  [fast] true -> 0.7 : (done1'=1) + 0.3 : (done1'=0); endmodule
module second done2 : [0..1];
  [slow] true -> 0.6 : (done2'=1) + 0.4 : (done2'=0);
  [fast] true -> 0.6 : (done2'=1) + 0.4 : (done2'=0); endmodule
rewards [fast] true : 1; true : (q1+q2)/2; came=1 & over=0 & q1=6 : 20; endrewards""")
solution = rf.solve(events.with_radius(0.05), "Rminmax=? [ C<=50 ]")

rules = solution.to_frame().query("came == 0 and done1 == 0 and done2 == 0")
fast = rules.assign(fast=rules.action == "fast").pivot(index="q2", columns="q1", values="fast")
plt.pcolormesh(fast.columns, fast.index, fast, cmap="Blues", edgecolors="white", vmax=2)
labels = {"xlabel": "jobs at the first server", "ylabel": "jobs at the second server"}
plt.gca().set(title="Dark: run fast", **labels)
plt.savefig("servers.png")
print(f"Fifty slots cost {solution.at_initial()} in the worst case.")
