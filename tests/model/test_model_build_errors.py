"""What the Python builder says about bad descriptions."""

import numpy as np
import pytest

from rfmdp.errors import ModelError
from rfmdp.model.arrays import Variable
from rfmdp.model.build import build
from rfmdp.model.description import Action, Move
from rfmdp.sets.families import Singleton

COIN = Singleton([0.5, 0.5])


def go(**others):
    """Return an action that moves x by a coin."""
    return Action("go", [Move("f", COIN, lambda s, j, o: {"x": s.x + o})], **others)


BAD = {
    "range": (
        {"actions": [go()]},
        "Action 'go', factor 'f', outcome 1: sets x to 4 in state (x=3, y=0), must be within 0..3.",
    ),
    "range by update": (
        {"actions": [Action("go", update=lambda s: {"y": s.y - 1})]},
        "Action 'go', update: sets y to -1 in state (x=0, y=0), must be within 0..1.",
    ),
    "unknown variable set": (
        {"actions": [Action("go", update=lambda s: {"z": 1})]},
        "Action 'go', update: z is no variable; the model has: x, y.",
    ),
    "unknown variable read": (
        {"actions": [Action("go", guard=lambda s: s.z == 1)]},
        "Variable z is not defined by the model; it has: x, y.",
    ),
    "set twice": (
        {"actions": [go(update=lambda s: {"x": 0})]},
        "Action 'go', factor 'f': sets x, already set by Action 'go', update; "
        "a variable may change in one place only.",
    ),
    "guard": (
        {"actions": [go(guard=lambda s: s.x)]},
        "Action 'go', guard: must give booleans, one per state (1) or one for all, "
        "got int64 of shape (1,).",
    ),
    "fractions": (
        {"actions": [Action("go", update=lambda s: {"x": s.x / 2})]},
        "Action 'go', update, variable x: must give integers, one per state (1) or one for all, "
        "got float64 of shape (1,).",
    ),
    "identify": (
        {"actions": [Action("go", [Move("f", [COIN], lambda s, j, o: {}, lambda s: s.x + 1)])]},
        "Action 'go', factor 'f', identify: gives 1 in state (x=0, y=0), must be within 0..0.",
    ),
    "no identify": (
        {"actions": [Action("go", [Move("f", [COIN, COIN], lambda s, j, o: {})])]},
        "Action 'go', factor 'f': has 2 sets, so identify() must choose one.",
    ),
    "no sets": (
        {"actions": [Action("go", [Move("f", [], lambda s, j, o: {})])]},
        "Action 'go', factor 'f': needs at least one set of distributions.",
    ),
    "factor twice": (
        {"actions": [Action("go", 2 * [Move("f", COIN, lambda s, j, o: {})])]},
        "Action 'go': factor 'f' moves twice; give it one move.",
    ),
    "name of two sets": (
        {
            "actions": [
                Action(a, [Move("f", {"c": Singleton([0.5, 0.5])}, lambda s, j, o: {})])
                for a in "ab"
            ]
        },
        "Marginal name 'c' is given to two different sets. "
        "Use one object for one distribution, or two names.",
    ),
    "initial missing": (
        {"initial": {"x": 0}},
        "A state is given by all variables (x, y); got x.",
    ),
    "initial range": (
        {"initial": {"x": 7, "y": 0}},
        "Initial states: set x to 7 in state (x=7, y=0), must be within 0..3.",
    ),
    "initial unknown": (
        {"initial": {"x": 0, "y": 0, "z": 0}},
        "A state is given by all variables (x, y); got x, y, z.",
    ),
    "initial sizes": (
        {"initial": {"x": [0, 1, 2], "y": [0, 1]}},
        "Initial states: every variable must have one integer, or equally many of them; "
        "got {'x': [0, 1, 2], 'y': [0, 1]}.",
    ),
    "empty range": (
        {"variables": {"x": (3, 0), "y": (0, 1)}},
        "Variable x: the range 3..0 must not be empty, and lie within 32 bits.",
    ),
    "variable twice": (
        {"variables": [Variable("x", 0, 1), Variable("x", 0, 1)], "initial": {"x": 0}},
        "The model has 1 error:\n  Variable 'x': is named twice.",
    ),
    "label": (
        {"labels": {"goal": lambda s: s.x}},
        'Label "goal": must give booleans, one per state (1) or one for all, '
        "got int64 of shape (1,).",
    ),
    "reserved label": (
        {"labels": {"init": lambda s: s.x == 0}},
        'Label "init" is always defined; use another name.',
    ),
    "reward": (
        {"rewards": {"cost": lambda s: np.full(len(s), np.nan)}},
        'The model has 1 error:\n  Reward "cost", states: must be numbers of at most 1e+100, '
        "state 0 has nan.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_descriptions_are_named(name):
    """Every mistake gives one message that says what, where and what was found."""
    change, message = BAD[name]
    given = {
        "variables": {"x": (0, 3), "y": (0, 1)},
        "actions": [Action("wait")],
        "initial": {"x": 0, "y": 0},
        **change,
    }
    with pytest.raises(ModelError) as caught:
        build(given.pop("variables"), given.pop("actions"), **given)
    assert str(caught.value) == message


def test_columns_are_read_only():
    """A function that changes its states in place fails at once."""

    def spoil(s):
        x = s.x
        x += 1
        return {"x": x}

    with pytest.raises(ValueError, match="read-only"):
        build({"x": (0, 3)}, [Action("go", update=spoil)], initial={"x": 0})
