"""The public names of rfmdp, each with its home; `__init__.py` imports them on first use."""

__version__: str

from .answers.answer import (
    check as check,
)
from .answers.property import (
    parse_property as parse_property,
)
from .errors import (
    DataError as DataError,
)
from .errors import (
    FileError as FileError,
)
from .errors import (
    ModelError as ModelError,
)
from .errors import (
    NotCertifiedError as NotCertifiedError,
)
from .errors import (
    PrismError as PrismError,
)
from .errors import (
    ResourceError as ResourceError,
)
from .errors import (
    RfmdpError as RfmdpError,
)
from .errors import (
    SolverError as SolverError,
)
from .errors import (
    UnsupportedError as UnsupportedError,
)
from .formats.drn import (
    read_drn as read_drn,
)
from .formats.drn_write import (
    write_drn as write_drn,
)
from .formats.files import (
    load as load,
)
from .formats.files import (
    save as save,
)
from .formats.matrices import (
    from_columns as from_columns,
)
from .formats.matrices import (
    from_matrices as from_matrices,
)
from .formats.matrices import (
    to_matrices as to_matrices,
)
from .formats.prism_explicit import (
    read_prism_explicit as read_prism_explicit,
)
from .formats.prism_explicit_write import (
    write_prism_explicit as write_prism_explicit,
)
from .formats.storm import (
    from_stormpy as from_stormpy,
)
from .formats.storm import (
    to_stormpy as to_stormpy,
)
from .formats.umb import (
    read_umb as read_umb,
)
from .formats.umb_write import (
    write_umb as write_umb,
)
from .inner.alternating import (
    Alternating as Alternating,
)
from .inner.combined import (
    Sandwich as Sandwich,
)
from .inner.exact import (
    Exact as Exact,
)
from .inner.interval import (
    IntervalArithmetic as IntervalArithmetic,
)
from .inner.mccormick.programme import (
    Variant as Variant,
)
from .inner.mccormick.solver import (
    Backend as Backend,
)
from .inner.mccormick.solver import (
    McCormick as McCormick,
)
from .inner.radius_sum import (
    Composition as Composition,
)
from .inner.radius_sum import (
    RadiusSum as RadiusSum,
)
from .inner.sequential import (
    Orders as Orders,
)
from .inner.sequential import (
    Sequential as Sequential,
)
from .inner.vertices import (
    VertexEnumeration as VertexEnumeration,
)
from .language.load import (
    load_prism as load_prism,
)
from .language.load import (
    parse_prism as parse_prism,
)
from .learning.budget import (
    EqualEvents as EqualEvents,
)
from .learning.budget import (
    PerComponent as PerComponent,
)
from .learning.budget import (
    PerProbability as PerProbability,
)
from .learning.confidence import (
    AllSubsets as AllSubsets,
)
from .learning.confidence import (
    BySize as BySize,
)
from .learning.confidence import (
    ClopperPearson as ClopperPearson,
)
from .learning.confidence import (
    GridClopperPearson as GridClopperPearson,
)
from .learning.confidence import (
    Hoeffding as Hoeffding,
)
from .learning.confidence import (
    KLDirichlet as KLDirichlet,
)
from .learning.confidence import (
    KrichevskyTrofimov as KrichevskyTrofimov,
)
from .learning.confidence import (
    Mixture as Mixture,
)
from .learning.confidence import (
    Weissman as Weissman,
)
from .learning.coverage import (
    Coverage as Coverage,
)
from .learning.coverage import (
    coverage as coverage,
)
from .learning.explore import (
    GapDirected as GapDirected,
)
from .learning.explore import (
    Optimistic as Optimistic,
)
from .learning.explore import (
    RobustGreedy as RobustGreedy,
)
from .learning.explore import (
    UniformRandom as UniformRandom,
)
from .learning.identifiers import (
    Granularity as Granularity,
)
from .learning.learn import (
    learn as learn,
)
from .learning.methods import (
    find_method as find_method,
)
from .learning.remembered import (
    with_transition_rewards as with_transition_rewards,
)
from .learning.rewards import (
    DeterministicReward as DeterministicReward,
)
from .learning.rewards import (
    MixtureReward as MixtureReward,
)
from .learning.rewards import (
    RewardRange as RewardRange,
)
from .learning.run import (
    Run as Run,
)
from .learning.schedule import (
    Doubling as Doubling,
)
from .learning.schedule import (
    Geometric as Geometric,
)
from .learning.schedule import (
    StopWhen as StopWhen,
)
from .learning.simulation import (
    Simulation as Simulation,
)
from .learning.simulation import (
    simulate as simulate,
)
from .learning.support import (
    DeclaredSupport as DeclaredSupport,
)
from .learning.support import (
    DomainSupport as DomainSupport,
)
from .learning.support import (
    FloorSupport as FloorSupport,
)
from .learning.support import (
    SparseSupport as SparseSupport,
)
from .learning.transition_rewards import (
    TransitionReward as TransitionReward,
)
from .model.arrays import (
    FactoredMDP as FactoredMDP,
)
from .model.arrays import (
    Rewards as Rewards,
)
from .model.arrays import (
    Variable as Variable,
)
from .model.build import (
    build as build,
)
from .model.description import (
    Action as Action,
)
from .model.description import (
    Move as Move,
)
from .model.validate import (
    validate as validate,
)
from .objective import (
    MAX as MAX,
)
from .objective import (
    MIN as MIN,
)
from .objective import (
    Cumulative as Cumulative,
)
from .objective import (
    Direction as Direction,
)
from .objective import (
    Discounted as Discounted,
)
from .objective import (
    Globally as Globally,
)
from .objective import (
    Instantaneous as Instantaneous,
)
from .objective import (
    Next as Next,
)
from .objective import (
    Reach as Reach,
)
from .objective import (
    ReachReward as ReachReward,
)
from .objective import (
    Spec as Spec,
)
from .objective import (
    Total as Total,
)
from .objective import (
    Until as Until,
)
from .opening import (
    open_model as open_model,
)
from .outer.settings import (
    Limits as Limits,
)
from .outer.settings import (
    Measure as Measure,
)
from .outer.solution import (
    Bounds as Bounds,
)
from .outer.solution import (
    Policy as Policy,
)
from .outer.solution import (
    Solution as Solution,
)
from .outer.solution import (
    Status as Status,
)
from .paper.domains import (
    domain as domain,
)
from .paper.domains import (
    domain_spec as domain_spec,
)
from .policies.collect import (
    collect_next as collect_next,
)
from .policies.explain import (
    explain as explain,
)
from .policies.explain import (
    gains as gains,
)
from .policies.files import (
    open_policy as open_policy,
)
from .policies.files import (
    read_policy as read_policy,
)
from .policies.files import (
    write_policy as write_policy,
)
from .policies.tree import (
    decision_tree as decision_tree,
)
from .report.page import (
    write_report as write_report,
)
from .sets.families import (
    Interval as Interval,
)
from .sets.families import (
    KLBall as KLBall,
)
from .sets.families import (
    L1Ball as L1Ball,
)
from .sets.families import (
    LinfBall as LinfBall,
)
from .sets.families import (
    LpBall as LpBall,
)
from .sets.families import (
    Polytope as Polytope,
)
from .sets.families import (
    Singleton as Singleton,
)
from .sets.families import (
    SubsetSet as SubsetSet,
)
from .sets.marginals import (
    Marginals as Marginals,
)
from .solving import (
    compare as compare,
)
from .solving import (
    evaluate as evaluate,
)
from .solving import (
    solve as solve,
)
from .solving import (
    tabulate as tabulate,
)
from .sources.gym.source import (
    GymSource as GymSource,
)
from .sources.gym.source import (
    env as env,
)
from .sources.gym.structure import (
    gym_structure as gym_structure,
)
from .sources.gym.structure import (
    template as template,
)
from .sources.gym.table import (
    gym_model as gym_model,
)
from .sources.log.manifest import (
    Manifest as Manifest,
)
from .sources.log.manifest import (
    Selection as Selection,
)
from .sources.log.source import (
    Bad as Bad,
)
from .sources.log.source import (
    Log as Log,
)
from .sources.log.source import (
    read_log as read_log,
)
from .sources.recorded import (
    Recorded as Recorded,
)
from .sources.recorded import (
    Transitions as Transitions,
)
from .sources.source import (
    Simulated as Simulated,
)
from .sources.structure import (
    Structure as Structure,
)
from .sources.structure import (
    unknown as unknown,
)
from .sources.structure import (
    unknown_move as unknown_move,
)
from .verification.solution import (
    verify as verify,
)
