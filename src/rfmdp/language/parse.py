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
from rfmdp.language.ast import Expr, ModelType, Type
from rfmdp.language.grammar import BuildError, make_parser, parse, position_of
from rfmdp.language.operators import OperatorSign, tree
from rfmdp.language.source import Position, SourceText

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
    items: list[Any] = parse(_parser(), source, "model")
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
    """Makes expressions; each method has the name of a rule of the grammar."""

    def integer(self, parts: list[Token]) -> Expr:
        """Make an int; PRISM's have 32 bits."""
        (token,) = parts
        if len(token) > len(str(MAX_INT)) or int(token) > MAX_INT:
            reason = f"an integer must be at most {MAX_INT}; write {token[:20]}.0 for a double"
            raise BuildError(position_of(token), reason)
        return ast.Literal(int(token), position=position_of(token))

    def double(self, parts: list[Token]) -> Expr:
        """Make a double, which remembers the number as it was written."""
        (token,) = parts
        power = token.lower().partition("e")[2]
        short = len(token) <= MAX_WRITTEN and abs(int(power or 0)) <= MAX_WRITTEN
        exact = Fraction(str(token)) if short else None
        return ast.Literal(float(token), exact, position=position_of(token))

    def true(self, parts: list[Token]) -> Expr:
        """Make true."""
        return ast.Literal(True, position=position_of(parts[0]))

    def false(self, parts: list[Token]) -> Expr:
        """Make false."""
        return ast.Literal(False, position=position_of(parts[0]))

    def name(self, parts: list[Token]) -> Expr:
        """Make a reference to a constant, formula or variable."""
        return ast.Name(str(parts[0]), position=position_of(parts[0]))

    def quoted(self, parts: list[Token]) -> Expr:
        """Make a reference to a label."""
        return ast.Label(unquoted(parts[0]), position=position_of(parts[0]))

    def chain(self, parts: list[Token | Expr]) -> Expr:
        """Make the tree of operands with operators between and before them."""
        return tree(
            [OperatorSign(str(p), position_of(p)) if isinstance(p, Token) else p for p in parts]
        )

    def choice(self, parts: list[Expr]) -> Expr:
        """Make `condition ? then : otherwise`."""
        condition, then, otherwise = parts
        return ast.Ite(condition, then, otherwise, position=condition.position)

    def call(self, parts: list[Any]) -> Expr:
        """Make a function call, also of the old form `func(min, a, b)`."""
        function, *arguments = parts
        position = position_of(function)
        if function == "multi":
            raise BuildError(position, "the multi-objective 'multi(...)'", supported=False)
        return ast.Call(str(function), tuple(arguments), position=position)

    def constant(self, parts: list[Any]) -> ast.Constant:
        """Make a constant; without a type it is an int."""
        kind, name, value = parts
        type_ = Type.INT if kind is None else CONSTANT_TYPES[kind]
        return ast.Constant(str(name), type_, value, position=position_of(name))

    def formula(self, parts: list[Any]) -> ast.Formula:
        """Make a formula."""
        name, value = parts
        return ast.Formula(str(name), value, position=position_of(name))

    def label(self, parts: list[Any]) -> ast.LabelDefinition:
        """Make the definition of a label."""
        name, value = parts
        return ast.LabelDefinition(unquoted(name), value, position=position_of(name))


class ModelBuilder(ExpressionBuilder):
    """Makes the parts of models; each method has the name of a rule of the grammar."""

    def model(self, parts: list[Any]) -> list[Any]:
        """Hand all items on to `parse_model`, which knows the source."""
        return parts

    def model_type(self, parts: list[Token]) -> tuple[ModelType, Position]:
        """Make the model type."""
        (token,) = parts
        if token in MODEL_TYPES:
            return MODEL_TYPES[token], position_of(token)
        if token in OTHER_MODEL_TYPES:
            reason = f"model type '{token}'"
            raise BuildError(position_of(token), reason, supported=False)
        expected = "a model type, 'const', 'formula', 'global', 'init', 'label', 'module'"
        reason = f"expected {expected} or 'rewards', found '{token[:40]}'"
        raise BuildError(position_of(token), reason)

    def global_variable(self, parts: list[ast.VariableDeclaration]) -> ast.VariableDeclaration:
        """Make a global variable."""
        return parts[0]

    def initial(self, parts: list[Any]) -> tuple[Expr, Position]:
        """Make the condition of `init ... endinit`."""
        keyword, condition = parts
        return condition, position_of(keyword)

    def module(self, parts: list[Any]) -> ast.Module:
        """Make a module."""
        name, *rest = parts
        variables = tuple(part for part in rest if isinstance(part, ast.VariableDeclaration))
        commands = tuple(part for part in rest if isinstance(part, ast.Command))
        return ast.Module(str(name), variables, commands, position=position_of(name))

    def variable(self, parts: list[Any]) -> ast.VariableDeclaration:
        """Make a variable with its range; the grammar also passes the keyword `init`."""
        name, (lower, upper), *rest = parts
        return ast.VariableDeclaration(
            str(name), lower, upper, rest[-1], position=position_of(name)
        )

    def unlimited(self, parts: list[Any]) -> ast.VariableDeclaration:
        """Make an int without range, which starts at 0."""
        name, kind, *rest = parts
        place = position_of(kind)
        upper = ast.Literal(MAX_INT, position=place)
        lower = ast.Unary("-", upper, position=place)
        init = ast.Literal(0, position=place) if rest[-1] is None else rest[-1]
        return ast.VariableDeclaration(str(name), lower, upper, init, position=position_of(name))

    def range(self, parts: list[Any]) -> tuple[Expr, Expr]:
        """Make the range of an int variable."""
        lower, upper = (part for part in parts if isinstance(part, Expr))
        return lower, upper

    def boolean(self, parts: list[Token]) -> tuple[None, None]:
        """Make the range of a bool variable."""
        return None, None

    def clock(self, parts: list[Token]) -> None:
        """Refuse a clock."""
        raise BuildError(position_of(parts[0]), "a clock variable ('clock')", supported=False)

    def command(self, parts: list[Any]) -> ast.Command:
        """Make a command; it stands where its '[' stands."""
        bracket, action, guard, *updates = parts
        action = None if action is None else str(action)
        return ast.Command(action, guard, tuple(updates), position=position_of(bracket))

    def certain(self, parts: list[Any]) -> ast.Update:
        """Make an update without probability."""
        position, assignments = parts[0]
        return ast.Update(None, assignments, position=position)

    def update(self, parts: list[Any]) -> ast.Update:
        """Make an update with its probability or interval."""
        probability, (_, assignments) = parts
        return ast.Update(probability, assignments, position=probability.position)

    def interval(self, parts: list[Any]) -> ast.ProbabilityInterval:
        """Make an interval in the place of a probability."""
        bracket, lower, upper = parts
        return ast.ProbabilityInterval(lower, upper, position=position_of(bracket))

    def assignments(self, parts: list[Any]) -> tuple[Position, tuple[ast.Assignment, ...]]:
        """Make a conjunction of assignments, empty for `true`."""
        if isinstance(parts[0], Token):
            return position_of(parts[0]), ()
        return parts[0].position, tuple(parts)

    def assignment(self, parts: list[Any]) -> ast.Assignment:
        """Make one assignment."""
        variable, value = parts
        return ast.Assignment(str(variable)[:-1], value, value, position=position_of(variable))

    def renamed_module(self, parts: list[Any]) -> ast.RenamedModule:
        """Make a module that renames another."""
        name, base, *renamings = parts
        return ast.RenamedModule(str(name), str(base), tuple(renamings), position=position_of(name))

    def renaming(self, parts: list[Token]) -> ast.Renaming:
        """Make one renaming."""
        old, new = parts
        return ast.Renaming(str(old), str(new), position=position_of(old))

    def rewards(self, parts: list[Any]) -> ast.RewardStructure:
        """Make a reward structure."""
        keyword, name, *items = parts
        position = position_of(keyword if name is None else name)
        title = None if name is None else unquoted(name)
        return ast.RewardStructure(title, tuple(items), position=position)

    def reward_item(self, parts: list[Any]) -> ast.RewardItem:
        """Make one line of a reward structure."""
        action, guard, value = parts
        name, position = (None, guard.position) if action is None else action
        return ast.RewardItem(name, guard, value, position=position)

    def reward_action(self, parts: list[Any]) -> tuple[str, Position]:
        """Make the action of a transition reward."""
        bracket, name = parts
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
