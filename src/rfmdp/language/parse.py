"""Text of a PRISM model to its tree.

The parser calls a method of the builder whenever it has read a construct, bottom-up and without
recursion, so that neither long nor deep texts can overflow the stack.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

from lark import Lark, Token

from rfmdp.language import ast
from rfmdp.language.ast import BINARY, RIGHT, UNARY, Expr, ModelType, Type
from rfmdp.language.grammar import make_parser, parse, place_of
from rfmdp.language.source import BuildError, SourceText

T = TypeVar("T")

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
    """Return the tree of a model; a byte order mark and CRLF line ends are accepted.

    >>> parse_model("dtmc module m x : [0..1]; [] true -> (x'=1); endmodule").modules[0].name
    'm'
    """
    source = SourceText(text.removeprefix("\ufeff"), filename)
    items: list[Any] = parse(_parser(), source, "model").children
    types, inits = all_of(items, _Kind), all_of(items, _Initial)
    for second in types[1:]:
        raise source.error(second.position, "a model must have only one model type, found a second")
    for again in inits[1:]:
        raise source.error(again.position, "a model must have only one 'init ... endinit'")
    return ast.ModelFile(
        types[0].type if types else None,
        all_of(items, ast.Constant),
        all_of(items, ast.Formula),
        all_of(items, ast.LabelDefinition),
        all_of(items, ast.VariableDeclaration),
        tuple(item for item in items if isinstance(item, ast.Module | ast.RenamedModule)),
        all_of(items, ast.RewardStructure),
        inits[0].condition if inits else None,
        source,
    )


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


class _Kind(ast.Node):
    """The line that says what kind of model it is."""

    type: ModelType


class _Initial(ast.Node):
    """`init condition endinit`."""

    condition: Expr


class ExpressionBuilder:
    """Makes expressions, and definitions of names."""

    def integer(self, token: Token) -> Expr:
        """Make an int; PRISM's have 32 bits."""
        if len(token) > len(str(MAX_INT)) or int(token) > MAX_INT:
            reason = f"an integer must be at most {MAX_INT}; write {token[:20]}.0 for a double"
            raise BuildError(place_of(token), reason)
        return ast.Literal(int(token))

    def double(self, token: Token) -> Expr:
        """Make a double, which remembers the number as it was written."""
        power = token.lower().partition("e")[2]
        short = len(token) <= MAX_WRITTEN and abs(int(power or 0)) <= MAX_WRITTEN
        return ast.Literal(float(token), Fraction(str(token)) if short else None)

    def true(self, _: Token) -> Expr:
        """Make true."""
        return ast.Literal(True)

    def false(self, _: Token) -> Expr:
        """Make false."""
        return ast.Literal(False)

    def name(self, token: Token) -> Expr:
        """Make a reference to a constant, formula or variable."""
        return ast.Name(str(token))

    def quoted(self, token: Token) -> Expr:
        """Make a reference to a label."""
        return ast.Label(unquoted(token))

    def chain(self, *items: Token | Expr) -> Expr:
        """Make the tree of operands with operators between and before them."""
        return operator_tree(items)

    def choice(self, condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        """Make `condition ? then : otherwise`."""
        return ast.Ite(condition, then, otherwise)

    def call(self, function: Token, *arguments: Expr) -> Expr:
        """Make a function call, also of the old form `func(min, a, b)`."""
        return ast.Call(str(function), arguments)

    def constant(self, kind: Token | None, name: Token, value: Expr | None) -> ast.Constant:
        """Make a constant; without a type it is an int."""
        type_ = Type.INT if kind is None else CONSTANT_TYPES[kind]
        return ast.Constant(str(name), type_, value, position=place_of(name))

    def formula(self, name: Token, value: Expr) -> ast.Formula:
        """Make a formula."""
        return ast.Formula(str(name), value)

    def label(self, name: Token, value: Expr) -> ast.LabelDefinition:
        """Make the definition of a label."""
        return ast.LabelDefinition(unquoted(name), value)


class ModelBuilder(ExpressionBuilder):
    """Makes the parts of models."""

    def model_type(self, token: Token) -> _Kind:
        """Make the model type."""
        if token in MODEL_TYPES:
            return _Kind(MODEL_TYPES[token])
        if token in OTHER_MODEL_TYPES:
            raise BuildError(place_of(token), f"model type '{token}'", supported=False)
        expected = "a model type, 'const', 'formula', 'global', 'init', 'label', 'module'"
        reason = f"expected {expected} or 'rewards', found '{token[:40]}'"
        raise BuildError(place_of(token), reason)

    def initial(self, _: Token, condition: Expr) -> _Initial:
        """Make the condition of `init ... endinit`."""
        return _Initial(condition)

    def module(self, name: Token, *items: ast.VariableDeclaration | ast.Command) -> ast.Module:
        """Make a module."""
        variables, commands = all_of(items, ast.VariableDeclaration), all_of(items, ast.Command)
        return ast.Module(str(name), variables, commands)

    def variable(
        self, name: Token, ends: tuple[Expr, Expr] | tuple[None, None], init: Expr | None
    ) -> ast.VariableDeclaration:
        """Make a variable with its range."""
        lower, upper = ends
        return ast.VariableDeclaration(str(name), lower, upper, init)

    def unlimited(self, name: Token, kind: Token, _: Expr | None) -> None:
        """Refuse an int without range."""
        reason = f"an int must have a range, which may be wide; write {name} : [0..1000000]"
        raise BuildError(place_of(kind), reason)

    def range(self, lower: Expr, upper: Expr) -> tuple[Expr, Expr]:
        """Make the range of an int variable."""
        return lower, upper

    def boolean(self) -> tuple[None, None]:
        """Make the range of a bool variable."""
        return None, None

    def command(
        self, _: Token, action: Token | None, guard: Expr, *updates: ast.Update
    ) -> ast.Command:
        """Make a command; it stands where its '[' stands."""
        return ast.Command(None if action is None else str(action), guard, updates)

    def certain(self, *assignments: Token | ast.Assignment) -> ast.Update:
        """Make an update without probability; it may be `true`, which assigns nothing."""
        return ast.Update(None, all_of(assignments, ast.Assignment))

    def update(
        self, probability: Expr | ast.ProbabilityInterval, *assignments: Token | ast.Assignment
    ) -> ast.Update:
        """Make an update with its probability or interval."""
        return ast.Update(probability, all_of(assignments, ast.Assignment))

    def interval(self, _: Token, lower: Expr, upper: Expr) -> ast.ProbabilityInterval:
        """Make an interval in the place of a probability."""
        return ast.ProbabilityInterval(lower, upper)

    def assignment(self, variable: Token, value: Expr) -> ast.Assignment:
        """Make one assignment."""
        return ast.Assignment(str(variable)[:-1], value, value)

    def renamed_module(
        self, name: Token, base: Token, *renamings: ast.Renaming
    ) -> ast.RenamedModule:
        """Make a module that renames another."""
        return ast.RenamedModule(str(name), str(base), renamings)

    def renaming(self, old: Token, new: Token) -> ast.Renaming:
        """Make one renaming."""
        return ast.Renaming(str(old), str(new))

    def rewards(
        self, keyword: Token, name: Token | None, *items: ast.RewardItem
    ) -> ast.RewardStructure:
        """Make a reward structure."""
        title = None if name is None else unquoted(name)
        return ast.RewardStructure(title, items, position=place_of(name or keyword))

    def reward_item(
        self, bracket: Token | None, action: Token | None, guard: Expr, value: Expr
    ) -> ast.RewardItem:
        """Make one line of a reward structure: of states, or of transitions by their action."""
        return ast.RewardItem(None if bracket is None else str(action or ""), guard, value)


def operator_tree(chain: Sequence[Token | Expr]) -> Expr:
    """Build the tree of operands, prefix and infix operators in the order of the text.

    As in PRISM, `!` must not be the operand of a tighter operator: `a = !b`.
    """
    operands: list[Expr] = []
    waiting: list[tuple[int, int, Token]] = []  # precedence, number of operands, operator
    prefix = True
    for item in chain:
        if isinstance(item, Expr):
            operands.append(item)
            prefix = False
        elif prefix:
            precedence = UNARY[item]
            if waiting and waiting[-1][0] > precedence:
                reason = "expected an operand, found '!'; write the negation in parentheses"
                raise BuildError(place_of(item), reason)
            waiting.append((precedence, 1, item))
        else:
            precedence = BINARY[item]
            while waiting and waiting[-1][0] >= precedence + (item in RIGHT):
                _apply(operands, *waiting.pop()[1:])
            waiting.append((precedence, 2, item))
            prefix = True
    while waiting:
        _apply(operands, *waiting.pop()[1:])
    return operands[0]


def _apply(operands: list[Expr], arity: int, sign: Token) -> None:
    right = operands.pop()
    if arity == 1:
        operands.append(ast.Unary(str(sign), right, position=place_of(sign)))
    else:
        left = operands.pop()
        operands.append(ast.Binary(str(sign), left, right, position=left.position))


def unquoted(token: Token) -> str:
    """Return the name inside a quoted token."""
    name = str(token)[1:-1].strip(" \t")
    if not IDENTIFIER.match(name):
        reason = f"expected a name of letters, digits and '_' in the quotes, found {token[:40]}"
        raise BuildError(place_of(token), reason)
    return name


def all_of(items: Sequence[object], kind: type[T]) -> tuple[T, ...]:
    """Return the items of one kind, in order."""
    return tuple(item for item in items if isinstance(item, kind))
