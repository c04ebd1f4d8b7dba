"""Two machines wear out. How likely can you avoid a break for so many days?

The model is a file of your own in the PRISM language: modules are factors, and an interval is a
probability that you know roughly. The exact method is compared with multiplied intervals.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import rfmdp as rf

Path("machines.prism").write_text("""mdp
module first
  a : [0..2] init 2; // 2 fine, 1 worn, 0 broken
  [repair_a] true -> [0.70,0.90] : (a'=2) + [0.10,0.30] : true;
  [repair_b] a=2 -> [0.85,0.95] : (a'=2) + [0.05,0.15] : (a'=1);
  [repair_b] a=1 -> [0.60,0.80] : (a'=1) + [0.20,0.40] : (a'=0);
  [repair_b] a=0 -> true;
endmodule
module second = first [a=b, repair_a=repair_b, repair_b=repair_a] endmodule
label "broken" = a=0 | b=0;
""")
model = rf.load_prism("machines.prism")
days = range(1, 31)
figure, axes = plt.subplots(layout="constrained")
chances = {}
for method in (rf.Exact(), rf.IntervalArithmetic()):
    chances[method.name] = [
        rf.solve(model, f'Pmaxmin=? [ G<={day} !"broken" ]', inner=method).at_initial()
        for day in days
    ]
    axes.plot(days, [bounds.lower for bounds in chances[method.name]], label=method.name)
axes.set(xlabel="days", ylabel="probability that nothing breaks, at least")
axes.legend()
figure.savefig("own_file.png")
print(f"Nothing breaks in 30 days with a probability in {chances['exact'][-1]}.")
