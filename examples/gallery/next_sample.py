"""You may measure a little more. Which probability shall you measure first?

After 500 trajectories, a bar says how much the guarantee would gain if one of the unknown
distributions were known.
"""

import matplotlib.pyplot as plt

import rfmdp as rf

machines = rf.parse_prism("""mdp
module first
  a : [0..2]; // 0 new, 1 worn, 2 broken
  [run] a<2 -> 0.2 : (a'=a+1) + 0.8 : true;
  [run] a=2 -> true;
  [service_a] a>0 -> 0.9 : (a'=0) + 0.1 : true;
  [service_b] true -> true;
endmodule
module second
  b : [0..2];
  [run] b<2 -> 0.1 : (b'=b+1) + 0.9 : true;
  [run] b=2 -> true;
  [service_b] b>0 -> 0.6 : (b'=0) + 0.4 : true;
  [service_a] true -> true;
endmodule
rewards "output" [run] a<2 : 1; [run] b<2 : 1; endrewards""")
goal = 'R{"output"}maxmin=? [ C<=30 ]'
run = rf.learn(machines, goal, stop=rf.StopWhen(trajectories=500), seed=1)
gains = rf.collect_next(run)

figure, axes = plt.subplots(layout="constrained")
axes.barh([one.identifier.split(" line")[0] for one in gains], [one.gain for one in gains])
axes.invert_yaxis()
axes.set(title=f"Guaranteed so far: {run.guaranteed}", xlabel="gain of the guarantee")
figure.savefig("next_sample.png")
print(f"Measure first: {gains[0].identifier.split(' line')[0]} ({gains[0].samples} samples).")
