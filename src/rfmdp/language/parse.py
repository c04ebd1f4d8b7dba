"""Text of a PRISM model to its tree.

The parser calls a method of the builder whenever it has read a construct, bottom-up and without
recursion, so that neither long nor deep texts can overflow the stack.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias, TypeVar

from lark import Lark, Token

from rfmdp.language import ast
from rfmdp.language.ast import Expr, ModelType, Type
from rfmdp.language.grammar import make_parser, parse, position_of
from rfmdp.language.operators import OperatorSign, tree
from rfmdp.language.source import BuildError, Position, SourceText

T = TypeVar("T")
Assignments: TypeAlias = tuple[Position, tuple[ast.Assignment, ...]]

MAX_INT = 2**31 - 1
MAX_WRITTEN = 1000  # digits of a double that is kept as it was written
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
MODEL_TYPES = {
    "dtmc": ModelType.DTMC,
    "probabilistic": ModelType.DTMC,
    "mdp": ModelType.MDP,
    "nondeterministic": ModelType.MDP,
    "idtmc": ModelType.IDTMC,
    "imdp": ModelType.IMDP,
}
# Words that are no keywords of PRISM itself, hence possible names, but that begin other models.
OTHER_MODEL_TYPES = {"ipomdp", "ictmc", "smg", "csg", "stpg", "lts", "ma"}
CONSTANT_TYPES = {
    "int": Type.INT,
    "double": Type.DOUBLE,
    "bool": Type.BOOL,
    "rate": Type.DOUBLE,
    "prob": Type.DOUBLE,
}


def parse_model(text: str, filename: str = "<model>") -> ast.ModelFile:
    """Return the tree of a model.

    Parameters
    ----------
    text
        The whole model. A byte order mark and CRLF line ends are accepted.
    filename
        How errors call the text.

    Raises
    ------
    PrismError
        `filename:line:column: expected ..., found ...`, the source line and a caret.

    Examples
    --------
    >>> parse_model("dtmc module m x : [0..1]; [] true -> (x'=1); endmodule").modules[0].name
    'm'
    """
    source = SourceText(text.removeprefix("\ufeff"), filename)
    items: list[Any] = parse(_parser(), source, "model").children
    return _model(items, source)


def parse_expression(text: str, filename: str = "<expression>") -> Expr:
    """Return the tree of one expression of the model language.

    >>> parse_expression("2*N")
    Binary(operator='*', left=Literal(value=2), right=Name(name='N'))
    """
    expr: Expr = parse(_parser(), SourceText(text, filename), "expression")
    return expr


@cache
def _parser() -> Lark:
    return make_parser(["model", "expression"], ModelBuilder())


class ExpressionBuilder:
    """Makes expressions, and definitions of names."""

    def integer(self, token: Token) -> Expr:
        """Make an int; PRISM's have 32 bits."""
        if len(token) > len(str(MAX_INT)) or int(token) > MAX_INT:
            reason = f"an integer must be at most {MAX_INT}; write {token[:20]}.0 for a double"
            raise BuildError(position_of(token), reason)
        return ast.Literal(int(token), position=position_of(token))

    def double(self, token: Token) -> Expr:
        """Make a double, which remembers the number as it was written."""
        power = token.lower().partition("e")[2]
        short = len(token) <= MAX_WRITTEN and abs(int(power or 0)) <= MAX_WRITTEN
        exact = Fraction(str(token)) if short else None
        return ast.Literal(float(token), exact, position=position_of(token))

    def true(self, token: Token) -> Expr:
        """Make true."""
        return ast.Literal(True, position=position_of(token))

    def false(self, token: Token) -> Expr:
        """Make false."""
        return ast.Literal(False, position=position_of(token))

    def name(self, token: Token) -> Expr:
        """Make a reference to a constant, formula or variable."""
        return ast.Name(str(token), position=position_of(token))

    def quoted(self, token: Token) -> Expr:
        """Make a reference to a label."""
        return ast.Label(unquoted(token), position=position_of(token))

    def chain(self, *parts: Token | Expr) -> Expr:
        """Make the tree of operands with operators between and before them."""
        return tree(
            [OperatorSign(str(p), position_of(p)) if isinstance(p, Token) else p for p in parts]
        )

    def choice(self, condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        """Make `condition ? then : otherwise`."""
        return ast.Ite(condition, then, otherwise, position=condition.position)

    def call(self, function: Token, *arguments: Expr) -> Expr:
        """Make a function call, also of the old form `func(min, a, b)`."""
        position = position_of(function)
        if function == "multi":
            raise BuildError(position, "the multi-objective 'multi(...)'", supported=False)
        return ast.Call(str(function), arguments, position=position)

    def constant(self, kind: Token | None, name: Token, value: Expr | None) -> ast.Constant:
        """Make a constant; without a type it is an int."""
        type_ = Type.INT if kind is None else CONSTANT_TYPES[kind]
        return ast.Constant(str(name), type_, value, position=position_of(name))

    def formula(self, name: Token, value: Expr) -> ast.Formula:
        """Make a formula."""
        return ast.Formula(str(name), value, position=position_of(name))

    def label(self, name: Token, value: Expr) -> ast.LabelDefinition:
        """Make the definition of a label."""
        return ast.LabelDefinition(unquoted(name), value, position=position_of(name))


class ModelBuilder(ExpressionBuilder):
    """Makes the parts of models."""

    def model_type(self, token: Token) -> tuple[ModelType, Position]:
        """Make the model type."""
        if token in MODEL_TYPES:
            return MODEL_TYPES[token], position_of(token)
        if token in OTHER_MODEL_TYPES:
            reason = f"model type '{token}'"
            raise BuildError(position_of(token), reason, supported=False)
        expected = "a model type, 'const', 'formula', 'global', 'init', 'label', 'module'"
        reason = f"expected {expected} or 'rewards', found '{token[:40]}'"
        raise BuildError(position_of(token), reason)

    def initial(self, keyword: Token, condition: Expr) -> tuple[Expr, Position]:
        """Make the condition of `init ... endinit`."""
        return condition, position_of(keyword)

    def module(self, name: Token, *parts: ast.VariableDeclaration | ast.Command) -> ast.Module:
        """Make a module."""
        variables, commands = all_of(parts, ast.VariableDeclaration), all_of(parts, ast.Command)
        return ast.Module(str(name), variables, commands, position=position_of(name))

    def variable(
        self, name: Token, ends: tuple[Expr, Expr] | tuple[None, None], init: Expr | None
    ) -> ast.VariableDeclaration:
        """Make a variable with its range."""
        lower, upper = ends
        return ast.VariableDeclaration(str(name), lower, upper, init, position=position_of(name))

    def unlimited(self, name: Token, kind: Token, init: Expr | None) -> ast.VariableDeclaration:
        """Make an int without range, which starts at 0."""
        place = position_of(kind)
        upper = ast.Literal(MAX_INT, position=place)
        lower = ast.Unary("-", upper, position=place)
        first = ast.Literal(0, position=place) if init is None else init
        return ast.VariableDeclaration(str(name), lower, upper, first, position=position_of(name))

    def range(self, lower: Expr, upper: Expr) -> tuple[Expr, Expr]:
        """Make the range of an int variable."""
        return lower, upper

    def boolean(self) -> tuple[None, None]:
        """Make the range of a bool variable."""
        return None, None

    def clock(self, token: Token) -> None:
        """Refuse a clock."""
        raise BuildError(position_of(token), "a clock variable ('clock')", supported=False)

    def command(
        self, bracket: Token, action: Token | None, guard: Expr, *updates: ast.Update
    ) -> ast.Command:
        """Make a command; it stands where its '[' stands."""
        name = None if action is None else str(action)
        return ast.Command(name, guard, updates, position=position_of(bracket))

    def certain(self, assignments: Assignments) -> ast.Update:
        """Make an update without probability."""
        return ast.Update(None, assignments[1], position=assignments[0])

    def update(
        self, probability: Expr | ast.ProbabilityInterval, assignments: Assignments
    ) -> ast.Update:
        """Make an update with its probability or interval."""
        return ast.Update(probability, assignments[1], position=probability.position)

    def interval(self, bracket: Token, lower: Expr, upper: Expr) -> ast.ProbabilityInterval:
        """Make an interval in the place of a probability."""
        return ast.ProbabilityInterval(lower, upper, position=position_of(bracket))

    def assignments(self, first: Token | ast.Assignment, *more: ast.Assignment) -> Assignments:
        """Make a conjunction of assignments, empty for `true`."""
        if isinstance(first, Token):
            return position_of(first), ()
        return first.position, (first, *more)

    def assignment(self, variable: Token, value: Expr) -> ast.Assignment:
        """Make one assignment."""
        return ast.Assignment(str(variable)[:-1], value, value, position=position_of(variable))

    def renamed_module(
        self, name: Token, base: Token, *renamings: ast.Renaming
    ) -> ast.RenamedModule:
        """Make a module that renames another."""
        return ast.RenamedModule(str(name), str(base), renamings, position=position_of(name))

    def renaming(self, old: Token, new: Token) -> ast.Renaming:
        """Make one renaming."""
        return ast.Renaming(str(old), str(new), position=position_of(old))

    def rewards(
        self, keyword: Token, name: Token | None, *items: ast.RewardItem
    ) -> ast.RewardStructure:
        """Make a reward structure."""
        title = None if name is None else unquoted(name)
        return ast.RewardStructure(title, items, position=position_of(name or keyword))

    def reward_item(
        self, action: tuple[str, Position] | None, guard: Expr, value: Expr
    ) -> ast.RewardItem:
        """Make one line of a reward structure."""
        name, position = (None, guard.position) if action is None else action
        return ast.RewardItem(name, guard, value, position=position)

    def reward_action(self, bracket: Token, name: Token | None) -> tuple[str, Position]:
        """Make the action of a transition reward."""
        return ("" if name is None else str(name)), position_of(bracket)


def unquoted(token: Token) -> str:
    """Return the name inside a quoted token."""
    name = str(token)[1:-1].strip(" \t")
    if not IDENTIFIER.match(name):
        reason = f"expected a name of letters, digits and '_' in the quotes, found {token[:40]}"
        raise BuildError(position_of(token), reason)
    return name


def _model(items: list[Any], source: SourceText) -> ast.ModelFile:
    types: list[tuple[ModelType, Position]] = []
    inits: list[tuple[Expr, Position]] = []
    for item in items:
        if isinstance(item, tuple):
            (types if isinstance(item[0], ModelType) else inits).append(item)
    if len(types) > 1:
        raise source.error(types[1][1], "a model must have only one model type, found a second")
    if len(inits) > 1:
        raise source.error(inits[1][1], "a model must have only one 'init ... endinit'")
    return ast.ModelFile(
        types[0][0] if types else None,
        all_of(items, ast.Constant),
        all_of(items, ast.Formula),
        all_of(items, ast.LabelDefinition),
        all_of(items, ast.VariableDeclaration),
        tuple(item for item in items if isinstance(item, ast.Module | ast.RenamedModule)),
        all_of(items, ast.RewardStructure),
        inits[0][0] if inits else None,
        source,
    )


def all_of(items: Sequence[object], kind: type[T]) -> tuple[T, ...]:
    """Return the items of one kind, in order."""
    return tuple(item for item in items if isinstance(item, kind))
