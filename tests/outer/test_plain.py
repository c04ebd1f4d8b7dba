"""The compiled walk through plain models, against brute force and a slow twin."""

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from narrow import require_narrow
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.derived import restrict
from rfmdp.objective import MAX, MIN, Cumulative, Reach, ReachReward, Spec, Total, Until
from rfmdp.outer import plain
from rfmdp.outer.plain import PlainWalk
from rfmdp.outer.problem import Problem, pose
from rfmdp.outer.region import analyse
from rfmdp.outer.solution import Status
from rfmdp.outer.task import Clock, Limits
from rfmdp.sets.families import Interval, Singleton, bounds
from rfmdp.solving import solve
from rfmdp.verification.solution import verify
from true_values import LEEWAY, exact_steps, true_value

from .random_specs import PAIRS


def random_set(rng: np.random.Generator, uncertain: bool):
    """Return a distribution, or a box around one that keeps its support."""
    size = int(rng.integers(1, 4))
    point = rng.integers(1, 6, size).astype(float)
    point /= point.sum()
    if size == 1 or not uncertain or rng.random() < 0.3:
        return Singleton(point)
    lower = point * rng.choice([0.25, 0.5, 1.0], size)
    return Interval(lower, np.minimum(1.0, point * rng.choice([1.0, 1.5, 3.0], size) + 1e-3))


@lru_cache(maxsize=64)  # models are immutable, and tests ask for the same ones
def random_model(seed: int, uncertain: bool, products: bool = False) -> FactoredMDP:
    """Return a model of plain and one-box rows, with products of boxes here and there if wanted."""
    rng = np.random.default_rng(seed)
    states = int(rng.integers(2, 5))
    sets = [random_set(rng, uncertain) for _ in range(6)]
    sizes = [len(bounds(s)[0]) for s in sets]
    rows = []
    for _ in range(states):
        own = []
        for _ in range(int(rng.integers(1, 3))):
            count = 2 if products and rng.random() < 0.3 else int(rng.integers(0, 2))
            ids = rng.integers(0, 6, count).tolist()
            reach = int(np.prod([sizes[j] for j in ids], dtype=int))
            own.append((ids, rng.integers(0, states, reach).tolist()))
        rows.append(own)
    count = sum(len(own) for own in rows)
    paid = rng.choice([0.0, 0.0, 1.0, 2.5], count)
    goal = np.zeros(states, dtype=bool)
    goal[rng.integers(states)] = True
    return FactoredMDP.from_rows(
        rows,
        sets,
        labels={"goal": goal, "any": np.ones(states, dtype=bool)},
        rewards={"cost": Rewards(np.zeros(states), paid)},
    )


OBJECTIVES = [Reach("goal"), ReachReward("goal", "cost"), Total("cost")]


@pytest.mark.parametrize("uncertain", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
def test_bounds_enclose_the_value_found_by_brute_force(objective, uncertain):
    """Bounds hold and are close, the policy keeps the guarantee, and a checker agrees."""
    for seed in range(24):
        model = random_model(seed, uncertain, products=seed % 3 == 0)
        spec = Spec(objective, *PAIRS[seed % len(PAIRS)])
        truth = true_value(model, spec)
        everywhere = np.ones(model.states, dtype=bool)
        found = solve(model, spec, states=everywhere)
        leeway = LEEWAY * np.where(np.isfinite(truth), np.maximum(1.0, np.abs(truth)), 1.0)
        assert np.all(found.lower <= truth + leeway), (seed, truth, found.lower)
        assert np.all(found.upper >= truth - leeway), (seed, truth, found.upper)
        assert found.status is Status.CERTIFIED, (seed, found.lower, found.upper)
        kept = true_value(restrict(model, found.policy.rows[0]), spec)
        better = found.guarantee if spec.agent is MIN else kept
        worse = kept if spec.agent is MIN else found.guarantee
        assert np.all(worse <= better + leeway), (seed, kept, found.guarantee)
        assert verify(found).valid, seed


def walk_model(size: int, up: float, reward: float = 1.0) -> FactoredMDP:
    """Return a random walk between two ends; a second row of every state waits at no cost."""
    rows = [[([], [0])]]
    for i in range(1, size - 1):
        rows.append([([0], [i - 1, i + 1]), ([], [i])])
    rows.append([([], [size - 1])])
    paid = np.zeros(2 * size - 2)
    paid[1:-1:2] = reward
    ends = np.zeros(size, dtype=bool)
    ends[[0, -1]] = True
    return FactoredMDP.from_rows(
        rows, [Singleton([1.0 - up, up])], initial=[size // 2],
        labels={"ends": ends, "top": np.arange(size) == size - 1},
        rewards={"cost": Rewards(np.zeros(size), paid)},
    )  # fmt: skip


@pytest.mark.parametrize("precision", [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9])
@pytest.mark.parametrize(("size", "up"), [(5, 0.5), (101, 0.5), (61, 0.4), (61, 0.6)])
def test_precision_does_not_decide_whether_it_succeeds(precision, size, up):
    """Slowly mixing walks with free waiting are certified however precise the answer has to be."""
    model = walk_model(size, up)
    for spec in (
        Spec(Reach("top"), MAX, MIN),
        Spec(Reach("top"), MIN, MAX),
        Spec(ReachReward("ends", "cost"), MIN, MAX),
    ):
        found = solve(model, spec, limits=Limits(precision=precision))
        assert found.status is Status.CERTIFIED, (spec, found.at_initial())
        require_narrow(found)
    middle = size // 2
    if up == 0.5:
        at = found.at(middle)
        assert at.lower <= middle * (size - 1 - middle) <= at.upper


def test_a_minimiser_who_could_wait_for_ever_is_no_trap():
    """Waiting is free and never ends; the expected cost is that of walking."""
    found = solve(walk_model(41, 0.5), Spec(ReachReward("ends", "cost"), MIN, MIN)).at(20)
    assert found.lower <= 400.0 <= found.upper
    assert found.width <= 1e-6 * 400.0


@pytest.mark.parametrize("spec", [Spec(Reach("top"), MAX, MIN), Spec(Reach("top"), MIN, MAX)])
def test_policies_of_slow_components_are_found_by_solving_their_chains(spec):
    """A gambler who may bet small or large: the value is known, and many rows are about as good."""
    size = 201
    rows = [[([], [0])]]
    for i in range(1, size - 1):
        far = min(i, size - 1 - i)
        rows.append([([0], [i - 1, i + 1]), ([0], [i - far, i + far]), ([1], [i - 1, i + 1])])
    rows.append([([], [size - 1])])
    model = FactoredMDP.from_rows(
        rows, [Singleton([0.5, 0.5]), Singleton([0.625, 0.375])], initial=[size // 2],
        labels={"top": np.arange(size) == size - 1},
    )  # fmt: skip
    found = solve(model, spec, limits=Limits(precision=1e-9))
    assert found.status is Status.CERTIFIED
    require_narrow(found)
    ratio = 0.625 / 0.375
    for i in (1, 50, 100, 150, 199):
        fair, unfair = i / (size - 1), (ratio**i - 1.0) / (ratio ** (size - 1) - 1.0)
        value = fair if spec.agent is MAX else unfair
        assert found.lower[i] <= value * (1.0 + 1e-12)
        assert found.upper[i] >= value * (1.0 - 1e-12)
    assert verify(found).valid


def walk_through(problem: Problem, width: float) -> PlainWalk:
    """Return the finished walk through a problem without general components."""
    region = analyse(problem)
    assert plain.is_plain(region)
    packed = plain.pack(region)
    walk = PlainWalk(packed, problem, np.zeros(int(packed.component_ptr[-1])))
    walk.run(width, Clock(Limits()))
    assert walk.done
    return walk


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_make_progress_leave_every_component(seed):
    """Whatever was chosen before, the chain of these rows ends from every node."""
    model = random_model(seed, uncertain=True)
    problem = pose(model, Spec(OBJECTIVES[seed % 3], *PAIRS[seed % len(PAIRS)]))
    walk = walk_through(problem, 1e-3)
    packed, choice = walk.packed, walk.bounds.choice
    choice[:] = packed.row_ptr[:-1]
    entry_ptr, target = packed.rows[:2]
    for c in range(len(packed.single)):
        first, last = packed.component_ptr[c : c + 2]
        walk.make_progress(c)
        left: set[int] = set()
        for _ in range(first, last):
            for s in range(first, last):
                r = choice[s]
                moves = target[entry_ptr[r] : entry_ptr[r + 1]]
                if any(t in left or not first <= t < last for t in moves):
                    left.add(s)
        assert left == set(range(first, last))


def exact_drift(packed: plain.Packed, r: int, s: int, x: list[Fraction], nature: float) -> Fraction:
    """Return reward + sum p (x_k - x_s) in fractions: the slow twin of `drift`."""
    entry_ptr, target, low, slack, free, _, _, reward, _ = packed.rows
    entries = range(entry_ptr[r], entry_ptr[r + 1])
    total = Fraction(reward[r])
    for k in entries:
        total += Fraction(low[k]) * (x[target[k]] - x[s])
    rest = Fraction(free[r])
    for k in sorted(entries, key=lambda k: -nature * x[target[k]]):
        if rest > 0:
            total += min(rest, Fraction(slack[k])) * (x[target[k]] - x[s])
            rest -= min(rest, Fraction(slack[k]))
    return total


@pytest.mark.parametrize("seed", range(40))
def test_checked_bounds_are_inductive_in_fractions(seed):
    """What the compiled check accepts is inductive without any rounding."""
    model = random_model(seed, uncertain=True)
    spec = Spec(OBJECTIVES[seed % 3], *PAIRS[seed % len(PAIRS)])
    problem = pose(model, spec)
    walk = walk_through(problem, 1e-7)
    packed, (_, lower, upper, choice, _, _) = walk.packed, walk.bounds
    sign, nature = spec.agent.sign, 1.0 if spec.nature is MAX else -1.0
    row_ptr, (_, _, _, _, _, leave, _, _, _) = packed.row_ptr, packed.rows
    for side, bound in ((-1.0, lower), (1.0, upper)):
        x = [Fraction(v) for v in bound]
        for s in range(plain.FIRST, len(x)):
            rows = [r for r in range(row_ptr[s], row_ptr[s + 1]) if leave[r] > 0.0]
            drifts = [sign * exact_drift(packed, r, s, x, nature) for r in rows]
            assert side * sign * max(drifts) <= 0 or (side < 0.0 and x[s] == 0)
            if side == -sign and x[s] != 0:
                kept = exact_drift(packed, int(choice[s]), s, x, nature)
                assert side * kept <= 0


def test_large_boxes_and_tiny_products_are_left_to_the_inner_solver():
    """Rows that the packed form cannot hold are told, not bent."""
    tiny = Singleton([1e-200, 1.0 - 1e-200])
    model = FactoredMDP.from_rows(
        [[([0, 1], [1, 0, 0, 2])], [([], [1])], [([], [2])]], [tiny, tiny],
        labels={"goal": [False, True, False]},
    )  # fmt: skip
    problem = pose(model, Spec(Reach("goal"), MAX, MIN))
    assert not plain.is_plain(analyse(problem))


@pytest.mark.parametrize("seed", range(40))
def test_finite_horizons_enclose_exact_fractions(seed):
    """Bounds of plain steps hold against fractions, and what cannot happen has probability 0."""
    model = random_model(seed, uncertain=False)
    agent, nature = PAIRS[seed % len(PAIRS)]
    for objective in (Until("any", "goal", 7), Cumulative(5, "cost"), Cumulative(4, "cost", 0.9)):
        problem = pose(model, Spec(objective, agent, nature))
        assert plain.pack_all(problem) is not None
        found = solve(model, Spec(objective, agent, nature)).require_certified()
        require_narrow(found, np.ones(model.states, dtype=bool))
        exact = exact_steps(problem, problem.start.tolist())
        for s, value in enumerate(exact):
            assert found.lower[s] <= value <= found.upper[s], (objective, s)
            if value == 0:
                assert found.upper[s] == 0.0
