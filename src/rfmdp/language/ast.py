"""The tree of a PRISM model or property as its text says it: nothing expanded or evaluated.

A property is an expression over `Probability`, `Reward` and `Filter`, combined by the ordinary
operators. A path formula is a `Path` over path formulas, a Boolean combination of some, or a state
formula (which a path satisfies if its first state does).
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from rfmdp.language.expressions import Expr, Node, Type, Unary, nodes
from rfmdp.language.source import SourceText
from rfmdp.objective import Direction

FILTERS = ("state", "min", "max", "avg", "sum", "count", "forall", "exists", "first")
FILTER_ALIASES = {"+": "sum", "&": "forall", "|": "exists"}


class ModelType(Enum):
    """Kind of model that a text declares."""

    DTMC = "dtmc"
    MDP = "mdp"
    IDTMC = "idtmc"
    IMDP = "imdp"


class Constant(Node):
    """`const type name = value;`, undefined if `value` is None."""

    name: str
    type: Type
    value: Expr | None


class Formula(Node):
    """`formula name = value;`."""

    name: str
    value: Expr


class LabelDefinition(Node):
    """`label "name" = value;`."""

    name: str
    value: Expr


class VariableDeclaration(Node):
    """`name : [lower..upper] init init;`, or a bool if both bounds are None."""

    name: str
    lower: Expr | None
    upper: Expr | None
    init: Expr | None

    @property
    def is_bool(self) -> bool:
        """Return whether this is a bool variable."""
        return self.lower is None


class ProbabilityInterval(Node):
    """`[lower, upper]` in the place of a probability."""

    lower: Expr
    upper: Expr


class Assignment(Node):
    """`(variable' = value)`; `written` is the value with its formulas by their names."""

    variable: str
    value: Expr
    written: Expr | None = field(default=None, compare=False)


class Update(Node):
    """`probability : assignments`; no assignment is `true`, no probability is certainty."""

    probability: Expr | ProbabilityInterval | None
    assignments: tuple[Assignment, ...]


class Command(Node):
    """`[action] guard -> updates;`, without action for `[]`."""

    action: str | None
    guard: Expr
    updates: tuple[Update, ...]


class Module(Node):
    """`module name ... endmodule`."""

    name: str
    variables: tuple[VariableDeclaration, ...]
    commands: tuple[Command, ...]

    @property
    def alphabet(self) -> tuple[str, ...]:
        """Its actions in order of appearance, without the unlabelled one."""
        return tuple(dict.fromkeys(c.action for c in self.commands if c.action is not None))


class Renaming(Node):
    """`old = new` in a renamed module."""

    old: str
    new: str


class RenamedModule(Node):
    """`module name = base [ renamings ] endmodule`."""

    name: str
    base: str
    renamings: tuple[Renaming, ...]


class RewardItem(Node):
    """`guard : value;` of states, or `[action] guard : value;` of transitions.

    action : None for states, "" for `[]`, otherwise the action
    """

    action: str | None
    guard: Expr
    value: Expr


class RewardStructure(Node):
    """`rewards "name" ... endrewards`; the name is None where the text has none."""

    name: str | None
    items: tuple[RewardItem, ...]


class ModelFile(Node):
    """A whole model file. Each kind of definition keeps the order of the text."""

    type: ModelType | None  # None: not declared
    constants: tuple[Constant, ...] = ()
    formulas: tuple[Formula, ...] = ()
    labels: tuple[LabelDefinition, ...] = ()
    globals: tuple[VariableDeclaration, ...] = ()
    modules: tuple[Module | RenamedModule, ...] = ()
    rewards: tuple[RewardStructure, ...] = ()
    init: Expr | None = None
    source: SourceText = field(default=SourceText(""), compare=False)


class Bound(Node):
    """`operator value` after P or R, as in `P>=0.9`."""

    operator: str  # < <= > >=
    value: Expr


class TimeBound(Node):
    """Steps within which something happens: `lower (<|<=) k (<|<=) upper`, None for no limit.

    `=k` has k on both sides. With the name of a `reward`, what was paid counts, not steps.
    """

    lower: Expr | None
    upper: Expr | None
    lower_strict: bool = False
    upper_strict: bool = False
    reward: str | None = None


class Path(Expr):
    """`X right`, `F right`, `G right`, `left U right`, `left W right`, `left R right`.

    `S=? [ right ]` is a `Probability` of the operator S: the share of all steps in which it holds.
    """

    operator: str  # X F G U W R S
    left: Expr | None
    right: Expr
    time: TimeBound | None = None


class CumulativeReward(Expr):
    """`C<=steps` inside R, or the total reward `C` without steps; discounted if so given."""

    steps: Expr | None = None
    discount: Expr | None = None


class InstantaneousReward(Expr):
    """`I=step` inside R: the state reward after exactly so many steps."""

    step: Expr


class LongRunReward(Expr):
    """`S` inside R: the mean reward of a step in the long run."""


class Probability(Expr):
    """`P agent nature bound [ path ]`; without bound it is `=?`.

    agent, nature : None where the text does not say
    """

    agent: Direction | None
    nature: Direction | None
    bound: Bound | None
    path: Expr


class Reward(Expr):
    """`R{structure} agent nature bound [ path ]`.

    structure : name, number from 1, or None for the first; a checked property has the number
    path : `Path` with F, `CumulativeReward`, `InstantaneousReward` or `LongRunReward`
    """

    structure: str | Expr | None
    agent: Direction | None
    nature: Direction | None
    bound: Bound | None
    path: Expr


class Filter(Expr):
    """`filter(operator, operand, states)`; without states it is over all of them."""

    operator: str  # one of FILTERS
    operand: Expr
    states: Expr | None = None


OPERATORS = (Probability, Reward, Filter)  # what is evaluated on its own


class Unreadable(Expr):
    """The text of a property that cannot be read, or is not supported; others of a file still run.

    Its position is that of the mistake.
    """

    text: str
    reason: str


class PropertyDefinition(Node):
    """One property of a file, with its name if it has one."""

    name: str | None
    expression: Expr


class PropertyFile(Node):
    """A whole property file."""

    properties: tuple[PropertyDefinition, ...] = ()
    constants: tuple[Constant, ...] = ()
    formulas: tuple[Formula, ...] = ()
    labels: tuple[LabelDefinition, ...] = ()
    source: SourceText = field(default=SourceText(""), compare=False)


def path_operators(path: Expr) -> list[Path]:
    """Return the operators X, F, G, U, W and R of a path formula, not those of nested P or R."""
    return [node for node in nodes(path, leaves=OPERATORS) if isinstance(node, Path)]


def is_nested(path: Expr) -> bool:
    """Return whether a path formula has operators inside each other, or joined by & and |."""
    while isinstance(path, Unary):
        path = path.operand
    return len(path_operators(path)) > isinstance(path, Path)
