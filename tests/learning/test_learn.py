"""Learning: soundness on small models, monotony, determinism, resuming."""

import math
from dataclasses import replace

import numpy as np
import pytest

from rfmdp.answers.property import parse_property
from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.formats.files import load
from rfmdp.inner.mccormick import McCormick
from rfmdp.inner.solvers import Exact, IntervalArithmetic, Sequential
from rfmdp.learning.confidence import (
    ClopperPearson,
    Mixture,
    SetStore,
    Weissman,
)
from rfmdp.learning.evaluation import Evaluator
from rfmdp.learning.identifiers import Granularity
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import (
    ANYTIME,
    METHODS,
    Doubling,
    GapDirected,
    LogSpaced,
    Optimistic,
    StopWhen,
    UniformRandom,
    find_method,
)
from rfmdp.outer.task import Limits
from rfmdp.solving import solve
from rfmdp.threads import set_threads, threads
from rfmdp.verification.solution import verify
from set_twins import contains

from .tiny import (
    COST,
    REACH,
    AtTrajectories,
    bernoulli,
    distinct_factored,
    identified,
    loop_to_goal,
    two_arms,
)

FEW = StopWhen(trajectories=400)
POINTS = AtTrajectories((50, 100, 200, 400, 800, 1600, 3200))


def optimum(model, spec=REACH):
    return solve(model, spec).at_initial().lower


def quick(model, method=ANYTIME, stop=FEW, **more):
    return learn(model, REACH, method, **{"length": 3, "points": POINTS, "stop": stop, **more})


def test_goals_may_be_properties_but_nature_must_oppose():
    """A property is as good as its specification; where nature helps nothing is guaranteed."""
    found = learn(two_arms(0.3, 0.6), parse_property('Pmaxmin=? [ F "goal" ]'), length=3, stop=FEW)
    assert found.guarantee == learn(two_arms(0.3, 0.6), REACH, length=3, stop=FEW).guarantee
    with pytest.raises(ModelError, match="must oppose"):
        learn(two_arms(0.3, 0.6), parse_property('Pmax=? [ F "goal" ]'), length=3, stop=FEW)


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 200))]
)
def test_guarantee_never_above_the_optimum(seed):
    """In many short runs of valid sets no guarantee exceeds the truth (beta 1e-4)."""
    model = distinct_factored(seed % 10)
    exploration = (Optimistic(), GapDirected(), UniformRandom(), Optimistic(0.2))[seed % 4]
    run = quick(
        model, seed=seed, exploration=exploration, schedule=(Doubling(), Doubling(0.5))[seed % 2]
    )
    best = optimum(model)
    assert all(point.guarantee <= best + 1e-9 for point in run.history)
    assert all(point.optimistic >= best - 1e-9 for point in run.history)
    assert all(point.guarantee <= point.performance + 1e-9 for point in run.history)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))]
)
def test_anytime_guarantees_are_monotone(seed):
    """Reported guarantees never fall, and neither do those of the nested sets."""
    run = quick(distinct_factored(seed), seed=seed, stop=StopWhen(3200))
    assert np.all(np.diff(run.column("guarantee")) >= 0.0)
    assert np.all(np.diff(run.column("fresh")) >= -1e-9)
    assert np.all(np.diff(run.column("optimistic")) <= 0.0)


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
def test_whole_marginal_sets_are_sound_in_the_loop(seed):
    """L1 balls give true guarantees, in Sequential and Exact."""
    model = distinct_factored(seed)
    asked = {"confidence": Weissman(), "points": AtTrajectories((400, 3200))}
    for inner in (Exact(), Sequential()):
        run = quick(model, seed=seed, inner=inner, stop=StopWhen(3200), **asked)
        assert run.guarantee <= optimum(model) + 1e-9
        assert run.guarantee <= run.history[-1].performance + 1e-9
    assert run.guarantee > 0.5 * optimum(model)


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))]
)
def test_tighter_inner_solvers_give_better_guarantees(seed):
    """On the same counts exact >= McCormick >= interval arithmetic."""
    asked = {"exploration": UniformRandom(), "points": AtTrajectories((400,))}
    values = [
        quick(distinct_factored(seed), seed=seed, inner=inner, **asked).history[-1].fresh
        for inner in (Exact(), McCormick(), IntervalArithmetic())
    ]
    assert values[0] >= values[1] - 1e-6 >= values[2] - 2e-6


def test_many_samples_give_the_optimum():
    """With 10^6 trajectories of a small model, guarantee and optimum meet within a percent."""
    model = distinct_factored(3)
    run = quick(model, stop=StopWhen(10**6), points=LogSpaced(2))
    assert run.guarantee == pytest.approx(optimum(model), rel=1e-2)
    assert run.history[-1].performance == pytest.approx(optimum(model), rel=1e-2)


def test_exact_counts_in_the_limit_are_the_truth():
    """Counts proportional to the truth shrink the sets to it."""
    ids = identified(distinct_factored(5))
    sets = ids.model.marginals
    counts = np.rint(sets.nominal * 1e15).astype(np.int64)
    store = SetStore(ClopperPearson(), sets.outcome_ptr, np.full(len(sets), 1e-6))
    store.refresh(counts)
    value = solve(ids.model.with_marginals(store.marginals()), REACH).at_initial().lower
    assert value == pytest.approx(optimum(ids.model), abs=1e-6)


def test_same_seed_same_run_whatever_the_threads():
    """A run is a function of its seed."""
    most = threads()
    runs = []
    for count in (1, most):
        set_threads(count)
        runs.append(quick(distinct_factored(1), seed=3, exploration=GapDirected()))
    set_threads(most)
    other = quick(distinct_factored(1), seed=4, exploration=GapDirected())
    assert stripped(runs[0]) == stripped(runs[1])
    assert np.array_equal(runs[0].counts, runs[1].counts)
    assert not np.array_equal(runs[0].counts, other.counts)


def stripped(run):
    """History without times, nan as text."""
    return [repr(replace(point, seconds=0.0, processor=0.0)) for point in run.history]


@pytest.mark.parametrize(
    "parts",
    [
        {"method": ANYTIME},
        {"method": find_method("gap-directed")},
        {"method": ANYTIME, "exploration": Optimistic(0.3)},
        {"method": find_method("paper-flat")},
    ],
    ids=["anytime", "gap", "greedy", "flat"],
)
def test_resumed_run_equals_an_uninterrupted_one(tmp_path, parts):
    """Stop at every evaluation, go on from the file: the same history, counts and policy."""
    model, file = distinct_factored(2), tmp_path / "run.rfmdp"
    asked = {"points": AtTrajectories((100, 200, 400, 800)), "stop": StopWhen(800), "seed": 9}
    whole = quick(model, **asked, **parts)

    class Killed(Exception):
        pass

    def kill(now):
        if now.point is not None and now.trajectories in (200, 400):
            raise Killed

    for again in range(3):
        try:
            # progress comes before saving: what was lost is done again
            resumed = quick(
                model, output=file, resume=file if again else None,
                progress=kill if again < 2 else None, **asked, **parts,
            )  # fmt: skip
        except Killed:
            continue
    assert stripped(resumed) == stripped(whole)
    assert np.array_equal(resumed.counts, whole.counts)
    assert np.array_equal(resumed.policy.rows, whole.policy.rows)
    loaded = load(file)
    assert stripped(loaded) == stripped(whole)
    assert loaded.beta == whole.beta
    assert loaded.assumptions == whole.assumptions


def test_ctrl_c_before_the_first_evaluation_leaves_a_file_to_go_on_with(tmp_path, monkeypatch):
    """A run is saved before its first plan; going on gives what was asked for."""
    model, file = distinct_factored(2), tmp_path / "run.rfmdp"
    whole = quick(model, seed=9)

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Optimistic, "plan", stopped)
        with pytest.raises(KeyboardInterrupt):
            quick(model, seed=9, output=file)
    assert load(file).history == []
    assert verify(file).valid is not True  # there is nothing to be valid yet
    assert stripped(quick(model, seed=9, resume=file)) == stripped(whole)


def test_cost_is_infinite_until_data_exclude_avoidance():
    """Zero lower bounds are real: nature may avoid the target until it was seen often enough."""
    more = {"points": AtTrajectories((1, 5, 1000)), "stop": StopWhen(1000), "length": 5}
    run = learn(loop_to_goal(0.5), COST, **more)
    assert run.history[0].guarantee == math.inf
    assert 2.0 <= run.history[-1].guarantee < 3.0
    assumed = learn(loop_to_goal(0.5), COST, p_min=0.05, **more)
    assert assumed.history[0].guarantee <= 20.0 * (1.0 + Limits().precision)
    assert any("p_min" in line for line in assumed.assumptions)
    assert "p_min" in assumed.statement()


def test_single_look_sets_are_labelled():
    """The paper's sets never call themselves anytime."""
    for name in ("paper-flat", "paper-interval", "paper-l1", "paper-mccormick"):
        assert find_method(name).confidence.validity.value == "fixed sample size, single look"
    run = quick(bernoulli(0.5), find_method("paper-flat"))
    assert "single look" in run.statement()
    assert any("sample size" in line for line in run.assumptions)


def test_a_look_that_proves_nothing_leaves_the_guarantee_of_the_last_one(tmp_path, monkeypatch):
    """Whether time was over or a proof failed; it says how old it is, and can be gone on with."""
    model, method, file = distinct_factored(2), find_method("paper-mccormick"), tmp_path / "run"
    asked = {
        "points": AtTrajectories((200, 400, 800)),
        "seed": 9,
        "granularity": Granularity.EFFECT,
    }
    whole = quick(model, method, stop=StopWhen(800), **asked)
    guarantee = Evaluator.guarantee
    with monkeypatch.context() as patched:
        patched.setattr(
            Evaluator,
            "guarantee",
            lambda self, known: None if self._last() else guarantee(self, known),
        )
        cut = quick(model, method, stop=StopWhen(400), output=file, **asked)
    assert 0.0 < cut.guarantee == cut.history[0].guarantee
    assert cut.history[1].fresh == 0.0
    assert "proven with the samples of the first 200 trajectories" in cut.statement()
    assert verify(file).valid
    again = quick(model, method, stop=StopWhen(800), resume=file, **asked)
    assert again.guarantee == whole.guarantee
    assert again.proven_after == 800
    assert verify(file).valid


@pytest.mark.parametrize(
    "name", [m for m in METHODS if "local" not in METHODS[m].granularity.value]
)
def test_every_method_runs_and_spends_at_most_beta(name):
    """All methods are configurations of the same parts; ledgers add up."""
    points = AtTrajectories((400,))
    run = quick(distinct_factored(1), find_method(name), beta=0.01, points=points)
    assert run.ledger.spent_on_model() <= run.ledger.shares.model <= 0.01
    assert run.history[-1].trajectories == 400
    assert run.stopped == "all trajectories run"


def test_stops_at_guarantee_gap_and_time():
    """The first condition that holds ends the run and is named."""
    model = bernoulli(0.9)
    assert quick(model, stop=StopWhen(3200, guarantee=0.5)).stopped == "guarantee reached"
    assert quick(model, stop=StopWhen(3200, gap=0.5)).stopped == "gap closed"
    assert quick(model, stop=StopWhen(3200, seconds=1e-9)).stopped == "time is up"
    assert quick(model, stop=StopWhen(3200, steps=60)).stopped == "all steps run"


def test_unchanged_counts_are_not_recomputed():
    """A store refreshes exactly the identifiers whose counts changed."""

    class Counting(Mixture):
        def sets(self, outcome_ptr, counts, delta):
            made.append(len(delta))
            return super().sets(outcome_ptr, counts, delta)

    made: list[int] = []
    store = SetStore(Counting(), np.array([0, 2, 5]), np.array([0.01, 0.01]))
    counts = np.array([5, 5, 0, 0, 0])
    store.refresh(counts)
    store.refresh(counts)
    store.refresh(counts + np.array([0, 0, 1, 0, 0]), np.array([0]))
    assert made == [2, 2, 1]


def test_learned_model_contains_the_truth():
    """At beta 1e-4 every identifier's set holds the true distribution."""
    for seed in range(8):
        run = quick(distinct_factored(seed), seed=seed, points=AtTrajectories((400,)))
        truth = identified(distinct_factored(seed)).model.marginals
        for j, uset in enumerate(run.model.marginals):
            part = slice(*truth.outcome_ptr[j : j + 2])
            assert contains(uset, truth.nominal[part])


NUMBERS = [
    ({"beta": 0}, "beta must be a number larger than 0 and less than 1, found 0"),
    ({"beta": 2}, "beta must be .* less than 1, found 2"),
    ({"beta": math.nan}, "beta must be .* found nan"),
    ({"beta": "0.1"}, "beta must be .* found '0.1'"),
    ({"p_min": -0.1}, "p_min must be a number at least 0 and less than 1, found -0.1"),
    ({"p_min": math.nan}, "p_min must be .* found nan"),
    ({"p_min": 1.5}, r"p_min must be .* found 1\.5"),
    ({"length": 2.5}, "length must be a whole number, at least 1, found 2.5"),
    ({"length": 0}, "length must be a whole number, at least 1, found 0"),
    ({"seed": None}, "seed must be a whole number, at least 0, that fixes all .* found None"),
    ({"seed": "a"}, "seed must be a whole number.* found 'a'"),
    ({"seed": 1.5}, "seed must be a whole number.* found 1.5"),
    ({"seed": -1}, "seed must be a whole number.* found -1"),
    ({"seed": np.random.default_rng(1)}, "seed must be a whole number.* found a Generator"),
    ({"length": "10"}, "length must be a whole number.* found '10'"),
]


@pytest.mark.parametrize(("words", "message"), NUMBERS)
def test_numbers_that_are_none(words, message):
    """Each is refused by its name, before any work."""
    with pytest.raises(ModelError, match=f"^learn: {message}"):
        learn(two_arms(0.3, 0.8), REACH, **words)


def test_whole_numbers_of_other_types():
    """They mean the same, and the runs are the same."""
    plain = quick(two_arms(0.3, 0.8), length=3, seed=4)
    other = quick(two_arms(0.3, 0.8), length=3.0, seed=np.int64(4))
    assert other.settings == plain.settings
    assert other.guarantee == plain.guarantee


def test_the_name_of_a_method_is_one():
    """Other names are told which there are, other things what to pass."""
    run = quick(two_arms(0.3, 0.8), "gap-directed")
    assert run.settings == quick(two_arms(0.3, 0.8), find_method("gap-directed")).settings
    with pytest.raises(ModelError, match=r"no learning method 'foo'; there are: .*anytime"):
        quick(two_arms(0.3, 0.8), "foo")
    with pytest.raises(ModelError, match=r"must be a Method or its name .*anytime.*, found 3"):
        quick(two_arms(0.3, 0.8), 3)


@pytest.mark.parametrize(
    ("part", "given", "message"),
    [
        ("stop", 200, r"stop must be an object like StopWhen\(trajectories=200\), found 200"),
        ("stop", {"trajectories": 2}, "stop must be .* found a dict"),
        ("confidence", "kl", r"confidence must be .* Mixture\(\).* found 'kl'"),
        ("confidence", Mixture, "confidence must be .* found a type"),
        ("rewards", "fixed:0:1", r"rewards must be .* RewardRange\(.* found 'fixed:0:1'"),
        ("rewards", (0, 1), "rewards must be .* found a tuple"),
        ("exploration", "gap", r"exploration must be .* UniformRandom\(\), found 'gap'"),
        ("schedule", 3, "schedule must be .* found 3"),
        ("granularity", "local", "granularity must be .* Granularity.LOCAL, found 'local'"),
        ("inner", "exact", r"inner must be .* Exact\(\).* found 'exact'"),
        ("limits", 1e-6, r"limits must be .* Limits\(precision=1e-4\), found 1e-06"),
        ("budget", "equal", "budget must be .* found 'equal'"),
        ("points", 8, "points must be .* found 8"),
    ],
)
def test_parts_that_are_none(part, given, message):
    """Words of the command line are no objects: each is told what to pass."""
    with pytest.raises(ModelError, match=f"^learn: {message}"):
        learn(two_arms(0.3, 0.8), REACH, **{part: given})


class Env:
    """What looks like an environment."""

    reset = step = None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Env(), r"cannot sample a Env; give .* GymSource\(env, model\)"),
        ("chain", r"cannot sample 'chain'; give a model \(`open_model` opens"),
        (None, r"cannot sample None; give a model .*, GymSource\(.*read_log\("),
        (solve(two_arms(0.3, 0.8), REACH), "cannot sample a Solution; give a model"),
    ],
)
def test_sources_that_are_none(source, message):
    """The message says how to make one."""
    with pytest.raises(UnsupportedError, match=f"^learn: {message}"):
        learn(source, REACH)


@pytest.mark.parametrize("goal", [REACH.objective, None, 3, [REACH]])
def test_goals_that_are_none(goal):
    """An objective alone says neither who chooses nor what nature does."""
    found = rf"found a {type(goal).__name__}; an objective is .* Spec\(objective, MAX, MIN\)"
    with pytest.raises(UnsupportedError, match=f"^learn: the goal must be a Spec.*{found}"):
        learn(two_arms(0.3, 0.8), goal)


def test_schedules():
    """Doubling asks for twice the visits, evaluation points are log-spaced and ascending."""
    assert Doubling().limits(np.array([0, 3])).tolist() == [1, 6]
    assert Doubling(factor=6).limits(np.array([0, 3])).tolist() == [1, 18]
    assert Doubling(0.5).earliest(101) == 152
    points, found = LogSpaced(4, 10), [0]
    while found[-1] < 1000:
        found.append(points.next(found[-1]))
    assert found[1:] == [10, 18, 32, 56, 100, 178, 316, 562, 1000]
    with pytest.raises(ModelError, match=r"no learning method"):
        find_method("magic")
