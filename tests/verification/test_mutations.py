"""Every number and every field of results altered: what is still called valid must be true.

A record is altered in one place, judged as it would be in a file that is signed anew, and whatever
passes is compared with the truth: all pairs of strategies of a tiny model tried one by one.
"""

import copy
import json
import math

import numpy as np
import pytest

from outer.random_specs import specs, tiny_model
from rfmdp.formats.records import solution_from_record, solution_to_record
from rfmdp.model.derived import restrict
from rfmdp.objective import MAX, Spec
from rfmdp.outer.problem import Form, pose
from rfmdp.outer.solution import Status
from rfmdp.outer.task import Limits, Measure
from rfmdp.solving import solve
from rfmdp.verification.solution import verdict_of
from true_values import LEEWAY, row_vertices, true_value

SPECS = list(specs())
FREE = ("method", "stats", "formulas", "variables", "actions", "factors", "marginal_names",
        "outcome_names", "labels", "rewards")  # fmt: skip
# whose content claims nothing


def record(seed, spec, sides=("lower", "upper")):
    """Return header and arrays of a solution with some of its sides."""
    model = tiny_model(seed)
    _, header, arrays = solution_to_record(solve(model, spec, states=np.ones(model.states, bool)))
    header = json.loads(json.dumps(header))
    arrays = {name: np.array(array) for name, array in arrays.items()}
    if len(sides) == 1:
        gone = "upper" if sides == ("lower",) else "lower"
        arrays.pop(gone)
        header["status"] = "GAP_OPEN"
    return header, arrays


def altered_number(x):
    """Return other numbers for one of an array."""
    if isinstance(x, bool):
        return [not x]
    if isinstance(x, int):
        return [x + 1, x - 1, 0, -1, 2**31 - 1]
    step = 1e-5 * max(1.0, abs(x)) if math.isfinite(x) else 1.0
    return [x + step, x - step, 0.0, 1.0, -0.8, 0.5 * x, 2.0 * x, math.nan, math.inf, -math.inf]


def altered_field(x):
    """Return other contents for one field of a header."""
    if isinstance(x, bool):
        return [not x, None]
    if isinstance(x, int | float):
        return [x + 1, -x, 0, 1, 0.5, -5, 1e9, "1", None]
    words = ["policy", "MIN", "MAX", "CERTIFIED", "ABSOLUTE", "Reach", "Total", "Globally", "Next"]
    return [w for w in ["", "goal", "safe", "some", "signed", 3, None, *words] if w != x]


def fields(header, path=()):
    """Yield the paths of all plain fields that claim something."""
    for name, content in header.items():
        if name in FREE:
            continue
        if isinstance(content, dict):
            yield from fields(content, (*path, name))
        elif not isinstance(content, list):
            yield (*path, name)


def mutations(header, arrays):
    """Yield (what, function that returns an altered pair) for all places."""
    for name, array in arrays.items():
        for place in np.ndindex(array.shape):
            for other in altered_number(array[place].item()):
                yield f"{name}{place} = {other}", ("array", name, place, other)
        yield f"without {name}", ("drop", name, None, None)
        if array.ndim == 1 and array.size:
            yield f"short {name}", ("short", name, None, None)
    for path in fields(header):
        content = header
        for key in path:
            content = content[key]
        for other in altered_field(content):
            yield f"{'.'.join(path)} = {other!r}", ("field", path, None, other)
        yield f"without {'.'.join(path)}", ("lost", path, None, None)


def mutate(header, arrays, how):
    """Return the altered pair."""
    kind, name, place, other = how
    header, arrays = copy.deepcopy(header), dict(arrays)
    if kind == "array":
        arrays[name] = arrays[name].copy()
        try:
            arrays[name][place] = other
        except OverflowError:
            arrays[name] = arrays[name].astype(np.int64)
            arrays[name][place] = other
    elif kind == "drop":
        del arrays[name]
    elif kind == "short":
        arrays[name] = arrays[name][:-1]
    else:
        inner = header
        for key in name[:-1]:
            inner = inner[key]
        if kind == "field":
            inner[name[-1]] = other
        else:
            del inner[name[-1]]
    return header, arrays


def policy_value(solution):
    """Return the value that the policy of a solution guarantees."""
    model, spec, rules = solution.model, solution.spec, solution.policy.rows
    if len(rules) == 1 and pose(model, spec).form is not Form.STEPS:
        return true_value(restrict(model, rules[0]), spec)
    problem = pose(model, spec)
    if problem.form is Form.STEPS:
        value, rest = np.array(problem.start), rules
    else:
        fixed = restrict(model, rules[-1])
        objective = spec.objective
        tail = type(objective)(
            *(getattr(objective, n) for n in ("stay", "target") if hasattr(objective, n))
        )
        value, rest = true_value(fixed, Spec(tail, spec.agent, spec.nature)), rules[:-1]
        value = 1.0 - value if problem.flipped else value
    moves = row_vertices(model)
    nature = np.max if problem.nature is MAX else np.min
    for k, step in enumerate(problem.steps):
        rule = rest[len(problem.steps) - 1 - k]
        q = [problem.reward[r] + problem.discount * nature(moves[r] @ value) for r in rule]
        value = np.where(step.fixed, step.given, q)
    return 1.0 - value if problem.flipped else value


def close(x, y, scale):
    """Return whether x <= y up to what the reference may be off."""
    return bool(np.all((x <= y) | (np.abs(x - y) <= 10.0 * LEEWAY * np.maximum(1.0, scale))))


def check_truth(solution):
    """Assert that all a solution claims is true."""
    ours = policy_value(solution)
    truth = ours if solution.subject == "policy" else true_value(solution.model, solution.spec)
    scale = np.where(np.isfinite(truth), np.abs(truth), 1.0)
    low, high = solution.lower, solution.upper
    with np.errstate(invalid="ignore"):
        if low is not None:
            assert close(low, ours if solution.spec.agent is MAX else truth, scale)
            assert (low <= solution.value).all()
        if high is not None:
            assert close(truth if solution.spec.agent is MAX else ours, high, scale)
            assert (solution.value <= high).all()
    if solution.status is Status.CERTIFIED:
        limits = Limits(precision=solution.precision, measure=Measure[solution.measure])
        everywhere = solution.model.label("init")
        interest = everywhere if solution.interest is None else solution.interest
        slackened = Limits(precision=limits.precision * (1 + 1e-9), measure=limits.measure)
        assert slackened.closed(low, high, interest, 1.0 + 1e-9)


def hunt(seed, name, spec, sides, chosen):
    """Judge the chosen mutations of a result; return how many pass and how many do not."""
    header, arrays = record(seed, spec, sides)
    genuine = verdict_of("solution", header, arrays)
    assert genuine.valid, (seed, name, str(genuine))
    every = list(mutations(header, arrays))
    passed = failed = 0
    for i in chosen(len(every)):
        what, how = every[i]
        other = mutate(header, arrays, how)
        if verdict_of("solution", *other).valid:
            try:
                check_truth(solution_from_record(*other))
            except Exception as error:
                raise AssertionError(f"{seed} {name} {sides}: {what} was called valid") from error
            passed += 1
        else:
            failed += 1
    return passed, failed


SIDES = [("lower", "upper"), ("lower",), ("upper",)]


@pytest.mark.parametrize("group", range(15))
def test_some_mutations(group):
    """A few alterations of every objective, directions and sides by turns."""
    rng = np.random.default_rng(group)
    passed = failed = 0
    for turn in range(4):
        name, spec = SPECS[4 * group + turn]
        more = hunt(int(rng.integers(100)), name, spec, SIDES[(group + turn) % 3],
                    lambda n: rng.choice(n, min(n, 10), replace=False))  # fmt: skip
        passed, failed = passed + more[0], failed + more[1]
    assert passed + failed == 40
    assert failed > 12


@pytest.mark.slow
@pytest.mark.parametrize(("name", "spec"), SPECS, ids=[name for name, _ in SPECS])
def test_all_mutations(name, spec):
    """All of them, of both sides and of each alone, on two models each."""
    for seed in (4, 5):
        for sides in SIDES:
            hunt(seed, name, spec, sides, range)
