"""Learn: sample and evaluate, again and again, until the guarantee is good enough.

This file checks what it is given, and learns with many seeds side by side; the loop is in
`rfmdp.learning.learner`. Everything random is a function of the seed and the number of a
trajectory.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rfmdp.errors import FileError, ModelError, UnsupportedError
from rfmdp.formats.files import load, save
from rfmdp.inner.protocol import Inner
from rfmdp.learning.confidence import ConfidenceSet
from rfmdp.learning.identifiers import Granularity, LocalStates, identify
from rfmdp.learning.learner import Learner
from rfmdp.learning.methods import (
    ANYTIME,
    METHODS,
    Doubling,
    Exploration,
    LogSpaced,
    Method,
    RewardRange,
    StopWhen,
    find_method,
)
from rfmdp.learning.run import KIND, Progress, Run, Watch
from rfmdp.learning.setup import Budget, Setup
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Spec
from rfmdp.outer.problem import where
from rfmdp.outer.task import Limits
from rfmdp.running import TaskResult, run_many
from rfmdp.solving import as_spec
from rfmdp.sources.gym.models import EXPECTED
from rfmdp.sources.source import Simulated, Source
from rfmdp.state_sets import NamedStates, StateSet

if TYPE_CHECKING:
    from rfmdp.answers.property import Property

# Of arguments: a class, an attribute that such objects have, or (at least, less than), for whole
# numbers if the first one is; and what must be
ARGUMENTS: dict[str, tuple[Any, str]] = {
    "method": (str | Method, f"a Method or its name ({', '.join(METHODS)})"),
    "confidence": ("validity", "an object like Mixture(), ClopperPearson(), Weissman()"),
    "budget": (Budget, "an object like Budget.EVENTS, Budget.PROBABILITIES"),
    "exploration": ("plan", "an object like Optimistic(), UniformRandom()"),
    "schedule": (Doubling, "an object like Doubling(0.2)"),
    "granularity": (Granularity, "an object like Granularity.EFFECT, Granularity.LOCAL"),
    "inner": ("prepare", "an object like Exact(), IntervalArithmetic()"),
    "stop": (StopWhen, "an object like StopWhen(trajectories=200)"),
    "points": ("next", "an object like LogSpaced(8)"),
    "rewards": (RewardRange, "an object like RewardRange(0, 1)"),
    "limits": (Limits, "an object like Limits(precision=1e-4)"),
    "beta": ((math.ulp(0.0), 1.0), "a number larger than 0 and less than 1"),
    "p_min": ((0.0, 1.0), "a number at least 0 and less than 1"),
    "length": ((1, math.inf), "a whole number, at least 1"),
    "seed": ((0, math.inf), "a whole number, at least 0, that fixes all randomness"),
}

SeedProgress = Callable[[int, Progress], None]  # called with a seed and what its run is doing


def learn(
    source: FactoredMDP | Source,
    spec: Spec | Property | str,
    method: Method | str = ANYTIME,
    *,
    confidence: ConfidenceSet | None = None,
    budget: Budget | None = None,
    exploration: Exploration | None = None,
    schedule: Doubling | None = None,
    granularity: Granularity | None = None,
    inner: Inner | None = None,
    beta: float = 1e-4,
    stop: StopWhen | None = None,
    points: LogSpaced | None = None,
    length: int = 100,
    seed: int = 0,
    local: LocalStates = MappingProxyType({}),
    ties: Sequence[Sequence[int | str]] = (),
    p_min: float | None = None,
    rewards: RewardRange | None = None,
    limits: Limits | None = None,
    name: str = "",
    progress: Callable[[Progress], None] | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
) -> Run:
    """Return what was learned about a hidden model: a policy and a guarantee for it.

    Parameters
    ----------
    source, spec : Where samples come from, and the goal. A model is simulated: it has the known
        structure, and its nominal probabilities are the hidden truth. `GymSource(env, model)`
        samples a Gymnasium environment, `read_log(model, ...)` is read in one look; then a model
        says what is known, and its probabilities are ignored.
    method : Which parts to use, or the name of such a combination; see `rfmdp.learning.methods`.
    confidence, budget, exploration, schedule, granularity, inner : Replacements for single parts.
    beta : Probability with which some reported guarantee may be wrong.
    stop, points : When to end, and when to evaluate.
    length, seed : Steps of a trajectory, and the number that fixes all randomness.
    local, ties : See `identify`.
    p_min : Assumption, printed with the result: every declared outcome is at least so probable.
    rewards : In which range rewards lie, if they are to be learned too; by default rewards are
        those of the model.
    limits : Precision of the robust values.
    name : Of the system, for the statement.
    progress : Called about once a second, and with every evaluation.
    output : Where to save the run after every evaluation; the file must not exist.
    resume : A saved run to go on with; it is saved in `output` or, without one, in its own file.
        It must have been started with the same arguments: only `stop` may differ.

    Raises
    ------
    AssumptionAlarm : If the samples contradict an assumption of the guarantee.

    Examples
    --------
    >>> from rfmdp.objective import Reach
    >>> from rfmdp.sets.families import Singleton
    >>> coin = FactoredMDP.from_rows(
    ...     [[([0], [1, 2])], [([], [1])], [([], [2])]], [Singleton([0.5, 0.5])],
    ...     labels={"goal": [False, True, False]})
    >>> run = learn(coin, Spec(Reach("goal")), stop=StopWhen(trajectories=10_000), length=1)
    >>> 0.4 < run.guarantee < 0.5
    True
    """
    started = time.monotonic()
    parts: dict[str, Any] = {
        "confidence": confidence, "budget": budget, "exploration": exploration,
        "schedule": schedule, "granularity": granularity, "inner": inner,
    }  # fmt: skip
    _require(
        **parts, method=method, stop=stop, points=points, rewards=rewards, limits=limits,
        beta=beta, p_min=p_min or 0.0, length=length, seed=seed,
    )  # fmt: skip
    whole = find_method(method) if isinstance(method, str) else method
    chosen = replace(whole, **{name: part for name, part in parts.items() if part is not None})
    if not isinstance(source, FactoredMDP | Source):
        raise UnsupportedError(
            f"learn: cannot sample {_shown(source)}; give a model (`open_model` opens files and "
            "domains by their name), GymSource(env, model) or read_log(model, ...)."
        )
    samples = Simulated(source) if isinstance(source, FactoredMDP) else source
    goal = _checked(spec, samples.structure.model, rewards is None)
    setup = Setup(
        samples, goal, chosen, float(beta), stop or StopWhen(), points or LogSpaced(), int(length),
        int(seed), limits or Limits(), float(p_min or 0.0), rewards, name,
    )  # fmt: skip
    if setup.records is not None and resume:
        raise UnsupportedError(
            "learn: recorded transitions are read once; learn from them without `resume`."
        )
    file = saving_place(output, resume)
    ids = identify(samples.structure, chosen.granularity, local=local, ties=ties)
    learner = Learner(setup, ids, Watch(setup.stop.seconds, progress, started))
    if resume is not None:
        learner.restore(load(resume, KIND), str(resume))
    return learner.go(file)


def _checked(spec: Spec | Property | str, model: FactoredMDP, declared: bool) -> Spec:
    """Return the specification of a goal that can be learned; `declared`: rewards are known."""
    if isinstance(spec, str):
        from rfmdp.answers.property import parse_property

        spec = parse_property(spec)
    if not isinstance(spec, Spec) and not hasattr(spec, "parsed"):
        raise UnsupportedError(
            f"learn: the goal must be a Spec, a property or its text, found a "
            f"{type(spec).__name__}; an objective is one of them as Spec(objective, MAX, MIN)."
        )
    if not isinstance(spec, Spec) and getattr(spec.parsed.expression, "bound", None) is not None:
        raise UnsupportedError(
            f"learn: the goal must be a value (=?), found the threshold {spec}; ask for the value, "
            "and stop at the threshold (`stop=StopWhen(guarantee=...)`)."
        )
    goal = as_spec(spec, model, settled=True)  # refused below, with a better reason
    if not goal.robust:
        raise ModelError(
            "learn: nature must oppose the agent; here it helps, so nothing would be "
            "guaranteed; write Pmaxmin, Pminmax, Rmaxmin or Rminmax."
        )
    if declared and EXPECTED in model.rewards and goal.objective.rewarded:
        name = goal.objective.reward_name or next(iter(model.rewards))
        if name not in model.rewards or name == EXPECTED:
            raise ModelError(
                f'learn: what this environment pays depends on the successor, and "{EXPECTED}" is '
                f'made of probabilities, which are not known; ask for R{{"{EXPECTED}"}} and learn '
                "it (`rewards=RewardRange(low, high)`)."
            )
    sets: dict[str, Any] = {
        name: _resolved(model, states) for name, states in goal.objective.sets.items()
    }
    return replace(goal, objective=replace(goal.objective, **sets))


def _resolved(model: FactoredMDP, states: StateSet) -> StateSet:
    """Return where a formula holds, with its text: once for all models that are learned."""
    if isinstance(states, str | np.ndarray):
        return states
    text = str(getattr(states, "text", "..."))
    if getattr(states, "probabilistic", False):
        raise UnsupportedError(
            f"learn: sets of states must not depend on probabilities, which are not known, found "
            f"{text}; learn without it, and ask for it on the learned model."
        )
    return NamedStates(text, where(model, states))


def saving_place(
    output: str | os.PathLike[str] | None, resume: str | os.PathLike[str] | None
) -> str | os.PathLike[str] | None:
    """Return where to save; refuse to write over a run, and to go on with none."""
    if resume is not None and not Path(resume).exists():
        raise FileError(f"Resume: {resume} must be a saved run, found no file; start without it.")
    if output is None:
        return resume
    same = resume is not None and Path(output).resolve() == Path(resume).resolve()
    if Path(output).exists() and not same:
        raise FileError(
            f"{output}: must not exist, a run would be lost; resume it (`resume=`), or name "
            "another file."
        )
    return output


def _shown(value: Any) -> str:
    plain = value is None or isinstance(value, str | int | float)
    return repr(value) if plain else f"a {type(value).__name__}"


def _require(**arguments: Any) -> None:
    """Raise ModelError unless arguments, by name, are as `ARGUMENTS` says; objects may be None."""
    for name, value in arguments.items():
        kind, wanted = ARGUMENTS[name]
        if isinstance(kind, tuple):
            number = isinstance(value, int | float | np.integer | np.floating)
            fits = number and kind[0] <= value < kind[1]
            fits = fits and not (isinstance(kind[0], int) and value % 1)
        elif isinstance(kind, str):
            fits = value is None or (hasattr(value, kind) and not isinstance(value, type))
        else:
            fits = value is None or isinstance(value, kind)
        if not fits:
            raise ModelError(f"learn: {name} must be {wanted}, found {_shown(value)}.")


class SeedTask(NamedTuple):
    """One run: its seed, its file, and what that file holds for a worker that does not see it."""

    seed: int
    file: str | None
    saved: bytes | None = None


def learn_seeds(
    source: FactoredMDP | Source,
    spec: Spec | Property,
    seeds: Sequence[int],
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    patience: float = float("inf"),
    file: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: SeedProgress | None = None,
    done: Callable[[TaskResult], None] | None = None,
    **settings: Any,
) -> list[TaskResult]:
    """Return what `learn` gives with several seeds, in their order.

    source, spec, settings : as for `learn`
    jobs, scheduler, patience : where runs go, as for `run_many`
    file : run file; with several seeds each has its own, NAME-SEED. On local cores it is saved at
        every evaluation, from a cluster when a run is finished
    resume : go on with the run files that are there, one at least; without it none may be
    progress : called in the process that learns, with the seed and what it is doing
    done : called here with every result, in the order of the seeds, as soon as it is its turn
    """
    files = [None if file is None else seed_file(file, seed, seeds) for seed in seeds]
    saved = [name for name in files if name is not None and Path(name).exists()]
    for name in [] if resume else files:  # refused before any process starts
        saving_place(name, None)
    if resume and not saved:
        saving_place(None, files[0] or "a file")
    tasks = [SeedTask(*pair) for pair in zip(seeds, files, strict=True)]
    if scheduler is not None:  # workers may not see files
        there = {name: Path(name).read_bytes() for name in saved}
        tasks = [SeedTask(task.seed, None, there.get(task.file or "")) for task in tasks]

    def keep(result: TaskResult) -> None:
        place = files[result.number]
        if scheduler is not None and place is not None and result.error is None:
            save(result.value, place)
        if done is not None:
            done(result)

    work = partial(learn_seed, partial(learn, source, spec, **settings), progress)
    return run_many(work, tasks, jobs=jobs, scheduler=scheduler, patience=patience, done=keep)


def seed_file(file: str | os.PathLike[str], seed: int, seeds: Sequence[int]) -> str:
    """Return the run file of a seed: NAME-SEED.rfmdp if there are several."""
    path = Path(file)
    return str(path if len(seeds) == 1 else path.with_name(f"{path.stem}-{seed}{path.suffix}"))


def learn_seed(learner: Callable[..., Run], progress: SeedProgress | None, task: SeedTask) -> Run:
    """Learn with one seed; a saved run goes on, also on a machine that does not see its file.

    A file that is there is one to go on with, or one that a lost process left.
    """
    if task.saved is not None:
        with TemporaryDirectory() as folder:
            place = Path(folder) / "run.rfmdp"
            place.write_bytes(task.saved)
            return learn_seed(learner, progress, task._replace(file=str(place), saved=None))
    tell = None if progress is None else partial(progress, task.seed)
    resume = task.file if task.file is not None and Path(task.file).exists() else None
    return learner(seed=task.seed, output=task.file, resume=resume, progress=tell)
