"""Random trees of the PRISM language, all of them such as a parser can return."""

from hypothesis import strategies as st

from rfmdp.language import ast
from rfmdp.language.ast import Binary, Call, Ite, Label, Literal, Name, Type, Unary
from rfmdp.language.expressions import ARITY, BINARY
from rfmdp.objective import Direction

NAMES = st.sampled_from(["a", "b", "x", "y_1", "_z", "log", "round", "Fin", "discount2", "imdp"])
LITERALS = st.one_of(
    st.booleans(),
    st.integers(0, 2**31 - 1),
    st.floats(0, allow_nan=False),
).map(Literal)
LEAVES = st.one_of(LITERALS, NAMES.map(Name), NAMES.map(Label))


def operations(inner):
    """Operators and functions over given operands."""
    return st.one_of(
        st.builds(Unary, st.sampled_from("-!"), inner),
        st.builds(Binary, st.sampled_from(sorted(BINARY)), inner, inner),
        st.builds(Ite, inner, inner, inner),
        st.builds(
            Call,
            st.sampled_from(sorted(ARITY)),
            st.lists(inner, min_size=1, max_size=3).map(tuple),
        ),
    )


EXPRESSIONS = st.recursive(LEAVES, operations, max_leaves=12)
OPTIONAL = st.none() | EXPRESSIONS


def tuples(strategy, smallest=0, largest=2):
    """Tuples of a few."""
    return st.lists(strategy, min_size=smallest, max_size=largest).map(tuple)


INTERVALS = st.builds(ast.ProbabilityInterval, EXPRESSIONS, EXPRESSIONS)
ASSIGNMENTS = tuples(st.builds(ast.Assignment, NAMES, EXPRESSIONS))
UPDATES = tuples(st.builds(ast.Update, EXPRESSIONS | INTERVALS, ASSIGNMENTS), 1, 3)
COMMANDS = st.builds(ast.Command, st.none() | NAMES, EXPRESSIONS, UPDATES)
VARIABLES = st.one_of(
    st.builds(ast.VariableDeclaration, NAMES, EXPRESSIONS, EXPRESSIONS, OPTIONAL),
    st.builds(ast.VariableDeclaration, NAMES, st.none(), st.none(), OPTIONAL),
)
MODULES = st.builds(ast.Module, NAMES, tuples(VARIABLES), tuples(COMMANDS))
RENAMINGS = st.builds(ast.Renaming, NAMES | st.just("min"), NAMES | st.just("max"))
RENAMED = st.builds(ast.RenamedModule, NAMES, NAMES, tuples(RENAMINGS, 1))
ITEMS = st.builds(ast.RewardItem, st.none() | st.just("") | NAMES, EXPRESSIONS, EXPRESSIONS)
CONSTANTS = st.builds(ast.Definition, st.just("constant"), NAMES, OPTIONAL, st.sampled_from(Type))
OTHERS = st.builds(ast.Definition, st.sampled_from(["formula", "label"]), NAMES, EXPRESSIONS)
DEFINITIONS = tuples(CONSTANTS | OTHERS)
MODELS = st.builds(
    ast.ModelFile,
    DEFINITIONS,
    type=st.none() | st.sampled_from(ast.ModelType),
    globals=tuples(VARIABLES),
    modules=tuples(MODULES | RENAMED),
    rewards=tuples(st.builds(ast.RewardStructure, st.none() | NAMES, tuples(ITEMS))),
    init=OPTIONAL,
)

PLAIN = st.recursive(LEAVES, operations, max_leaves=4)
TIMES = st.one_of(
    st.none(),
    st.builds(lambda k, s: ast.TimeBound(None, k, upper_strict=s), PLAIN, st.booleans()),
    st.builds(lambda k, s: ast.TimeBound(k, None, lower_strict=s), PLAIN, st.booleans()),
    st.builds(ast.TimeBound, PLAIN, PLAIN),
    PLAIN.map(lambda k: ast.TimeBound(k, k)),
)
OPTIMA = st.one_of(
    st.just((None, None)),
    st.tuples(st.sampled_from(Direction), st.none() | st.sampled_from(Direction)),
)
BOUNDS = st.none() | st.builds(ast.Bound, st.sampled_from(["<", "<=", ">", ">="]), PLAIN)
STRUCTURES = st.none() | NAMES | PLAIN.filter(lambda expr: not isinstance(expr, Label))


def property_nodes(inner):
    """Operators that only properties have, over given operands."""
    unary = st.builds(ast.Path, st.sampled_from("XFG"), st.none(), inner, TIMES)
    binary = st.builds(ast.Path, st.sampled_from("UWR"), inner, inner, TIMES)
    paths = unary | binary
    sums = st.builds(ast.CumulativeReward, st.none() | PLAIN, st.none() | PLAIN)
    reward_paths = paths | sums | st.builds(ast.InstantaneousReward, PLAIN)
    return st.one_of(
        operations(inner),
        paths,
        st.builds(lambda q, b, p: ast.Probability(*q, b, p), OPTIMA, BOUNDS, inner | paths),
        st.builds(
            lambda s, q, b, p: ast.Reward(s, *q, b, p), STRUCTURES, OPTIMA, BOUNDS, reward_paths
        ),
        st.builds(ast.Filter, st.sampled_from(ast.FILTERS), inner, st.none() | inner),
    )


PROPERTY_EXPRESSIONS = st.recursive(LEAVES, property_nodes, max_leaves=8)
# A property is a state formula: a path formula needs parentheses, which `-` and `!` bring along.
STATES = PROPERTY_EXPRESSIONS.filter(lambda expr: not isinstance(expr, ast.Path))
FILES = st.builds(
    ast.PropertyFile,
    DEFINITIONS,
    properties=tuples(st.builds(ast.PropertyDefinition, st.none() | NAMES, STATES), 0, 3),
)
