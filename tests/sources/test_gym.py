"""Learning from Gymnasium environments."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rfmdp as rf
from learning.tiny import identified
from rfmdp.learning.methods import (
    ANYTIME,
    GAP_DIRECTED,
    LogSpaced,
    Optimistic,
    RewardRange,
    StopWhen,
)
from rfmdp.sources.gym.models import actions_of, entries_of, known_table, read
from rfmdp.sources.trajectories import Tally, Trajectories, record

from .model_env import ModelEnv

GOAL = 'Pmaxmin=? [ F "goal" ]'
LAKE = 'Pmaxmin=? [ F<=20 "goal" ]'


def grid(p=0.7, q=0.6):
    """Return two coordinates that move independently, until both are at the end."""
    return coordinates({"x": rf.Singleton([1 - p, p]), "y": rf.Singleton([1 - q, q])})


def coordinates(sets):
    """Return the same, with any sets."""

    def step(name):
        move = lambda s, identifier, outcome: {name: np.minimum(s[name] + outcome, 2)}  # noqa: E731
        return rf.Move(name, {name: sets[name]}, move)

    def ahead(s):
        return (s.x < 2) | (s.y < 2)

    return rf.build(
        {"x": (0, 2), "y": (0, 2)},
        [
            rf.Action("both", [step("x"), step("y")], lambda s: (s.x < 2) & (s.y < 2)),
            rf.Action("one", [step("x")], lambda s: ahead(s) & (s.x < 2)),
            rf.Action("other", [step("y")], lambda s: ahead(s) & (s.y < 2)),
        ],
        initial={"x": 0, "y": 0},
        labels={"goal": lambda s: (s.x == 2) & (s.y == 2)},
        rewards={"reward": lambda s: 1.0 * ahead(s)},
    )


def same_runs(one, other):
    assert_array_equal(one.counts, other.counts)
    assert_array_equal(one.looks, other.looks)
    assert_array_equal(one.policy.rows, other.policy.rows)
    fields = ("trajectories", "guarantee", "fresh", "optimistic", "replans", "visited")
    for name in fields:
        assert_array_equal(one.column(name), other.column(name))


@pytest.mark.parametrize("method", [ANYTIME, GAP_DIRECTED])
def test_the_interface_changes_nothing(method):
    """Same seeds: counts, guarantees and policies are those of learning from the simulator."""
    model = grid()
    words = {"stop": StopWhen(trajectories=300), "length": 8, "seed": 5, "method": method}
    plain = rf.learn(model, LAKE, **words)
    through = rf.learn(rf.GymSource(ModelEnv(model, 5), model), LAKE, **words)
    same_runs(plain, through)
    assert np.isnan(through.column("performance")).all()
    assert "the observation of the environment is its state" in through.statement()


def test_the_interface_changes_nothing_for_a_hidden_truth():
    """A factored environment that keeps its probabilities, learned by its structure alone."""
    known = coordinates({"x": rf.unknown(2), "y": rf.unknown(2)})
    words = {"stop": StopWhen(trajectories=300), "length": 8, "seed": 5}
    plain = rf.learn(rf.Simulated(grid(), known), LAKE, **words)
    through = rf.learn(rf.GymSource(ModelEnv(grid(), 5), known), LAKE, **words)
    same_runs(plain, through)
    assert through.guarantee > 0.5


def walled():
    """Return a walk between two walls, where steps of different lengths look alike."""
    return rf.parse_prism("""mdp module a x : [0..4];
      [go] true -> 0.3:(x'=min(x+1,4)) + 0.5:(x'=min(x+2,4)) + 0.2:(x'=max(x-1,0));
      [stay] true -> 0.5:(x'=x) + 0.5:(x'=max(x-1,0)); endmodule label "done" = x=4;""")


def test_the_interface_changes_nothing_where_outcomes_are_merged():
    """An environment that draws what can be told apart, as the simulator does."""
    model = walled()
    goal, words = 'Pmaxmin=? [ F<=8 "done" ]', {"stop": StopWhen(300), "length": 10, "seed": 3}
    words["schedule"] = rf.Doubling(
        factor=1e9
    )  # environments notice a doubled count a little later
    source = rf.GymSource(ModelEnv(identified(model).model, 3), model)
    same_runs(rf.learn(model, goal, **words), rf.learn(source, goal, **words))


def test_trajectories_are_those_of_the_simulator():
    """The environment of a model has the states that `record` writes down for its policy."""
    model = walled()
    policy = rf.solve(model, 'Pmax=? [ F<=8 "done" ]').policy
    data = record(model, policy, steps=8, trajectories=20, seed=11)
    source = rf.GymSource(ModelEnv(model, 11), model)
    counted = identified(model).model
    tally = Tally.empty(counted)
    never = np.full(len(counted.marginals), np.iinfo(np.int64).max)
    source.sampler(counted)(Trajectories(rf_behaviour(policy), 8, 20, 11), never, tally)
    wanted = Tally.empty(counted)
    wanted.add(counted, data.rows, data.successors)
    assert_array_equal(tally.counts, wanted.counts)


def rf_behaviour(policy):
    from rfmdp.sources.trajectories import Behaviour

    return Behaviour(policy.rows)


class Steps(gymnasium.Env):
    """Counts up to n and terminates, or is truncated before; observations as a space wants them."""

    def __init__(self, space, n=3, limit=None, truth=0.5):
        self.observation_space, self.action_space = space, spaces.Discrete(2)
        self._n, self._limit, self._truth = n, limit, truth

    def _seen(self):
        x = self._x
        if isinstance(self.observation_space, spaces.Discrete):
            return x
        if isinstance(self.observation_space, spaces.MultiDiscrete):
            return np.array([x, 0])
        if isinstance(self.observation_space, spaces.MultiBinary):
            return np.array([x >= 1, x >= 2, x >= 3], dtype=np.int8)
        if isinstance(self.observation_space, spaces.Tuple):
            return (x, 0)
        return {"b": 0, "a": x}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._x = self._t = 0
        return self._seen(), {}

    def step(self, action):
        self._t += 1
        self._x += int(self.np_random.random() < self._truth)
        over = self._x == self._n
        return self._seen(), 1.0, over, not over and self._t == self._limit, {}


class Jumps(Steps):
    """Goes to the end in one step."""

    def step(self, action):
        self._x = self._n
        return self._seen(), 1.0, True, False, {}


class Pays(Steps):
    """Pays something else."""

    def __init__(self, space, paid):
        super().__init__(space)
        self._paid = paid

    def step(self, action):
        seen, _, *rest = super().step(action)
        return seen, self._paid, *rest


def counter(names, values, n=3):
    """Return the structure of `Steps`: up or not, with one unknown."""
    up = rf.unknown(2)

    def effect(s, identifier, outcome):
        at = np.sum([s[name] for name in values], axis=0)
        if len(values) == 1:
            return {values[0]: s[values[0]] + outcome}
        return {name: (at + outcome > i).astype(int) for i, name in enumerate(values)}

    def ahead(s):
        return np.sum([s[name] for name in values], axis=0) < n

    return rf.build(
        names,
        [rf.Action(a, [rf.Move("x", {"up": up}, effect)], ahead) for a in ("a0", "a1")],
        initial={name: low for name, (low, _) in names.items()},
        labels={"goal": lambda s: ~ahead(s)},
        rewards={"reward": lambda s: 1.0 * ahead(s)},
    )


SPACES = {
    "discrete": (spaces.Discrete(4), {"x": (0, 3)}, ["x"]),
    "multi-discrete": (spaces.MultiDiscrete([4, 2]), {"x": (0, 3), "y": (0, 1)}, ["x"]),
    "multi-binary": (spaces.MultiBinary(3), {f"b{i}": (0, 1) for i in range(3)}, None),
    "tuple": (spaces.Tuple((spaces.Discrete(4), spaces.Discrete(2))), {"x": (0, 3), "y": (0, 1)},
              ["x"]),
    "dict": (spaces.Dict({"a": spaces.Discrete(4), "b": spaces.Discrete(2)}),
             {"a": (0, 3), "b": (0, 1)}, ["a"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SPACES)
def test_all_discrete_observations(name):
    """The same system in five shapes gives the same counts."""
    space, names, values = SPACES[name]
    model = counter(names, values or list(names))
    words = {"stop": StopWhen(trajectories=150), "length": 10, "seed": 1}
    run = rf.learn(rf.GymSource(Steps(space), model), 'Pmaxmin=? [ F<=9 "goal" ]', **words)
    assert run.history[-1].guarantee > 0.3


def test_truncation_counts_the_step_and_ends_nothing():
    """Steps of truncated episodes are counted; no end of an episode is claimed."""
    model = counter({"x": (0, 3)}, ["x"])
    source = rf.GymSource(Steps(spaces.Discrete(4), limit=2, truth=1.0), model)
    run = rf.learn(source, LAKE, stop=StopWhen(trajectories=100), length=10)
    assert run.history[-1].steps == 200
    assert run.counts.tolist() == [0, 200]


def test_an_end_that_the_structure_does_not_know_is_an_error():
    """Terminated where actions are enabled: the value of that state would be wrong."""
    model = counter({"x": (0, 3)}, ["x"])
    with pytest.raises(rf.ModelError, match=r"terminated in \(x=2\).*guards"):
        rf.learn(rf.GymSource(Steps(spaces.Discrete(4), n=2), model), GOAL, length=10)


def test_a_state_that_the_structure_does_not_have_is_an_error():
    """Nothing is dropped."""
    model = counter({"x": (0, 3)}, ["x"])
    source = rf.GymSource(Jumps(spaces.Discrete(9), n=7), model)
    with pytest.raises(rf.ModelError, match=r"found \(x=7\).*void"):
        rf.learn(source, GOAL, length=10)


def test_a_successor_that_was_not_declared_is_an_error():
    """A jump is none of the declared outcomes."""
    source = rf.GymSource(Jumps(spaces.Discrete(4)), counter({"x": (0, 3)}, ["x"]))
    with pytest.raises(rf.ModelError, match="declared successors"):
        rf.learn(source, GOAL, length=3)


class Wear(Steps):
    """Shows half-way values, whatever its space says."""

    def _seen(self):
        x = 0.5 * self._x
        return {"a": np.array([x])} if isinstance(self.observation_space, spaces.Dict) else x


HALVES = [
    (spaces.Discrete(4), None, r"value of x in 0\.5 must be a whole number, found 0\.5"),
    (spaces.MultiDiscrete([4]), None, r"value of x in 0\.5 must be a whole number, found 0\.5"),
    (spaces.Box(0.0, 4.0, ()), lambda o: [o], "value of x in .* found 0.5"),
    (spaces.Discrete(4), lambda o: [float(o)], r"value of x in .* found 0\.5.*Markov"),
    (spaces.Discrete(4), lambda o: ["0"], "found '0'"),
    (spaces.Discrete(4), lambda o: [np.nan], "found nan"),
    (spaces.Discrete(4), lambda o: {"x": 0}, r"`observe` must give a list of .* x.*found \{'x': 0"),
    (spaces.Discrete(4), lambda o: 0, r"`observe` must give a list of the values of x.*found 0"),
    (
        spaces.Discrete(4),
        lambda o: "0",
        r"`observe` must give a list of the values of x.*found '0'",
    ),
    (spaces.Discrete(4), lambda o: [0, 0], r"list of the values of x, .* found \[0, 0\]"),
]


@pytest.mark.parametrize(("space", "observe", "message"), HALVES)
def test_observations_are_whole_numbers(space, observe, message):
    """Nothing is cut to a whole number: what follows would depend on the rest."""
    source = rf.GymSource(Wear(space), counter({"x": (0, 3)}, ["x"]), observe=observe)
    with pytest.raises(rf.ModelError, match=message):
        rf.learn(source, GOAL, length=10)


def test_real_numbers_may_be_translated():
    """Observations that differ in their fractions only are different ones, also in a Dict."""
    space = spaces.Dict({"a": spaces.Box(0.0, 4.0, (1,))})
    model = counter({"x": (0, 3)}, ["x"])
    source = rf.GymSource(Wear(space), model, observe=lambda o: [2.0 * o["a"][0]])
    run = rf.learn(source, GOAL, stop=StopWhen(trajectories=100), length=10)
    assert 0.35 < run.counts[1] / run.counts.sum() < 0.65


def test_an_observation_of_a_known_table_is_whole():
    """A number between two states is none."""
    env = gymnasium.make("FrozenLake-v1")
    source = rf.GymSource(env, rf.gym_model(env))
    assert source.state(4.0) == source.state(4)
    with pytest.raises(rf.ModelError, match=r"an observation must be a whole number, found 4\.5"):
        source.state(4.5)


def test_payments_are_compared_with_declared_rewards():
    """The environment pays 1 for each step; a structure that says 2 is wrong."""
    model = counter({"x": (0, 3)}, ["x"])
    wrong = rf.Rewards(2.0 * model.rewards["reward"].state, model.rewards["reward"].row)
    with pytest.raises(rf.ModelError, match=r"paid 1, must pay the declared 2"):
        rf.learn(
            rf.GymSource(Steps(spaces.Discrete(4)), replace(model, rewards={"reward": wrong})),
            GOAL, length=5,
        )  # fmt: skip


@pytest.mark.parametrize("paid", [np.nan, np.inf, None])
def test_payments_are_numbers(paid):
    """NaN is no payment: not the declared one, and none to learn from."""

    class Odd(Steps):
        def step(self, action):
            seen, _, *rest = super().step(action)
            return seen, paid, *rest

    model = counter({"x": (0, 8)}, ["x"], n=8)
    source = rf.GymSource(Odd(spaces.Discrete(9), n=8), model)
    words = {"stop": StopWhen(trajectories=50), "length": 2}
    message = r"\(x=\d\), action a\d paid (NaN|inf), must pay a finite number"
    for rewards in (None, RewardRange(0.0, 2.0)):
        with pytest.raises(rf.ModelError, match=message):
            rf.learn(source, 'R{"reward"}maxmin=? [ C<=5 ]', rewards=rewards, **words)


def test_nothing_is_paid_after_the_end():
    """A structure that pays in terminal states, for ever, is wrong."""
    model = counter({"x": (0, 3)}, ["x"])
    ever = {"reward": rf.Rewards(np.ones(model.states), np.zeros(model.rows))}
    source = rf.GymSource(Steps(spaces.Discrete(4)), replace(model, rewards=ever))
    with pytest.raises(rf.ModelError, match=r"terminated in \(x=3\).*pay 1 for ever"):
        rf.learn(source, GOAL, length=20)


def test_rewards_are_learned_from_what_is_paid():
    """Nothing is declared: the learner finds that a step pays 1."""
    model = counter({"x": (0, 3)}, ["x"])
    none = rf.Rewards(np.zeros(model.states), np.zeros(model.rows))
    source = rf.GymSource(Steps(spaces.Discrete(4)), replace(model, rewards={"reward": none}))
    run = rf.learn(
        source, 'R{"reward"}maxmin=? [ C<=5 ]', rewards=RewardRange(0.0, 2.0),
        stop=StopWhen(trajectories=2000), length=6, points=LogSpaced(2),
    )  # fmt: skip
    assert 2.5 < run.guarantee < 5.0
    assert rf.verify(run).valid
    # the next run of the same source compares what is declared, and begins with no payments
    with pytest.raises(rf.ModelError, match=r"paid 1, must pay the declared 0"):
        rf.learn(source, 'R{"reward"}maxmin=? [ C<=5 ]', length=6)
    near = 'R{"reward"}maxmin=? [ F x=1 ]'
    words = {"rewards": RewardRange(0.0, 2.0), "stop": StopWhen(trajectories=50)}
    rf.learn(source, near, length=6, **words)
    again = source.payer("reward")(np.arange(model.rows), np.ones(model.rows))
    assert not again.sums.any()


@pytest.mark.parametrize("ends", [(0.9, 1.1), (-2.0, -0.5)])
def test_nothing_is_learned_of_what_is_paid_after_the_end(ends):
    """An end of the range would be paid for ever: 0 must lie in it."""
    source = rf.GymSource(Pays(spaces.Discrete(4), paid=ends[1]), counter({"x": (0, 3)}, ["x"]))
    words = {"rewards": RewardRange(*ends), "stop": StopWhen(trajectories=300)}
    for goal in ('R{"reward"}maxmin=? [ C<=100 ]', 'R{"reward"}minmax=? [ C<=100 ]'):
        with pytest.raises(rf.ModelError, match=r"over in \(x=3\).*range must contain 0, found \["):
            rf.learn(source, goal, length=30, **words)
    if ends[0] > 0.0:  # there the end is the target, behind which nothing counts
        run = rf.learn(source, 'R{"reward"}maxmin=? [ F "goal" ]', length=30, **words)
        assert run.history


def test_wrong_structures_are_refused_with_what_is_wanted():
    """Variables, actions and spaces must fit."""
    model = counter({"x": (0, 3)}, ["x"])
    with pytest.raises(rf.ModelError, match=r"a variable per entry.*x_0, x_1"):
        rf.GymSource(Steps(spaces.MultiDiscrete([4, 2])), model)
    with pytest.raises(rf.ModelError, match=r"2 actions must have the names.*a0, a1.*found only"):
        rf.GymSource(Steps(spaces.Discrete(4)), model, actions=["only"])
    with pytest.raises(rf.UnsupportedError, match="found Box"):
        rf.GymSource(Steps(spaces.Box(0, 1)), model)
    wide = rf.build(
        {"x": (0, 3)},
        [rf.Action(a, [], None, lambda s: {"x": (s.x + 1) % 4}) for a in "ab"],
        initial={"x": 1},
    )
    source = rf.GymSource(Steps(spaces.Discrete(4)), wide)
    with pytest.raises(rf.ModelError, match=r"a reset gave \(x=0\)"):
        rf.learn(source, "Pmaxmin=? [ F x=3 ]", length=2)


def test_spaces_are_read_in_order():
    """Names, ranges and elements."""
    space = spaces.Dict({
        "m": spaces.MultiDiscrete([3, 2], start=[1, 0]), "b": spaces.MultiBinary(2),
        "t": spaces.Tuple((spaces.Discrete(2), spaces.Discrete(5, start=-2))),
    })  # fmt: skip
    assert [e.name for e in entries_of(space)] == ["b_0", "b_1", "m_0", "m_1", "t_0", "t_1"]
    assert [(e.low, e.high) for e in entries_of(space)][2:] == [(1, 3), (0, 1), (0, 1), (-2, 2)]
    element = {"t": (1, -2), "m": np.array([3, 0]), "b": np.array([0, 1], dtype=np.int8)}
    assert read(space, element) == [0, 1, 3, 0, 1, -2]
    assert actions_of(spaces.Discrete(2, start=3)) == [3, 4]
    with pytest.raises(rf.UnsupportedError, match="must be Discrete, found MultiDiscrete; take"):
        actions_of(spaces.MultiDiscrete([2, 2]))


PARTS = st.one_of(
    st.builds(lambda n, low: spaces.Discrete(n, start=low), st.integers(1, 5), st.integers(-3, 3)),
    st.lists(st.integers(1, 4), min_size=1, max_size=3).map(spaces.MultiDiscrete),
    st.integers(1, 3).map(spaces.MultiBinary),
)
NESTED = st.recursive(
    PARTS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
        st.dictionaries(st.sampled_from("abcd"), inner, min_size=1, max_size=3).map(spaces.Dict),
    ),
    max_leaves=5,
)


@given(NESTED, st.integers(0, 100))
def test_elements_are_read(space, seed):
    """Every entry lies in its range."""
    space.seed(seed)
    entries = entries_of(space)
    line = read(space, space.sample())
    assert len(line) == len(entries)
    assert all(e.low <= x <= e.high for e, x in zip(entries, line, strict=True))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("FrozenLake-v1", {}), ("FrozenLake-v1", {"map_name": "8x8", "success_rate": 0.8}),
        ("Taxi-v4", {"is_rainy": True}), ("Taxi-v4", {}), ("CliffWalking-v1", {}),
    ],
)  # fmt: skip
def test_tables_become_exact_models(name, options):
    """Every row has the distribution, and pays the mean reward, of the table."""
    env = gymnasium.make(name, **options)
    model, table = rf.gym_model(env), env.unwrapped.P
    observe = known_table(env).values
    assert not rf.validate(model)
    flat = model.nominal()
    reward = next(iter(model.rewards.values())).row
    number = {tuple(v): s for s, v in enumerate(model.valuations.tolist())}
    checked = 0
    for s, by_action in table.items():
        state = number.get(tuple(observe(s)))
        if state is None or model.label("terminal")[state]:
            continue
        rows = range(model.row_ptr[state], model.row_ptr[state + 1])
        assert len(rows) == len(by_action)
        for row, entries in zip(rows, by_action.values(), strict=True):
            wanted = {}
            for p, after, _, _ in entries:
                at = number[tuple(observe(after))]
                wanted[at] = wanted.get(at, 0.0) + p
            assert reward[row] == pytest.approx(sum(e[0] * e[2] for e in entries))
            assert distribution(flat, row) == pytest.approx(wanted)
            checked += 1
    assert checked > 40


def distribution(model, row):
    """Return the successors of a row with at most one marginal."""
    after = model.successors[model.successor_ptr[row] : model.successor_ptr[row + 1]].tolist()
    own = model.row_marginals[model.marginal_ptr[row] : model.marginal_ptr[row + 1]]
    p = model.marginals[int(own[0])].nominal if len(own) else [1.0]
    found = {}
    for state, x in zip(after, p, strict=True):
        found[state] = found.get(state, 0.0) + float(x)
    return found


def test_frozen_lake_is_learned_from_interaction_only():
    """A guarantee below the optimum, and a policy that can be asked."""
    env = gymnasium.make("FrozenLake-v1")
    lake = rf.gym_model(env)  # its probabilities are not looked at
    source, words = rf.GymSource(env, lake), {"length": 100, "points": LogSpaced(1)}
    run = rf.learn(source, 'Pmaxmin=? [ F<=100 "goal" ]', stop=StopWhen(400), **words)
    best = rf.check(lake, 'Pmax=? [ F<=100 "goal" ]').value
    assert 0.5 < run.guarantee < best
    observation, _ = env.reset(seed=1)
    assert source.agent(run.policy)(observation, step=0) in range(4)


def test_the_guarantee_is_for_the_worst_of_several_starts():
    """Taxi begins anywhere; the structure has moves that slip, the rain is learned."""
    env = gymnasium.make("Taxi-v4", is_rainy=True, rainy_probability=0.9)
    taxi = rf.gym_model(gymnasium.make("Taxi-v4", is_rainy=True))  # of another rain
    assert len(taxi.initial) == 300
    source, goal = rf.GymSource(env, taxi), 'F<=25 "terminal" ]'
    run = rf.learn(source, f"Pmaxmin=? [ {goal}", stop=StopWhen(trajectories=200), length=25)
    truth = rf.solve(rf.gym_model(env), f"Pmax=? [ {goal}")
    assert 0.5 < run.guarantee < truth.lower[taxi.initial].min()
    assert "the policy's value in every initial state" in run.statement()


def test_moves_by_parents():
    """One unknown per combination of parents; effects, what is known of them, and mistakes."""
    names = {"x": (0, 3), "wet": (0, 1)}
    effects = [lambda s: {}, lambda s: {"x": np.minimum(s.x + 1, 3)}]
    move = rf.unknown_move(names, "walk", parents=["wet"], effects=effects)
    priors = [rf.Interval([0.1, 0.5], [0.5, 0.9]) for _ in move.marginals]
    move = replace(move, marginals=priors)
    model = rf.build(names, [rf.Action("go", [move])], initial={"x": 0, "wet": 1})
    assert model.states == 4
    assert_allclose(model.marginals.lower, priors[1].lower)
    with pytest.raises(rf.ModelError, match="must be one of the variables x, wet"):
        rf.unknown_move(names, "x", parents=["dry"])


def test_environments_are_opened_by_name(capsys):
    """In Python and on the command line; mistakes are one line."""
    from rfmdp.cli.main import run

    assert rf.open_model("gym:FrozenLake-v1(map_name='8x8')").states == 64
    assert (
        run(["solve", "gym:FrozenLake-v1(is_slippery=False)", "--prop", 'Pmax=? [ F "goal" ]']) == 0
    )
    assert "Result: 1" in capsys.readouterr().out
    with pytest.raises(rf.ModelError, match="must be the name of a registered one"):
        rf.open_model("gym:NoSuchLake-v1")
    with pytest.raises(rf.ModelError, match="map_nam"):
        rf.open_model("gym:FrozenLake-v1(map_nam='8x8')")
    with pytest.raises(rf.UnsupportedError, match="must have a table P"):
        rf.open_model("gym:Blackjack-v1")


LAKE_FILE = """mdp
module walker
  row : [0..3]; column : [0..3];
  [left] !over -> [0,1]:(row'=max(row-1,0)) + [0.2,0.5]:(column'=max(column-1,0))
                + [0,1]:(row'=min(row+1,3));
  [down] !over -> [0,1]:(column'=max(column-1,0)) + [0.2,0.5]:(row'=min(row+1,3))
                + [0,1]:(column'=min(column+1,3));
  [right] !over -> [0,1]:(row'=min(row+1,3)) + [0.2,0.5]:(column'=min(column+1,3))
                 + [0,1]:(row'=max(row-1,0));
  [up] !over -> [0,1]:(column'=min(column+1,3)) + [0.2,0.5]:(row'=max(row-1,0))
              + [0,1]:(column'=max(column-1,0));
endmodule
formula over = (row=1 & (column=1 | column=3)) | (row=2 & column=3)
             | (row=3 & column!=1 & column!=2);
label "goal" = row=3 & column=3;
"""


def test_a_prism_file_with_intervals_is_a_structure(tmp_path, capsys):
    """The lake in the PRISM language, learned from the environment on the command line."""
    from rfmdp.cli.main import run

    file = tmp_path / "lake.prism"
    file.write_text(LAKE_FILE)
    words = ["learn", str(file), "--env", "FrozenLake-v1", "--actions", "left,down,right,up"]
    words += ["--prop", 'Pmaxmin=? [ F<=100 "goal" ]', "--trajectories", "300"]
    assert run(words) == 0
    out = capsys.readouterr().out
    assert 0.2 < float(out.rpartition("Result: ")[2]) < 0.7442
    assert "4 of 4 marginals lie in the sets of the model" in out
    assert run([*words, "--seeds", "2"]) == 1
    assert "--env is one source" in capsys.readouterr().err


def test_rewards_that_depend_on_the_successor_are_learned():
    """Frozen Lake pays where it ends: the mean of every row is learned beside its moves."""
    lake = rf.gym_model("FrozenLake-v1")
    none = {"reward": rf.Rewards(np.zeros(lake.states), np.zeros(lake.rows))}
    source = rf.GymSource("FrozenLake-v1", replace(lake, rewards=none))
    run = rf.learn(
        source, 'R{"reward"}maxmin=? [ C<=20 ]', rewards=RewardRange(0.0, 1.0),
        stop=StopWhen(trajectories=1500), length=20, exploration=Optimistic(other=0.1), beta=0.1,
        points=LogSpaced(2),
    )  # fmt: skip
    best = rf.check(lake, 'Pmax=? [ F<=20 "goal" ]').value
    assert 0.0 <= run.guarantee < best < run.history[-1].optimistic
    assert rf.verify(run).valid


@pytest.mark.parametrize("name", ["expected_reward", "reward", None])
def test_expected_rewards_of_a_table_are_not_known(name):
    """They are made of the table's probabilities, which may be others than the environment's."""
    slippery = rf.gym_model(gymnasium.make("FrozenLake-v1"))
    source = rf.GymSource(gymnasium.make("FrozenLake-v1"), slippery)
    spec = rf.Spec(rf.Cumulative(30, name))
    with pytest.raises(rf.ModelError, match=r"expected_reward.*RewardRange"):
        rf.learn(source, spec, length=30)
    with pytest.raises(rf.ModelError, match=r"expected_reward.*RewardRange"):
        rf.learn(slippery, spec, length=30)
    words = {"stop": StopWhen(trajectories=200), "length": 30}
    if name != "reward":
        rewards = RewardRange(0.0, 1.0)
        assert rf.learn(source, spec, rewards=rewards, **words).guarantee <= 1.0


def test_the_agent_asks_for_the_step():
    """A policy of a finite horizon is for its steps; what is no step is refused."""
    model = counter({"x": (0, 3)}, ["x"])
    rows = np.stack([model.row_ptr[:-1]] * 6)
    rows[1:] += np.diff(model.row_ptr) > 1  # a0 at first, a1 then
    act = rf.GymSource(Steps(spaces.Discrete(4)), model).agent(rf.Policy(rows))
    assert [act(0, step=k) for k in (0, 1, 5)] == [0, 1, 1]
    wrong = {None: r"depends on the number of steps.*step=k", -1: "from 0 on", 0.5: "from 0 on",
             6: "at most 5; found 6"}  # fmt: skip
    for step, message in wrong.items():
        with pytest.raises(rf.ModelError, match=message):
            act(0, step=step)


def test_copies_are_refused():
    """Episodes come from one environment."""
    vector = gymnasium.vector.SyncVectorEnv([lambda: Steps(spaces.Discrete(4))] * 3)
    with pytest.raises(rf.UnsupportedError, match="take one copy of a vectorised environment"):
        rf.GymSource(vector, counter({"x": (0, 3)}, ["x"]))


def test_names_that_would_be_understood_are_told():
    """On the command line there is no `observe`: FrozenLake is read by its known variables."""
    lake = gymnasium.make("FrozenLake-v1")
    stay = rf.build({"r": (0, 3), "c": (0, 3)}, [rf.Action("a")], initial={"r": 0, "c": 0})
    with pytest.raises(rf.ModelError, match="found r, c; call them row, column, or give"):
        rf.GymSource(lake, stay)


class Walk(gymnasium.Env):
    """A walk that is risky with action 3, and gets nowhere with the others."""

    action_space = spaces.Discrete(4)

    def __init__(self, observation):
        self.observation_space = observation

    def _seen(self):
        values = {"risk": int(self.risk), "goal": int(self.goal)}
        if isinstance(self.observation_space, spaces.Dict):
            return values
        line = [values["risk"], values["goal"]]
        return tuple(line) if isinstance(self.observation_space, spaces.Tuple) else np.array(line)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.risk = self.goal = False
        return self._seen(), {}

    def step(self, action):
        fast = action == 3
        self.risk = self.risk or bool(fast and self.np_random.random() < 0.9)
        return self._seen(), 0.0, bool(self.risk or self.goal), False, {}


DOUBLE = spaces.Discrete(2), spaces.Discrete(2)
OBSERVED = {
    "dict": spaces.Dict({"risk": DOUBLE[0], "goal": DOUBLE[1]}),
    "tuple": spaces.Tuple(DOUBLE), "multi-discrete": spaces.MultiDiscrete([2, 2]),
}  # fmt: skip


def walk_structure(names, actions):
    """Return the structure by its variables, in the order given; each is absorbing."""

    def moves():
        return [
            rf.unknown_move(
                dict.fromkeys(names, (0, 1)), v, parents=[v],
                effects=[lambda s: {}, lambda s, v=v: {v: 1}],
            )
            for v in names
        ]  # fmt: skip

    def open_(s):
        return (s[names[0]] == 0) & (s[names[1]] == 0)

    return rf.build(
        dict.fromkeys(names, (0, 1)),
        [rf.Action(a, moves(), open_) for a in actions],
        initial=dict.fromkeys(names, 0),
        labels={"goal": lambda s: s[next(n for n in names if n in ("goal", "x_1"))] == 1},
    )


@pytest.mark.parametrize("observed", OBSERVED)
@pytest.mark.parametrize("turned", [False, True])
def test_entries_are_matched_by_name(observed, turned):
    """The goal is never reached, in whatever order its entry is declared; `act` reads alike."""
    space, actions = OBSERVED[observed], ["a0", "a1", "a2", "a3"]
    names = ["risk", "goal"] if observed == "dict" else ["x_0", "x_1"]
    model = walk_structure(names[::-1] if turned else names, actions)
    source = rf.GymSource(Walk(space), model)
    words = {"stop": StopWhen(60), "length": 3, "exploration": Optimistic(other=0.5)}
    assert rf.learn(source, 'Pmaxmin=? [ F<=3 "goal" ]', **words).guarantee == 0.0
    unsafe = model.row_ptr[0] + model.row_actions[:4].tolist().index(model.actions.index("a3"))
    policy = rf.Policy(np.where(np.diff(model.row_ptr) > 1, unsafe, model.row_ptr[:-1])[None])
    env = Walk(space)
    observation, _ = env.reset(seed=1)
    for _ in range(20):  # the action that is meant is the one that is taken
        observation, _, over, *_ = env.step(source.agent(policy)(observation))
        if over:
            break
    assert env.risk


@pytest.mark.parametrize(
    ("space", "names", "message"),
    [
        (OBSERVED["dict"], ["risk", "aim"], r"\(goal, risk\), found risk, aim"),
        (OBSERVED["dict"], ["x", "y"], r"\(goal, risk\), found x, y"),
        (OBSERVED["multi-discrete"], ["x_1", "y"], r"\(x_0, x_1\), found x_1, y"),
    ],
)
def test_other_names_are_an_error(space, names, message):
    """Nothing is guessed where entries have names."""
    model = rf.build(
        dict.fromkeys(names, (0, 1)), [rf.Action("a")], initial=dict.fromkeys(names, 0)
    )
    with pytest.raises(rf.ModelError, match=message):
        rf.GymSource(Walk(space), model)


def test_names_within_names_differ():
    """Entries of nested Dicts have both names; two of one name are refused."""
    inner = spaces.Dict({"x": spaces.Discrete(2)})
    nested = spaces.Dict({"left": inner, "right": inner})
    assert [e.name for e in entries_of(nested)] == ["left_x", "right_x"]
    with pytest.raises(rf.UnsupportedError, match="found m_0 twice"):
        entries_of(spaces.Dict({"m": spaces.MultiBinary(1), "m_0": spaces.Discrete(2)}))


@pytest.mark.parametrize(
    "seen", [3, {"risk": 0}, {"risk": 0, "aim": 0}, {"risk": 0, "goal": [0, 1]}, None, (0, 0)]
)
def test_the_agent_refuses_what_is_no_observation(seen):
    """One line says what an observation has."""
    model = walk_structure(["goal", "risk"], ["a0", "a1", "a2", "a3"])
    source = rf.GymSource(Walk(OBSERVED["dict"]), model)
    act = source.agent(rf.Policy(model.row_ptr[None, :-1]))
    with pytest.raises(rf.ModelError, match="an observation must have"):
        act(seen)
    with pytest.raises(rf.ModelError, match=r"must be reachable.*goal=7"):
        act({"goal": 7, "risk": 0})


def test_actions_of_known_tables_are_matched_by_name():
    """Left is left, also where the structure names it last."""
    lake = rf.gym_model("FrozenLake-v1(is_slippery=False)")
    order = ("up", "right", "down", "left")

    def step(s, action):
        moved = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}[action]
        return {
            "row": np.clip(s.row + moved[0], 0, 3),
            "column": np.clip(s.column + moved[1], 0, 3),
        }

    over = {tuple(v) for v in lake.valuations[lake.label("terminal")].tolist()}
    model = rf.build(
        {"column": (0, 3), "row": (0, 3)},
        [
            rf.Action(
                a, [], lambda s: [(r, c) not in over for r, c in zip(s.row, s.column, strict=True)],
                lambda s, a=a: step(s, a),
            )
            for a in order
        ],
        initial={"row": 0, "column": 0},
        labels={"goal": lambda s: (s.row == 3) & (s.column == 3)},
    )  # fmt: skip
    source = rf.GymSource("FrozenLake-v1(is_slippery=False)", model)
    run = rf.learn(source, 'Pmaxmin=? [ F<=6 "goal" ]', stop=StopWhen(50), length=6)
    assert run.guarantee == 1.0


def test_parents_of_no_entry_are_an_error():
    """A misspelt entry would depend on everything, in silence."""
    with pytest.raises(rf.ModelError, match=r"entries x_0, x_1, found x_2"):
        rf.gym_structure(ModelEnv(grid()), parents={"x_0": ["x_0"], "x_2": ["x_1"]})


class Shuttle(gymnasium.Env):
    """A cart on a rail of three places, and a lamp that nobody controls; no entry has a name."""

    observation_space = spaces.MultiDiscrete([3, 2])
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.lamp = 0, 0
        return np.array([self.place, self.lamp]), {}

    def step(self, action):
        assert action == 0 or self.place > 0, "there is no way back from the first place"
        if self.np_random.random() < 0.9:
            self.place += 1 if action == 0 else -1
        self.lamp = int(self.np_random.random() < 0.3)
        return np.array([self.place, self.lamp]), 0.0, self.place == 2, False, {}


def test_names_shared_entries_and_available_actions():
    """Entries get names, one unknown serves both actions, and no action is taken where it is not.

    The lamp moves in the same way whatever happens: one unknown instead of one per action. The cart
    has one per action and place: two for `on`, one for `back`, which place 0 does not have.
    """
    model = rf.gym_structure(
        Shuttle(),
        names=["place", "lamp"],
        parents={"place": ["place"], "lamp": []},
        shared=["lamp"],
        actions=["on", "back"],
        available={"back": lambda s: s.place > 0},
        initial={"place": 0, "lamp": 0},
        terminal=lambda s: s.place == 2,
        labels={"end": lambda s: s.place == 2},
    )
    assert [v.name for v in model.variables] == ["place", "lamp"]
    used = np.unique(model.row_marginals)
    assert len(used) == 1 + 2 + 1
    run = rf.learn(
        rf.GymSource(Shuttle(), model), 'Pmaxmin=? [ F<=9 "end" ]', stop=StopWhen(200), length=9
    )
    assert 0.5 < run.guarantee < 1.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"names": ["place"]}, "names must be 2 different ones, found place"),
        ({"names": ["place", "place"]}, "names must be 2 different ones"),
        ({"shared": ["lamp"]}, "shared must be those of the entries x_0, x_1, found lamp"),
        ({"available": {"back": None}}, "available must be those of the actions a0, a1"),
    ],
)
def test_words_that_name_nothing(words, message):
    """A misspelt entry or action would be left out in silence."""
    with pytest.raises(rf.ModelError, match=message):
        rf.gym_structure(Shuttle(), **words)
