"""A checked PRISM model becomes an rf-MDP.

Each module is a factor and each command a marginal over its updates. A row is an unlabelled
command, or one combination of commands with the same label, one from every module that has the
label in its alphabet.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import reduce

import numpy as np

from rfmdp.errors import ModelError, PrismError, PrismWarning
from rfmdp.language.ast import RewardItem
from rfmdp.language.checked import CHAINS, CheckedModel
from rfmdp.language.commands import implied_ranges
from rfmdp.language.distributions import RANDOM_FACTOR, packed
from rfmdp.language.explorer import StateExplorer
from rfmdp.language.expressions import Binary, Expr, Ite, Literal
from rfmdp.language.states import CHUNK, State, evaluate_states
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable, warn_if_touching
from rfmdp.model.frontier import Progress, deadlocks, finished, with_used_marginals
from rfmdp.model.packing import Packing
from rfmdp.model.validate import require_valid
from rfmdp.record import Provenance
from rfmdp.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

MAX_CANDIDATES = 1 << 28
ZERO, ONE = Literal(0.0), Literal(1.0)


def build_model(checked: CheckedModel, progress: Progress | None = None) -> FactoredMDP:
    """Return the reachable part of a PRISM model.

    Rows of a state come in the order of the text: unlabelled commands module by module, then
    labels. In a DTMC every state has one row: where several choices are enabled, each is taken
    with the same probability, as in PRISM, and a warning says so. In an interval DTMC this is
    allowed only where all probabilities are known.

    A state without choice gets a self-loop, with a warning.

    progress : called now and then, see `frontier.Progress`

    >>> from rfmdp.language.check import check_model
    >>> from rfmdp.language.parse import parse_model
    >>> text = '''imdp
    ... module walk
    ...   x : [0..9];
    ...   [go] x<9 -> [0.7,0.9] : (x'=x+1) + [0.1,0.3] : (x'=0);
    ...   [stop] x=9 -> true;
    ... endmodule'''
    >>> model = build_model(check_model(parse_model(text)))
    >>> model.states, model.rows, model.transitions, model.marginal_names
    (10, 10, 19, ('walk: [go] line 4',))
    """
    explorer = StateExplorer(checked, Packing(checked.variables, in_bits=True))
    try:
        explored = explorer.run(initial_valuations(checked), progress)
    except PrismError:
        raise
    except ModelError as error:
        raise ModelError(f"{checked.source.filename}: {error}") from None
    dead = np.flatnonzero(deadlocks(explored))
    warn_of_states(checked, len(dead), explored.valuations[dead[:1]], explorer)
    model = completed(checked, explored, explorer)
    warn_if_touching(model)
    require_valid(model)  # remembered, so that the first question need not check again
    return model


def completed(
    checked: CheckedModel,
    explored: FactoredMDP,
    explorer: StateExplorer,
    *,
    every_marginal: bool = False,
) -> FactoredMDP:
    """Return explored states and rows with sets (those of their rows), names, labels, rewards."""
    used: IntArray = np.arange(len(explorer.marginals))
    if not every_marginal:
        explored, used = with_used_marginals(explored)
    marginals, names, outcomes = packed([explorer.marginals[j] for j in used])
    factors = tuple(module.name for module in checked.modules)
    return finished(
        explored,
        _actions(checked, explored),
        state_labels(checked, explored),
        marginals=marginals,
        factors=(*factors, RANDOM_FACTOR) if explorer.mixed else factors,
        rewards=structures(checked, explored),
        marginal_names=tuple(names),
        outcome_names=tuple(outcomes),
        formulas={**checked.constants, **checked.formulas},
        provenance=Provenance.of_text(
            checked.source.filename, checked.source.text, checked.constants
        ),
    )


def _actions(checked: CheckedModel, explored: FactoredMDP) -> list[str]:
    """Return the names of actions; "" is among them only if some row is unlabelled."""
    names = list(checked.actions)
    unlabelled = bool(np.any(explored.row_actions == len(names)))
    return [*names, ""] if unlabelled or not names else names


def warn_of_states(
    checked: CheckedModel, dead: int, first_dead: Int32Array, explorer: StateExplorer
) -> None:
    """Say what was made of states that are probably not meant so.

    dead : number of states without a choice; first_dead : (1, vars) if there is one
    """
    name = checked.source.filename
    if dead:
        first = State(checked, first_dead[0])
        warnings.warn(
            f"{name}: {dead} state(s) have no enabled command, the first is {first}; each "
            'gets a self-loop and the label "deadlock".',
            PrismWarning,
            stacklevel=3,
        )
    if explorer.mixed:
        warnings.warn(
            f"{name}: {explorer.mixed} state(s) of this {checked.type.value} have more "
            f"than one choice, the first found is {explorer.first_mixed}; each choice is "
            "taken with the same probability.",
            PrismWarning,
            stacklevel=3,
        )


def initial_valuations(checked: CheckedModel) -> AnyArray:
    """Return the valuations (I, vars) of all initial states, ascending."""
    if isinstance(checked.init, Expr):
        return _satisfying(checked, checked.init)
    return np.array(checked.init, dtype=np.int64).reshape(1, -1)


def _satisfying(checked: CheckedModel, condition: Expr) -> AnyArray:
    """Try all valuations that simple bounds of the condition leave, in chunks."""
    needs = implied_ranges(condition)
    box = []
    for v in checked.variables:
        least, most = needs.get(v.name, (-math.inf, math.inf))
        box.append(Variable(v.name, int(max(v.low, least)), int(min(v.high, most))))
    count = math.prod(max(0, v.high - v.low + 1) for v in box)
    if count > MAX_CANDIDATES:
        reason = (
            f"the condition of 'init' leaves {count:.3g} states to try, must be at most "
            f"{MAX_CANDIDATES}; add conjuncts that bound single variables, such as x=0"
        )
        raise checked.source.error(condition.position, reason)
    blocks = [np.empty((0, len(box)), dtype=np.int32)]
    for start in range(0, count, CHUNK):
        valuations = Packing(box).unpack(np.arange(start, min(start + CHUNK, count))[:, None])
        blocks.append(valuations[evaluate_states(condition, checked, valuations)])
    valuations = np.concatenate(blocks)
    if not len(valuations):
        reason = "some state must satisfy the condition of 'init', found none"
        raise checked.source.error(condition.position, reason)
    return valuations


def state_labels(checked: CheckedModel, explored: FactoredMDP) -> dict[str, BoolArray]:
    """Return where every label of the text holds, (S,) each."""
    return {
        label.name: evaluate_states(label.value, checked, explored.valuations)
        for label in checked.labels
    }


def structures(checked: CheckedModel, explored: FactoredMDP) -> dict[str, Rewards]:
    """Return all reward structures; one without name is called "" (a second one "#2", ...).

    Self-loops that were given to deadlocks have no action reward, as in PRISM.
    """
    sums: dict[str, Rewards] = {}
    for number, rewards in enumerate(checked.rewards, start=1):
        name = rewards.name if rewards.name is not None else ""
        if name in sums:
            name = f"#{number}"
        of_states = [item for item in rewards.items if item.action is None]
        state = _pays(reward_sum(of_states), of_states, checked, explored, None)
        sums[name] = Rewards(state, _row_rewards(rewards.items, checked, explored))
    return sums


def _row_rewards(
    items: Sequence[RewardItem], checked: CheckedModel, explored: FactoredMDP
) -> FloatArray:
    """Return what every row pays."""
    row = np.zeros(len(explored.row_actions))
    of_rows = [item for item in items if item.action is not None]
    for number, action in enumerate([*checked.actions, ""]):
        action_items = [item for item in of_rows if item.action == action]
        pays = reward_sum(action_items)
        if action == "" and checked.type in CHAINS:
            # such a row of a DTMC may be a random choice among several labels
            action_items = of_rows
            pays = _mean(of_rows, checked)
        if action_items:
            rows = np.flatnonzero(explored.row_actions == number)
            row[rows] = _pays(pays, action_items, checked, explored, explored.row_states[rows])
    return row


def _pays(
    expr: Expr,
    items: Sequence[RewardItem],
    checked: CheckedModel,
    explored: FactoredMDP,
    states: IntArray | None,
) -> FloatArray:
    """Return what some items pay together, by an expression, in some states or in all."""
    pays = evaluate_states(expr, checked, explored.valuations, states)
    for k in np.flatnonzero(np.isnan(pays))[:1]:
        state = State(checked, explored.valuations[k if states is None else states[k]])
        for item in items:
            if np.isnan(state.value(reward_sum([item]))):
                raise state.error(item.value.position, "a reward must be a number, found nan")
    return pays


def reward_sum(items: Sequence[RewardItem]) -> Expr:
    """Return the sum of what items pay in the states of their guards."""
    return _folded("+", [ZERO, *(Ite(item.guard, item.value, ZERO) for item in items)])


def _mean(items: Sequence[RewardItem], checked: CheckedModel) -> Expr:
    """Return what the choices of a state pay on average."""
    actions = [*checked.actions, None]
    counts = [_choices(action, checked) for action in actions]
    total = _folded("+", counts)
    pays: list[Expr] = [ZERO]
    for action, count in zip(actions, counts, strict=True):
        paid = [item for item in items if item.action == (action or "")]
        if paid:
            share = Binary("*", Binary("/", count, total), reward_sum(paid))
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


def _folded(sign: str, terms: Sequence[Expr]) -> Expr:
    """Return the sum or product of expressions."""
    return reduce(lambda left, right: Binary(sign, left, right), terms)
