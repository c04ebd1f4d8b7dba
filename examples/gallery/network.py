"""Machines in a ring fail more often beside a failed one. How many can you keep running?

One machine is repaired per step. Twenty of them have 73 billion transitions, so the model is kept
by its factors. Every probability is known up to 0.025.
"""

import matplotlib.pyplot as plt

import rfmdp as rf

STEPS = 3


def ring(size):
    """Return the text of a ring of so many machines."""
    lines = ["mdp"]
    for i in range(size):
        fails = f"(m{(i - 1) % size}=1 & m{(i + 1) % size}=1 ? 0.1 : 0.6)"
        lines.append(f"module machine{i} m{i} : [0..1] init 1;")
        for k in range(size):
            lines.append(f"  [repair{k}] m{i}=1 -> {fails} : (m{i}'=0) + 1-{fails} : true;")
            lines.append(f"  [repair{k}] m{i}=0 -> (m{i}'={int(i == k)});")
        lines.append("endmodule")
    running = " + ".join(f"m{i}" for i in range(size))
    return "\n".join([*lines, f"rewards true : {running}; endrewards"])


sizes, shares = [4, 8, 12, 16, 20], []
for size in sizes:
    model = rf.parse_lattice(ring(size)).with_radius(0.025)
    bounds = rf.solve(model, f"Rmaxmin=? [ C<={STEPS} ]").at_initial()
    shares.append(bounds.lower / STEPS)
plt.bar(sizes, sizes, color="lightgrey", label="machines")
plt.bar(sizes, shares, label="running on average, at least")
plt.xticks(sizes)
plt.legend()
plt.savefig("network.png")
print(f"Twenty machines have an output of {bounds} in {STEPS} steps.")
