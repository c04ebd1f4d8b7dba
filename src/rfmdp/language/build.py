"""A checked PRISM model becomes an rf-MDP.

Each module is a factor and each command a marginal over its updates. A row is an unlabelled
command, or one combination of commands with the same label, one from every module that has the
label in its alphabet.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.errors import ModelError, PrismError, PrismWarning
from rfmdp.language.annotate import state_labels, structures
from rfmdp.language.checked import CheckedModel
from rfmdp.language.distributions import RANDOM_FACTOR, packed
from rfmdp.language.initial import initial_valuations
from rfmdp.language.states import State
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.frontier import Deadlock, Progress
from rfmdp.model.packing import Packing
from rfmdp.model.skeleton import Skeleton
from rfmdp.model.touching import warn_if_touching
from rfmdp.model.validate import is_valid
from rfmdp.record import Provenance

if TYPE_CHECKING:
    from rfmdp.language.explorer import StateExplorer


def build_model(
    checked: CheckedModel,
    *,
    deadlock: Deadlock = Deadlock.LOOP,
    progress: Progress | None = None,
) -> FactoredMDP:
    """Return the reachable part of a PRISM model.

    Rows of a state come in the order of the text: unlabelled commands module by module, then
    labels. In a DTMC every state has one row: where several choices are enabled, each is taken
    with the same probability, as in PRISM, and a warning says so. In an interval DTMC this is
    allowed only where all probabilities are known.

    Parameters
    ----------
    deadlock : what to do with a state without choice; a self-loop comes with a warning
    progress : called now and then with the number of states and transitions so far

    Raises
    ------
    PrismError
        With place and state, if an update leaves a variable's range, probabilities do not sum
        to one, an interval is empty, a value does not exist (`mod` by zero), and so on.
    ModelError
        If a deadlock is refused, or the model is too large.

    Examples
    --------
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
    # the machine needs numba, which takes a while to import
    from rfmdp.language.explorer import StateExplorer

    explorer = StateExplorer(checked, Packing(checked.variables, in_bits=True))
    try:
        skeleton = explorer.run(initial_valuations(checked), deadlock, progress)
    except PrismError:
        raise
    except ModelError as error:
        raise ModelError(f"{checked.source.filename}: {error}") from None
    _warn(checked, skeleton, explorer)
    skeleton, used = skeleton.drop_unused()
    marginals, names, outcomes = packed([explorer.marginals[j] for j in used])
    factors = [module.name for module in checked.modules]
    model = skeleton.model(
        marginals,
        _actions(checked, skeleton),
        [*factors, RANDOM_FACTOR] if explorer.mixed else factors,
        labels=state_labels(checked, skeleton),
        rewards=structures(checked, skeleton),
        marginal_names=names,
        outcome_names=outcomes,
        formulas={**checked.constants, **checked.formulas},
        provenance=Provenance.of_text(
            checked.source.filename, checked.source.text, checked.constants
        ),
    )
    warn_if_touching(model)
    is_valid(model)  # remembered, so that the first question need not check again
    return model


def _actions(checked: CheckedModel, skeleton: Skeleton) -> list[str]:
    """Return the names of actions; "" is among them only if some row is unlabelled."""
    names = list(checked.actions)
    unlabelled = bool(np.any(skeleton.row_actions == len(names)))
    return [*names, ""] if unlabelled or not names else names


def _warn(checked: CheckedModel, skeleton: Skeleton, explorer: StateExplorer) -> None:
    """Say what was made of states that are probably not meant so."""
    name = checked.source.filename
    dead = np.flatnonzero(skeleton.deadlocks)
    if dead.size:
        first = State(checked, skeleton.valuations[dead[0]])
        warnings.warn(
            f"{name}: {dead.size} state(s) have no enabled command, the first is {first}; each "
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
