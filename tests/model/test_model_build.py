"""The Python builder against a plain twin and published sizes."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from examples import half
from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP, Variable
from rfmdp.model.build import build
from rfmdp.model.description import Action, Move
from rfmdp.model.validate import validate
from rfmdp.sets.families import Interval, Singleton, UncertaintySet

COIN = Singleton([0.5, 0.5])
ARRAYS = [
    "row_ptr",
    "marginal_ptr",
    "row_marginals",
    "successor_ptr",
    "successors",
    "initial",
    "row_actions",
    "valuations",
    "row_factors",
]


@dataclass
class RandomMove:
    """A move by tables over all valuations: which set, and the new value per outcome."""

    variable: int
    sets: list[UncertaintySet]
    choice: np.ndarray  # (domain,)
    result: np.ndarray  # (domain, sets, outcomes)


@dataclass
class RandomModel:
    """A description by tables that both the builder and the plain twin read."""

    ranges: list[tuple[int, int]]
    initial: list[tuple[int, ...]]
    enabled: list[np.ndarray]  # per action (domain,)
    moves: list[list[RandomMove]]  # per action
    update: list[np.ndarray | None]  # per action: new value of the last variable

    def index(self, state):
        """Return the place of valuations in the tables."""
        place = 0
        for x, (low, high) in zip(state, self.ranges, strict=True):
            place = place * (high - low + 1) + (x - low)
        return place


def random_model(seed: int) -> RandomModel:
    """Draw a small description; the last variable belongs to updates, the others to factors."""
    rng = np.random.default_rng(seed)
    ranges = [(low, low + rng.integers(0, 4)) for low in rng.integers(-2, 3, rng.integers(2, 5))]
    ranges = [(int(low), int(high)) for low, high in ranges]
    domain = int(np.prod([high - low + 1 for low, high in ranges]))
    sets = [
        Singleton([1.0]),
        Singleton([0.0, 1.0, 0.0]),
        COIN,
        Interval([0.1, 0.2, 0.1], [0.5, 0.6, 0.7]),
        Interval([0.1] * 4, [0.6] * 4),
    ]
    enabled, moves, update = [], [], []
    for _ in range(rng.integers(1, 4)):
        enabled.append(rng.random(domain) < 0.8)
        mine = []
        for v in range(len(ranges) - 1):
            if rng.random() < 0.7:
                chosen = [sets[k] for k in rng.integers(0, len(sets), rng.integers(1, 4))]
                low, high = ranges[v]
                result = rng.integers(low, high + 1, (domain, len(chosen), 4))
                mine.append(RandomMove(v, chosen, rng.integers(0, len(chosen), domain), result))
        moves.append(mine)
        low, high = ranges[-1]
        update.append(rng.integers(low, high + 1, domain) if rng.random() < 0.5 else None)
    initial = [tuple(int(rng.integers(low, high + 1)) for low, high in ranges) for _ in range(2)]
    return RandomModel(ranges, initial, enabled, moves, update)


def built(case: RandomModel) -> FactoredMDP:
    """Build a random description by frontiers."""
    names = [f"x{i}" for i in range(len(case.ranges))]

    def place(s):
        return case.index([s[name] for name in names])

    def move(m):
        def effect(s, identifier, outcome):
            return {names[m.variable]: m.result[place(s), identifier, outcome]}

        return Move(names[m.variable], m.sets, effect, lambda s: m.choice[place(s)])

    def action(a):
        table = case.update[a]
        return Action(
            f"act{a % 2}",
            [move(m) for m in case.moves[a]],
            guard=lambda s: case.enabled[a][place(s)],
            update=None if table is None else lambda s: {names[-1]: table[place(s)]},
            rewards={"r": lambda s: a + place(s)},
        )

    return build(
        dict(zip(names, case.ranges, strict=True)),
        [action(a) for a in range(len(case.moves))],
        initial=dict(zip(names, np.array(case.initial).T, strict=True)),
        labels={"even": lambda s: place(s) % 2 == 0},
    )


def plain_rows(case: RandomModel, state: tuple[int, ...]):
    """Return the rows of one state: (action number, sets of its marginals, successors)."""
    here, rows = case.index(state), []
    for a, moves in enumerate(case.moves):
        if not case.enabled[a][here]:
            continue
        marginals, outcomes = [], []
        for m in moves:
            j = m.choice[here]
            point = getattr(m.sets[j], "nominal", None)
            if isinstance(m.sets[j], Singleton) and 1.0 in point:
                outcomes.append([int(np.argmax(point))])
            else:
                marginals.append(id(m.sets[j]))
                outcomes.append(list(range(m.sets[j].size)))
        successors = []
        for combination in product(*outcomes):
            after = list(state)
            if case.update[a] is not None:
                after[-1] = int(case.update[a][here])
            for m, outcome in zip(moves, combination, strict=True):
                after[m.variable] = int(m.result[here, m.choice[here], outcome])
            successors.append(tuple(after))
        rows.append((a, marginals, successors))
    return rows


def plain(case: RandomModel):
    """Explore state by state with dictionaries."""
    found, queue = {}, list(case.initial)
    while queue:
        state = queue.pop()
        if state not in found:
            found[state] = plain_rows(case, state)
            queue += [after for _, _, successors in found[state] for after in successors]
    return found


def same(one: FactoredMDP, other: FactoredMDP) -> bool:
    """Whether two models have the same arrays."""
    arrays = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ARRAYS)
    names = one.actions == other.actions and one.marginal_names == other.marginal_names
    sets = np.array_equal(one.marginals.nominal, other.marginals.nominal)
    return arrays and names and sets


@given(st.integers(0, 2**32))
def test_builder_equals_plain_exploration(seed):
    """States, rows, marginals, successors, rewards and labels are those of the plain twin."""
    case = random_model(seed)
    model, expected = built(case), plain(case)
    assert not validate(model)
    states = [tuple(int(x) for x in values) for values in model.valuations]
    assert states == sorted(expected)
    assert sorted(states[s] for s in model.initial) == sorted(set(case.initial))
    objects: dict[int, int] = {}
    for s, state in enumerate(states):
        rows = expected[state]
        assert model.labels["even"][s] == (case.index(state) % 2 == 0)
        assert model.label("deadlock")[s] == (not rows)
        if not rows:
            r = model.row_ptr[s]
            assert model.row_ptr[s + 1] == r + 1
            assert model.successors[model.successor_ptr[r] : model.successor_ptr[r + 1]] == [s]
            assert model.actions[model.row_actions[r]] == ""
            continue
        assert model.row_ptr[s + 1] - model.row_ptr[s] == len(rows)
        for r, (a, marginals, successors) in enumerate(rows, start=model.row_ptr[s]):
            part = slice(model.successor_ptr[r], model.successor_ptr[r + 1])
            assert [states[t] for t in model.successors[part]] == successors
            ids = model.row_marginals[model.marginal_ptr[r] : model.marginal_ptr[r + 1]]
            assert [objects.setdefault(int(j), m) for j, m in zip(ids, marginals, strict=True)] == (
                marginals
            )
            assert model.actions[model.row_actions[r]] == f"act{a % 2}"
            assert model.rewards["r"].row[r] == a + case.index(state)
    assert len(set(objects.values())) == len(objects) == len(model.marginals)


@given(st.integers(0, 2**32))
@half
def test_dense_and_hashed_lookup_agree(seed):
    """The way codes are looked up does not show in the model."""
    case = random_model(seed)
    dense = built(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rfmdp.model.packing.DENSE_LIMIT", 0)
        assert same(dense, built(case))


def test_building_twice_gives_the_same_model(described):
    """Building is deterministic."""
    assert same(described.sysadmin(4, 3), described.sysadmin(4, 3))


def test_small_slices_give_the_same_model(described, monkeypatch):
    """How frontiers are cut does not show in the model."""
    whole = described.drone(size=3)
    monkeypatch.setattr("rfmdp.model.build.SLICE", 7)
    assert same(whole, described.drone(size=3))


def test_hash_table_grows(described, monkeypatch):
    """More states than the first table holds are found again."""
    dense = described.drone(5)
    monkeypatch.setattr("rfmdp.model.packing.DENSE_LIMIT", 0)
    assert same(dense, described.drone(5))


@pytest.mark.parametrize(
    ("name", "states", "transitions"),
    [("chain", 100, 3136), ("aircraft", 11153, 1262099), ("sysadmin", 15873, 9332587)],
)
def test_sizes_are_as_published(described, name, states, transitions):
    """Domains have the sizes of the paper's table."""
    model = getattr(described, name)()
    assert (model.states, model.transitions) == (states, transitions)
    assert not validate(model)


@pytest.mark.slow
def test_drone_is_as_published(described):
    """The largest domain has the size of the paper's table."""
    model = described.drone()
    assert (model.states, model.transitions) == (262144, 21694720)


def test_a_transition_costs_at_most_five_bytes(described):
    """Only `successors` grows with transitions; all else is per state, row or marginal."""
    model = described.sysadmin(6, 2)
    assert model.successors.nbytes <= 5 * model.transitions
    others = sum(getattr(model, name).nbytes for name in ARRAYS if name != "successors")
    per_row = int(np.diff(model.marginal_ptr).max())
    assert others <= (16 + 4 + 8 * per_row) * (model.rows + 1) + 48 * (model.states + 1)


def test_one_object_is_one_marginal_everywhere():
    """A set used by two factors and two actions has one identifier; an equal one has another."""
    twin = Singleton([0.5, 0.5])

    def toss(name, uset):
        return Move(name, uset, lambda s, j, outcome: {name: outcome})

    model = build(
        {"a": (0, 1), "b": (0, 1)},
        [
            Action("both", [toss("a", COIN), toss("b", COIN)]),
            Action("other", [toss("a", twin), toss("b", {"fair": COIN})]),
        ],
        initial={"a": 0, "b": 0},
    )
    assert len(model.marginals) == 2
    assert model.row_marginals.tolist() == 4 * [0, 0, 1, 0]
    assert model.row_factors.tolist() == 4 * [0, 1, 0, 1]
    assert model.marginal_names == ("a, both", "a, other")


def test_certain_moves_are_no_marginals():
    """Sets with one possible outcome move for certain, whatever their family."""
    for uset in (Singleton([1.0]), Singleton([0.0, 1.0]), Interval([0.0, 1.0], [0.0, 1.0])):
        outcome = uset.size - 1
        move = Move(
            "x", uset, lambda s, j, o, want=outcome: {"x": np.full(len(s), 5 * (o == want))}
        )
        model = build({"x": (0, 5)}, [Action("go", [move])], initial={"x": 0})
        assert len(model.marginals) == 0
        assert model.valuations[:, 0].tolist() == [0, 5]
        assert model.successors.tolist() == [1, 1]


def test_unreachable_marginals_are_left_out():
    """A set that no reachable row uses is not part of the model."""
    rare = Singleton([0.3, 0.7])
    move = Move(
        "x", [COIN, rare], lambda s, j, o: {"x": o}, identify=lambda s: (s.x == 3).astype(int)
    )
    model = build({"x": (0, 3)}, [Action("go", [move])], initial={"x": 0})
    assert len(model.marginals) == 1


def test_outcomes_may_leave_variables_alone():
    """A variable that an outcome does not mention keeps its value."""
    move = Move("x", COIN, lambda s, j, o: {"x": (s.x + 1) % 3} if o else {})
    model = build({"x": (0, 2)}, [Action("go", [move])], initial={"x": 0})
    assert model.successors.tolist() == [0, 1, 1, 2, 2, 0]


def test_several_initial_states():
    """Arrays give several initial states; one value stands for all."""
    model = build(
        [Variable("x", 0, 9), Variable("up", 0, 1, boolean=True)],
        [Action("wait")],
        initial={"x": [7, 2, 2], "up": True},
    )
    assert model.valuations.tolist() == [[2, 1], [7, 1]]
    assert model.initial.tolist() == [0, 1]


def test_a_large_domain_is_hashed():
    """A domain far too large for a table works; one beyond 2^62 is refused."""
    ranges = {"x": (0, 2**31 - 1), "y": (-(2**30), 2**30 - 1)}
    jump = Action("jump", update=lambda s: {"x": np.minimum(s.x + 2**29, 2**31 - 1)})
    model = build(ranges, [jump], initial={"x": 0, "y": 5})
    assert model.states == 5
    with pytest.raises(ModelError, match=r"at most 2\^62, got 9.22e\+18"):
        build({**ranges, "z": (0, 1)}, [jump], initial={"x": 0, "y": 5, "z": 0})
