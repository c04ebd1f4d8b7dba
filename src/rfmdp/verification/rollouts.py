"""Certificates of frozen policies, by the successes or the returns of their own trajectories."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from rfmdp.types import FloatArray
from rfmdp.verification.confidence import ACCURACY
from rfmdp.verification.fields import Fields, need
from rfmdp.verification.reading import Claim
from rfmdp.verification.rewards import EPS, plainly

FROZEN = "the policy and the number of trajectories were fixed before the trajectories were run"
RESTART = "trajectories are independent and start in the initial state"

Note = Callable[[bool, str], None]


def check_rollouts(header: Mapping[str, Any], fields: Fields, claim: Claim, note: Note) -> None:
    """Check the certificates of frozen policies, what they cost, and which one is reported."""
    found = header["rollouts"]
    need(isinstance(found, list), "rollouts: must be a list")
    bounds = []
    cost = Fraction(0)
    for i, each in enumerate(found):
        runs = each["trajectories"]
        delta = float(each["delta"])
        bounds.append(float(each["bound"]))
        need(type(runs) is int and runs > 0 and 0.0 < delta < 1.0, f"rollouts: {i}, out of range")
        cost += Fraction(delta)
        stated = {FROZEN, RESTART}
        if each["successes"] is not None:
            _check_successes(i, each, claim, note)
        else:
            low, high = _range_of_returns(i, header["settings"], claim)
            stated |= {f"every return lies in [{plainly(low)}, {plainly(high)}]"}
            returns = fields.floats(f"returns/{i}", runs)
            inside = bool(((returns >= low) & (returns <= high)).all())
            note(inside, f"returns of rollouts {i} are possible")
            fine = bets_against(bounds[-1], returns, low, high, delta)
            note(fine, f"bound of rollouts {i} from returns")
        note(stated <= set(each["assumptions"]), f"assumptions of rollouts {i}")
    share = fields.floats("ledger/shares", 4)[2]
    note(cost <= Fraction(float(share)), "rollouts within their share")
    last = float(header["history"][-1]["rollout"])
    note(bool(np.isnan(last) or last <= max(bounds, default=-np.inf)), "best of the rollouts")
    if bounds:
        rows = fields.integers("rollout_policy", ndim=2)
        model = claim.model
        count = rows.shape[1]
        own = count <= model.states and len(rows) > 0
        own = own and bool((rows >= model.row_ptr[:count]).all())
        own = own and bool((rows < model.row_ptr[1 : count + 1]).all())
        need(own, "rollout_policy: must take rows of the state itself")


def _check_successes(i: int, each: Mapping[str, Any], claim: Claim, note: Note) -> None:
    """Check a bound of the chance to win by the exact binomial tail."""
    won = each["successes"]
    runs = each["trajectories"]
    bound = float(each["bound"])
    need(type(won) is int and 0 <= won <= runs, f"rollouts: {i}, successes out of range")
    tail = special.betainc(max(won, 1), runs - won + 1.0, min(max(bound, 0.0), 1.0))
    fine = bound <= 0.0 or (won > 0 and tail <= float(each["delta"]) * (1.0 + ACCURACY))
    note(bool(fine and bound <= 1.0), f"bound of rollouts {i} from successes")
    wins = claim.agent > 0 and claim.kind in ("Reach", "Until")
    note(wins, f"rollouts {i} count what the objective asks")


def _range_of_returns(i: int, settings: Mapping[str, str], claim: Claim) -> tuple[float, float]:
    """Return what trajectories can earn; what is earned later must not be negative."""
    asks = claim.agent > 0 and claim.kind in ("ReachReward", "Cumulative", "Discounted", "Total")
    need(asks and settings["rewards"] == "known", f"rollouts: {i}, not what the objective asks")
    reward, _ = claim.paid()
    length = int(settings["length"])
    steps = claim.objective["steps"] if claim.kind == "Cumulative" else math.inf
    least, most = float(reward.min(initial=0.0)), float(reward.max(initial=0.0))
    need(length > 0 and (least >= 0.0 or steps <= length), f"rollouts: {i}, costs after the end")
    count = int(min(steps, length))
    return least * count, max(most, 1e-300) * count


def bets_against(bound: float, returns: FloatArray, low: float, high: float, delta: float) -> bool:
    """Return whether bets on more than a mean return multiplied a stake by 1 / delta.

    What is bet, from what was seen before, is min(sqrt(2 ln(1/delta) / (v n)), 3 / (4 mean)), v the
    variance of 1/2 and all before. Should the mean return be no more than the bound, then the stake
    is a supermartingale, and reaches 1 / delta with a chance of at most delta.
    """
    if bound <= low:
        return True
    mean = (bound - low) / (high - low) * (1.0 + 4.0 * EPS)
    if not mean < 1.0:
        return False
    scaled = np.minimum((returns - low) / (high - low), 1.0)
    n = len(scaled)
    t = np.arange(1.0, len(scaled) + 1.0)
    wanted = -math.log(delta)
    centre = (0.5 + np.cumsum(scaled)) / (t + 1.0)
    squares = 0.25 + np.append(0.0, np.cumsum((scaled - centre) ** 2)[:-1])
    bet = np.minimum(np.sqrt(2.0 * wanted * t / (squares * n)), 0.75 / mean)
    wealth = np.cumsum(np.log1p(bet * (scaled - mean)))
    return bool(wealth.max() >= wanted - ACCURACY)
