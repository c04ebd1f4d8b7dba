"""Text of PRISM models, expressions and properties to their tree; syntax errors.

A property that rfmdp does not support, or cannot read, does not make a file unreadable: it becomes
an `Unreadable` node, and `require_supported` says so when that property is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from rfmdp.language import ast
from rfmdp.language.ast import Expr, Node
from rfmdp.language.expressions import ARITY, BINARY, nodes
from rfmdp.language.rules import RULES, BuildError, place_of
from rfmdp.language.source import NOWHERE, Position, PrismSourceError, SourceText, nearest

WORDS = {
    "NAME": "a name",
    "PRIMED": "a primed variable such as x'",
    "STRING": "a name in double quotes",
    "INT": "a number",
    "DOUBLE": "a number",
    "FUNCTION": "a function",
    "$END": "the end of the text",
}
PATH_START = {"X", "F", "G"}
EXPRESSION_START = PATH_START | {
    *("NAME", "INT", "DOUBLE", "TRUE", "FALSE", "STRING", "LPAR", "NOT", "MINUS", "FUNCTION"),
    *("MIN", "MAX", "FUNC", "P", "P_QUANTIFIED", "R", "R_QUANTIFIED", "S", "LRA", "FILTER"),
}
TYPES = "use dtmc, mdp, idtmc or imdp"
UNSUPPORTED = {  # words of PRISM: what they are, and what to write instead
    **{k.upper(): (f"model type '{k}'", TYPES) for k in ("ctmc", "pta", "pomdp", "popta")},
    "STOCHASTIC": ("model type 'stochastic' (a ctmc)", TYPES),
    "CLOCK": ("a clock variable ('clock')", ""),
    "INVARIANT": ("a clock invariant ('invariant ... endinvariant')", ""),
    "SYSTEM": ("a process-algebra composition ('system ... endsystem')", ""),
    "OBSERVABLES": ("'observables ... endobservables' of partially observable models", ""),
    "OBSERVABLE": ("'observable' of partially observable models", ""),
    "MULTI": ("the multi-objective 'multi(...)'", "ask for each objective by itself"),
    "COALITION": ("the game operator '<<...>>'", "write P or R for the agent, as in Pmaxmin=?"),
    "OTHERS": ("the game operator '[[...]]'", "write P or R for the agent, as in Pmaxmin=?"),
    "HOA": ("an automaton ('HOA: {...}')", "write the formula (`automaton=read_automaton(FILE)`)"),
    "E": ("'E [ ... ]'", "use Pmax=? [ ... ] > 0"),
    "A": ("'A [ ... ]'", "use Pmin=? [ ... ] >= 1"),
}
QUANTIFIERS = ("min", "max", "minmin", "minmax", "maxmin", "maxmax")
COMMON_WORDS = (*ARITY, "const", "formula", "label", "true", "false")
MODEL_WORDS = (*COMMON_WORDS, *(kind.value for kind in ast.ModelType), "int", "double", "bool",
               "global", "module", "endmodule", "init", "endinit", "rewards",
               "endrewards")  # fmt: skip
PROPERTY_WORDS = (*COMMON_WORDS, *ast.FILTERS, *QUANTIFIERS, "filter",
                  *(letter + players for letter in "PR" for players in QUANTIFIERS))  # fmt: skip
WORD = re.compile(r"[A-Za-z_]\w*")
OTHER_SIGNS = (  # what other tools write in formulas, and what it is here
    (r"\|\|", "'or' is written |, and conditional probabilities are not supported"),
    (r"&&", "'and' is written &"),
    (r"==", "'equal' is written ="),
    (r"\bT(min|max)*\s*=\?", 'expected times (T) are rewards, R{"steps"}=? [ F ... ]'),
    (r"\b[CF]\b.*\bdiscount\s*=", "only C has a discount, written C{discount=0.9}"),
    (r"\}\s*(\{(min|max)\}\s*)*\]", "choose states by filter(min, P=? [ ... ], states)"),
)
READ = "models in the PRISM language (dtmc, mdp, idtmc, imdp), .tra, .umb and .rfmdp are read"
SHOWN = 40  # characters of an unexpected word that a message repeats
DEFINITION = re.compile(r"(\s|//.*\n)*(const|label|formula|prob|rate)\b")
PIECES = re.compile(r'"[^"\n]*"|//[^\n]*|\n|[^"/\n]|/|"')  # names, comments and single characters


def parse_model(text: str, filename: str = "<model>") -> ast.ModelFile:
    """Return the tree of a model; a byte order mark and CRLF line ends are accepted."""
    source = SourceText(text.removeprefix("\ufeff"), filename)
    model: ast.ModelFile = _parse(source, "model")
    return replace(model, source=source)


def parse_expression(text: str, filename: str = "<expression>") -> Expr:
    """Return the tree of one expression of the model language."""
    expr: Expr = _parse(SourceText(text, filename), "expression")
    return expr


def parse_property_file(text: str, filename: str = "<properties>") -> ast.PropertyFile:
    """Return the tree of a property file; properties end with ';' or where the next begins.

    Single properties that cannot be read, or are not supported, raise when they are checked.
    """
    source = SourceText(text.removeprefix("\ufeff"), filename)
    text, items = source.text, None
    unreadable: list[ast.PropertyDefinition] = []
    errors: list[PrismSourceError] = []
    while items is None:
        try:
            items = _parse(SourceText(text, filename), "properties")
        except PrismSourceError as error:
            begin, end = _statement(text, error)
            statement = text[begin:end]
            if not statement.strip() or DEFINITION.match(statement):
                raise
            errors.append(error)
            unreadable.append(_unreadable(source, begin, statement, error))
            text = text[:begin] + re.sub(r"[^\n]", " ", statement) + text[end:]
    properties = [item for item in items if isinstance(item, ast.PropertyDefinition)]
    if len(errors) > 1 and not properties:
        raise errors[0]  # this is no file of properties
    definitions = tuple(item for item in items if isinstance(item, ast.Definition))
    for value in (d.value for d in definitions if d.value is not None):
        for node in nodes(value):
            if not isinstance(node, ast.PLAIN):
                reason = "expected an expression without P, R or path operators"
                raise source.error(node.position, reason)
    in_order = tuple(sorted([*properties, *unreadable], key=lambda prop: prop.position))
    return ast.PropertyFile(definitions, source, properties=in_order)


def _statement(text: str, error: PrismSourceError) -> tuple[int, int]:
    """Return where the statement begins and ends that an error is in, or that it follows.

    A statement ends with a semicolon, or at the end of a line outside of all brackets.
    """
    before = text.split("\n")[: error.line - 1]
    place = sum(len(line) + 1 for line in before) + error.column - 1
    depth, ends = 0, [0]
    for piece in PIECES.finditer(text):
        sign = piece[0]
        depth = max(depth + (sign in "([{") - (sign in ")]}"), 0)
        if sign == ";" or (sign == "\n" and depth == 0):
            ends.append(piece.end())
            depth = 0
    spans = [span for span in pairwise([*ends, len(text)]) if text[slice(*span)].strip()]
    return next((span for span in reversed(spans) if span[0] <= place), (*spans, (0, 0))[0])


def _unreadable(
    source: SourceText, begin: int, statement: str, error: PrismSourceError
) -> ast.PropertyDefinition:
    words = " ".join(re.sub(r"//[^\n]*", "", statement).split()).removesuffix(";").rstrip()
    named = re.match(r'"([^"]*)"\s*:\s*', words)
    name, rest = (named[1], words[named.end() :]) if named else (None, words)
    begin += len(statement) - len(statement.lstrip())
    above = source.text[:begin].split("\n")
    place = Position(error.line, error.column)
    return ast.PropertyDefinition(
        name,
        ast.Unreadable(rest, error.reason, position=place),
        position=Position(len(above), len(above[-1]) + 1),
    )


@cache
def _parser() -> Lark:
    """Return the parser.

    Its tables take most of a second to make, so they are kept beside the compiled modules if that
    folder can be written; lark makes them anew for another grammar, version or interpreter.
    """
    folder = Path(__file__).parent
    tables = folder / "__pycache__"
    with suppress(OSError):
        tables.mkdir(exist_ok=True)
    return Lark(
        (folder / "grammar.lark").read_text(encoding="utf-8"),
        parser="lalr",
        lexer="basic",  # every keyword is reserved everywhere, as in PRISM
        start=["model", "expression", "properties", "reserved"],
        transformer=SimpleNamespace(**{rule: _spread(make) for rule, make in RULES.items()}),
        maybe_placeholders=True,
        cache=str(tables / "grammar.tables"),
    )


def _spread(make: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """Return a function of a list of parts; a node without a place stands where the first is."""

    def build(children: list[Any]) -> Any:
        node = make(*children)
        if isinstance(node, Node) and node.position is NOWHERE:
            first = next((place_of(c) for c in children if c is not None), NOWHERE)
            vars(node)["position"] = first
        return node

    return build


def _parse(source: SourceText, start: str) -> Any:
    """Return what the rules make of the text, or raise PrismSourceError."""
    try:
        return _parser().parse(source.text, start=start)
    except UnexpectedToken as error:
        mistake = _token_error(error)
    except UnexpectedCharacters as error:
        character = source.text[error.pos_in_stream]
        reason = f"unexpected character {character!r}"
        if character == '"':
            reason = "a quoted name must end with '\"' on the same line"
        mistake = BuildError(Position(error.line, error.column), reason)
    except BuildError as error:
        mistake = error
    hint = "" if mistake.final else _hint(source, mistake.position, start)
    raise source.error(mistake.position, mistake.reason + hint)


def _describe(names: set[str]) -> str:
    """Name the terminals that could come next, in one phrase."""
    rest = set(names)
    phrases = []
    if {"NAME", "LPAR", "MINUS", "INT"} <= rest:
        phrases.append("a path formula" if rest >= PATH_START else "an expression")
        rest -= EXPRESSION_START
    signs = {t.name: t.pattern.value for t in _parser().terminals if t.pattern.type == "str"}
    if {"PLUS", "TIMES", "AND", "EQ"} <= names:
        phrases.append("an operator")
        rest -= {name for name, sign in signs.items() if sign in BINARY or sign == "?"}
    quoted = sorted({f"'{signs[name]}'" for name in rest if name in signs})
    words = sorted({WORDS[name] for name in rest if name in WORDS})
    phrases = [*words, *quoted, *phrases]
    return " or ".join([", ".join(phrases[:-1]), phrases[-1]] if phrases[1:] else phrases)


def _token_error(error: UnexpectedToken) -> BuildError:
    token = error.token
    # a state that accepts nothing is the one after the whole text
    accepted: set[str] = error.interactive_parser.accepts() or {"$END"}
    if token.type in UNSUPPORTED and (token.type not in "AE" or "P" in accepted):
        construct, hint = UNSUPPORTED[token.type]
        reason = f"{construct} is not supported" + (f"; {hint}" if hint else "")
        return BuildError(place_of(token), reason, final=True)
    if token.type == "$END":
        position = Position(token.end_line or 1, token.end_column or 1)
        text = "the end of the text"
    else:
        position = place_of(token)
        text = f"'{token[:SHOWN]}'"
    last = error.interactive_parser.parser_state.value_stack[-1:]
    if token.type == "LPAR" and last and isinstance(last[0], ast.Name):
        reason = f"unknown function '{last[0].name[:SHOWN]}'; there are {', '.join(ARITY)}"
        return BuildError(last[0].position, reason)
    if token.type in PATH_START and "P" in accepted:
        reason = f"expected a state formula, found {text}"
        hint = "write path formulas inside P or R, and below other operators in parentheses"
        return BuildError(position, f"{reason}; {hint}")
    if token.type in ("AND", "OR", "IMPLIES", "IFF") and "UNTIL" in accepted:
        reason = f"found {text} after a path formula, whose end is not clear"
        return BuildError(position, f"{reason}; write the path formula in parentheses")
    if "NAME" in accepted and token.type != "NAME" and token.isidentifier():
        text += ", which is a reserved word"
    reason = f"expected {_describe(accepted)}, found {text}"
    if token.type == "PRIMED" or (accepted == {"COLON"} and token.type == "SEMICOLON"):
        reason += "; an assignment is written (x'=1)"
    return BuildError(position, reason)


def _hint(source: SourceText, position: Position, start: str) -> str:
    """Return what was probably meant at a place: another sign, word or language; or nothing."""
    line = "".join(source.text.split("\n")[position.line - 1 : position.line])
    for pattern, hint in OTHER_SIGNS:
        if re.search(pattern, line):
            return f"; {hint}"
    words = [word[0] for word in WORD.finditer(line) if word.start() < position.column]
    for word in reversed(words):
        meant = nearest(word, PROPERTY_WORDS if start == "properties" else MODEL_WORDS)
        if meant is not None:
            return f"; did you mean '{meant}' instead of '{word}'?"
    return f"; {READ}" if start == "model" and "module" not in source.text else ""
