"""You trade stocks by a rule of thumb. What does it guarantee, and what would be best?

The rule buys a sector when both of its stocks rise, and sells it when both fall. The gain is that
of ten steps, when every probability may be off by a radius.
"""

import matplotlib.pyplot as plt
import numpy as np
from pandas import DataFrame

import rfmdp as rf

market = rf.domain("stock_trading", instance="learning")
goal = rf.domain_spec("stock_trading")
s = DataFrame(market.state_columns())
rules = {
    "end": s.t == 10,
    "buy_1": (s.own1 == 0) & (s.a1 + s.b1 == 2),
    "buy_2": (s.own2 == 0) & (s.a2 + s.b2 == 2),
    "sell_1": (s.own1 == 1) & (s.a1 + s.b1 == 0),
    "sell_2": (s.own2 == 1) & (s.a2 + s.b2 == 0),
}
s["action"] = np.select(list(rules.values()), list(rules), "nothing")
s.to_csv("rule.csv", index=False)

radii, rule, best = [0.0, 0.02, 0.04, 0.06, 0.08, 0.1], [], []
for radius in radii:
    model = market.with_radius(radius)
    policy = rf.read_policy("rule.csv", model)
    rule.append(rf.evaluate(model, policy, goal).at_initial())
    best.append(rf.solve(model, goal).at_initial())
figure, axes = plt.subplots()
axes.plot(radii, [bounds.lower for bounds in best], "o-", label="best policy")
axes.plot(radii, [bounds.lower for bounds in rule], "o-", label="rule of thumb")
axes.set(xlabel="radius", ylabel="gain, at least")
axes.legend()
figure.savefig("stock.png")
print(f"At radius 0.1 the rule gains {rule[-1]}, the best policy {best[-1]}.")
