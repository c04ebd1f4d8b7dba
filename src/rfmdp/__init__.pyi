"""The public names of rfmdp, each with its home; `__init__.py` imports them on first use."""

__version__: str

from .answers.answer import check as check, check_all as check_all
from .answers.property import parse_property as parse_property
from .domains import domain as domain, domain_spec as domain_spec
from .errors import (
    AssumptionAlarm as AssumptionAlarm,
    DataError as DataError,
    FileError as FileError,
    ModelError as ModelError,
    NotCertifiedError as NotCertifiedError,
    PrismError as PrismError,
    ResourceError as ResourceError,
    RfmdpError as RfmdpError,
    SolverError as SolverError,
    UnsupportedError as UnsupportedError,
)
from .formats.files import save as save
from .formats.libraries import (
    from_matrices as from_matrices,
    from_stormpy as from_stormpy,
    read_drn as read_drn,
    to_stormpy as to_stormpy,
)
from .formats.prism_explicit import (
    read_prism_explicit as read_prism_explicit,
    write_prism_explicit as write_prism_explicit,
)
from .formats.umb import read_umb as read_umb, write_umb as write_umb
from .inner.mccormick import McCormick as McCormick, Variant as Variant
from .inner.solvers import (
    Exact as Exact,
    IntervalArithmetic as IntervalArithmetic,
    RadiusSum as RadiusSum,
    Sequential as Sequential,
    VertexEnumeration as VertexEnumeration,
)
from .language.build import load_prism as load_prism, parse_prism as parse_prism
from .language.lattice import load_lattice as load_lattice, parse_lattice as parse_lattice
from .learning.confidence import (
    ClopperPearson as ClopperPearson,
    Mixture as Mixture,
    Weissman as Weissman,
)
from .learning.identifiers import Granularity as Granularity
from .learning.learn import learn as learn
from .learning.methods import (
    Doubling as Doubling,
    GapDirected as GapDirected,
    LogSpaced as LogSpaced,
    Optimistic as Optimistic,
    RewardRange as RewardRange,
    StopWhen as StopWhen,
    UniformRandom as UniformRandom,
    find_method as find_method,
)
from .learning.run import Run as Run
from .learning.setup import Budget as Budget
from .model.arrays import FactoredMDP as FactoredMDP, Rewards as Rewards, Variable as Variable
from .model.build import build as build
from .model.description import Action as Action, Move as Move
from .model.lattice import LatticeMDP as LatticeMDP
from .model.validate import validate as validate
from .objective import (
    MAX as MAX,
    MIN as MIN,
    BudgetUntil as BudgetUntil,
    Cumulative as Cumulative,
    Direction as Direction,
    Discounted as Discounted,
    Globally as Globally,
    Instantaneous as Instantaneous,
    LongRunAverage as LongRunAverage,
    LongRunShare as LongRunShare,
    Next as Next,
    Reach as Reach,
    ReachReward as ReachReward,
    Spec as Spec,
    Total as Total,
    Until as Until,
)
from .opening import load as load, open_model as open_model, read_model as read_model
from .outer.solution import (
    Bounds as Bounds,
    Policy as Policy,
    Solution as Solution,
    Status as Status,
)
from .outer.task import Limits as Limits, Measure as Measure
from .policies.explain import collect_next as collect_next, explain as explain
from .policies.files import (
    read_policy as read_policy,
    write_policy as write_policy,
)
from .policies.induced import NatureChoice as NatureChoice, induced_model as induced_model
from .policies.simulation import Simulation as Simulation, simulate as simulate
from .report.page import write_report as write_report
from .running import TaskResult as TaskResult, run_many as run_many
from .sets.families import (
    Interval as Interval,
    L1Ball as L1Ball,
    LinfBall as LinfBall,
    LpBall as LpBall,
    Polytope as Polytope,
    Singleton as Singleton,
)
from .sets.marginals import Marginals as Marginals
from .solving import evaluate as evaluate, solve as solve
from .sources.gym.models import gym_model as gym_model, gym_structure as gym_structure
from .sources.gym.source import GymSource as GymSource
from .sources.log.source import Log as Log, read_log as read_log
from .sources.source import (
    Simulated as Simulated,
    Structure as Structure,
    unknown as unknown,
    unknown_move as unknown_move,
)
from .temporal.hoa import read_automaton as read_automaton
from .verification.solution import verify as verify
