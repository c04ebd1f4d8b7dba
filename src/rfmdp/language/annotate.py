"""Labels and rewards of explored states and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rfmdp.language.ast import ModelType, RewardItem
from rfmdp.language.checked import CheckedModel
from rfmdp.language.compile import CHUNK, Expressions, StateBatch, evaluate_states
from rfmdp.model.arrays import Rewards
from rfmdp.model.skeleton import Skeleton
from rfmdp.types import BoolArray, FloatArray, IntArray

CHAINS = (ModelType.DTMC, ModelType.IDTMC)


def state_labels(checked: CheckedModel, skeleton: Skeleton) -> dict[str, BoolArray]:
    """Return where every label of the text holds."""
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
        everywhere = np.arange(skeleton.states)
        state = _sums(of_states, checked, skeleton, everywhere)
        found[name] = Rewards(state, _row_rewards(rewards.items, checked, skeleton))
    return found


def _row_rewards(
    items: Sequence[RewardItem], checked: CheckedModel, skeleton: Skeleton
) -> FloatArray:
    """Return what every row pays."""
    row = np.zeros(len(skeleton.row_actions))
    names = [*checked.actions, ""]
    given = {item.action for item in items if item.action is not None}
    if not given:
        return row
    # in a DTMC a row may be a random choice among several labels
    weights = _label_weights(skeleton, checked) if checked.type in CHAINS else None
    row_states = skeleton.row_states
    for number, name in enumerate(names):
        if name not in given:
            continue
        own = [item for item in items if item.action == name]
        if weights is None:
            rows = np.flatnonzero(skeleton.row_actions == number)
            states, inverse = np.unique(row_states[rows], return_inverse=True)
            row[rows] = _sums(own, checked, skeleton, states)[inverse]
        else:
            states = np.flatnonzero(weights[:, number] > 0.0)
            pays = _sums(own, checked, skeleton, states)
            row[skeleton.row_ptr[states]] += weights[states, number] * pays
    return row


def _label_weights(skeleton: Skeleton, checked: CheckedModel) -> FloatArray:
    """Return the share (S, labels + 1) of each label among the choices of a state; last: none."""
    expressions = Expressions(checked.variables, checked.source)
    guards = [
        (module.name, command.action, expressions.add(command.guard))
        for module in checked.modules
        for command in module.commands
    ]
    weights = np.zeros((skeleton.states, len(checked.actions) + 1))
    for part, batch in _batches(expressions, skeleton, np.arange(skeleton.states)):
        enabled: dict[tuple[str | None, str], FloatArray] = {}
        for module, action, guard in guards:
            before = enabled.get((action, module), np.zeros(len(batch)))
            enabled[action, module] = before + batch.value(guard)
        for number, name in enumerate([*checked.actions, None]):
            counts = [count for (action, _), count in enabled.items() if action == name]
            if name is None:
                weights[part, number] = sum(counts)
            elif counts:
                weights[part, number] = np.prod(counts, axis=0)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    return weights


def _sums(
    items: Sequence[RewardItem], checked: CheckedModel, skeleton: Skeleton, states: IntArray
) -> FloatArray:
    """Return the sum of reward items over some states."""
    out = np.zeros(len(states))
    expressions = Expressions(checked.variables, checked.source)
    numbers = [(expressions.add(item.guard), expressions.add(item.value)) for item in items]
    if not items:
        return out
    for part, batch in _batches(expressions, skeleton, states):
        for item, (guard, value) in zip(items, numbers, strict=True):
            holds = batch.value(guard)
            if not holds.any():
                continue
            pays = batch.value(value, holds).astype(np.float64)
            wrong = holds & np.isnan(pays)
            if wrong.any():
                reason = "a reward must be a number, found nan"
                raise batch.error(item.value.position, reason, int(wrong.argmax()))
            out[part] += np.where(holds, pays, 0.0)
    return out


def _batches(
    expressions: Expressions, skeleton: Skeleton, states: IntArray
) -> Iterator[tuple[slice, StateBatch]]:
    """Yield some states in chunks, with the part of the result that they fill."""
    for start in range(0, len(states), CHUNK):
        part = slice(start, start + CHUNK)
        valuations = np.asfortranarray(skeleton.valuations[states[part]], dtype=np.int64)
        yield part, StateBatch(expressions, valuations)
