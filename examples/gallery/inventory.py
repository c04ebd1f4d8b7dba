"""How much shall a shop order every day, if it does not quite know the demand?

Storing costs 1 per item and day, a lost sale costs 8, a delivery costs 4. Customers of a day want
0 to 3 items. The estimated probabilities are off by `distance` in sum.
"""

import matplotlib.pyplot as plt
import numpy as np

import rfmdp as rf


def order(amount, demand):
    """Return the action that has so many items delivered in the evening."""

    def day(s, identifier, wanted):
        left = np.maximum(s.items - wanted, 0) + amount
        return {"items": np.minimum(left, 9), "lost": np.maximum(wanted - s.items, 0)}

    paid = {"cost": 4.0 * (amount > 0)}
    return rf.Action(str(amount), [rf.Move("demand", demand, day)], rewards=paid)


for distance, shift in ((0.0, -0.2), (0.4, 0.2)):
    demand = rf.L1Ball([0.1, 0.4, 0.3, 0.2], distance)
    shop = rf.build(
        {"items": (0, 9), "lost": (0, 3)},
        [order(amount, demand) for amount in range(7)],
        initial={"items": 4, "lost": 0},
        rewards={"cost": lambda s: s.items + 8.0 * s.lost},
    )
    solution = rf.solve(shop, 'R{"cost"}minmax=? [ S ]')
    orders = solution.to_frame().query("lost == 0")
    plt.bar(orders["items"] + shift, orders.action.astype(int), 0.4, label=f"distance {distance}")
plt.gca().set(xlabel="items in the shop", ylabel="items to order")
plt.legend()
plt.savefig("inventory.png")
print(f"In the long run a day costs {solution.at_initial()} in the worst case.")
