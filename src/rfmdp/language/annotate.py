"""Labels and rewards of explored states and rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from rfmdp.language.ast import Binary, Expr, Ite, Literal, ModelType, RewardItem
from rfmdp.language.checked import CheckedModel
from rfmdp.language.states import State, evaluate_states
from rfmdp.model.arrays import Rewards
from rfmdp.model.skeleton import Skeleton
from rfmdp.types import BoolArray, FloatArray, IntArray

CHAINS = (ModelType.DTMC, ModelType.IDTMC)
ZERO, ONE = Literal(0.0), Literal(1.0)


def state_labels(checked: CheckedModel, skeleton: Skeleton) -> dict[str, BoolArray]:
    """Return where every label of the text holds, (S,) each."""
    return {
        label.name: evaluate_states(label.value, checked, skeleton.valuations)
        for label in checked.labels
    }


def structures(checked: CheckedModel, skeleton: Skeleton) -> dict[str, Rewards]:
    """Return all reward structures; one without name is called "" (a second one "#2", ...).

    Self-loops that were given to deadlocks have no action reward, as in PRISM.
    """
    found: dict[str, Rewards] = {}
    for number, rewards in enumerate(checked.rewards, start=1):
        name = rewards.name if rewards.name is not None else ""
        if name in found:
            name = f"#{number}"
        of_states = [item for item in rewards.items if item.action is None]
        state = _pays(_sum(of_states), of_states, checked, skeleton, None)
        found[name] = Rewards(state, _row_rewards(rewards.items, checked, skeleton))
    return found


def _row_rewards(
    items: Sequence[RewardItem], checked: CheckedModel, skeleton: Skeleton
) -> FloatArray:
    """Return what every row pays."""
    row = np.zeros(len(skeleton.row_actions))
    of_rows = [item for item in items if item.action is not None]
    for number, action in enumerate([*checked.actions, ""]):
        own = [item for item in of_rows if item.action == action]
        pays = _sum(own)
        if action == "" and checked.type in CHAINS:
            # such a row of a DTMC may be a random choice among several labels
            own = of_rows
            pays = _mean(of_rows, checked)
        if own:
            rows = np.flatnonzero(skeleton.row_actions == number)
            row[rows] = _pays(pays, own, checked, skeleton, skeleton.row_states[rows])
    return row


def _pays(
    expr: Expr,
    items: Sequence[RewardItem],
    checked: CheckedModel,
    skeleton: Skeleton,
    states: IntArray | None,
) -> FloatArray:
    """Return what some items pay together, by an expression, in some states or in all."""
    pays = evaluate_states(expr, checked, skeleton.valuations, states)
    for k in np.flatnonzero(np.isnan(pays))[:1]:
        state = State(checked, skeleton.valuations[k if states is None else states[k]])
        for item in items:
            if np.isnan(state.value(_sum([item]))):
                raise state.error(item.value.position, "a reward must be a number, found nan")
    return pays


def _sum(items: Sequence[RewardItem]) -> Expr:
    """Return the sum of what items pay in the states of their guards."""
    return _folded("+", [ZERO, *(Ite(item.guard, item.value, ZERO) for item in items)])


def _mean(items: Sequence[RewardItem], checked: CheckedModel) -> Expr:
    """Return what the choices of a state pay on average."""
    actions = [*checked.actions, None]
    counts = [_choices(action, checked) for action in actions]
    total = _folded("+", counts)
    pays: list[Expr] = [ZERO]
    for action, count in zip(actions, counts, strict=True):
        own = [item for item in items if item.action == (action or "")]
        if own:
            share = Binary("*", Binary("/", count, total), _sum(own))
            pays.append(Ite(Binary(">", count, ZERO), share, ZERO))
    return _folded("+", pays)


def _choices(action: str | None, checked: CheckedModel) -> Expr:
    """Return how many choices of a state have a label: combinations of one command per module.

    Commands without label are choices by themselves.
    """
    enabled = []  # commands, by module
    for module in checked.modules:
        guards = [c.guard for c in module.commands if c.action == action]
        if guards:
            enabled.append(_folded("+", [Ite(c, Literal(1), Literal(0)) for c in guards]))
    # floats: a product can be larger than an int
    return _folded("+", [ZERO, *enabled]) if action is None else _folded("*", [ONE, *enabled])


def _folded(sign: str, parts: Sequence[Expr]) -> Expr:
    """Return the sum or product of expressions."""
    return reduce(lambda left, right: Binary(sign, left, right), parts)
