"""The parser of `grammar.lark` and its syntax errors. The only importer of lark's parser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from rfmdp.language.ast import Node
from rfmdp.language.source import (
    FUNCTIONS,
    MODEL_WORDS,
    NOWHERE,
    PROPERTY_WORDS,
    BuildError,
    Position,
    PrismSourceError,
    PrismUnsupportedError,
    SourceText,
    misspelt,
    other_language,
    other_tool,
)

WORDS = {
    "NAME": "a name",
    "PRIMED": "a primed variable such as x'",
    "STRING": "a name in double quotes",
    "INT": "a number",
    "DOUBLE": "a number",
    "FUNCTION": "a function",
    "$END": "the end of the text",
}
PLAIN_START = {"NAME", "INT", "DOUBLE", "TRUE", "FALSE", "STRING", "LPAR", "NOT", "MINUS"}
CALL_START = {"FUNCTION", "MIN", "MAX", "FUNC"}
PROPERTY_START = {"P", "P_QUANTIFIED", "R", "R_QUANTIFIED", "S", "LRA", "FILTER"}
PATH_START = {"X", "F", "G"}
EXPRESSION_START = PLAIN_START | CALL_START | PROPERTY_START | PATH_START
ARITHMETIC = {"POWER", "TIMES", "DIVIDE", "PLUS", "MINUS"}
COMPARISONS = {"LT", "LE", "GT", "GE", "EQ", "NE"}
OPERATORS = ARITHMETIC | COMPARISONS | {"AND", "OR", "IFF", "IMPLIES", "QUESTION"}
TYPES = "use dtmc, mdp, idtmc or imdp"
UNSUPPORTED = {  # words of PRISM: what they are, and what to write instead
    "CTMC": ("model type 'ctmc'", TYPES),
    "STOCHASTIC": ("model type 'stochastic' (a ctmc)", TYPES),
    "PTA": ("model type 'pta'", TYPES),
    "POMDP": ("model type 'pomdp'", TYPES),
    "POPTA": ("model type 'popta'", TYPES),
    "CLOCK": ("a clock variable ('clock')", ""),
    "INVARIANT": ("a clock invariant ('invariant ... endinvariant')", ""),
    "SYSTEM": ("a process-algebra composition ('system ... endsystem')", ""),
    "OBSERVABLES": ("'observables ... endobservables' of partially observable models", ""),
    "OBSERVABLE": ("'observable' of partially observable models", ""),
    "MULTI": ("the multi-objective 'multi(...)'", "ask for each objective by itself"),
    "COALITION": ("the game operator '<<...>>'", "write P or R for the agent, as in Pmaxmin=?"),
    "OTHERS": ("the game operator '[[...]]'", "write P or R for the agent, as in Pmaxmin=?"),
    "HOA": ("an automaton ('HOA: {...}')", "write the formula (`automaton=read_automaton(FILE)`)"),
}
UNSUPPORTED_PROPERTIES = {  # words that may be names elsewhere
    "E": ("'E [ ... ]'", "use Pmax=? [ ... ] > 0"),
    "A": ("'A [ ... ]'", "use Pmin=? [ ... ] >= 1"),
}
SHOWN = 40  # characters of an unexpected word that a message repeats


class _Spread:
    """Calls the methods of a builder with the parts of a rule as their arguments.

    A node that is made without a place stands where its first part stands.
    """

    def __init__(self, builder: object) -> None:
        self._builder = builder

    def __getattr__(self, rule: str) -> Callable[[list[Any]], Any]:
        method = getattr(self._builder, rule)

        def build(children: list[Any]) -> Any:
            node = method(*children)
            if isinstance(node, Node) and node.position is NOWHERE:
                vars(node)["position"] = next(place_of(c) for c in children if c is not None)
            return node

        return build


def make_parser(starts: list[str], builder: object) -> Lark:
    """Return a new parser; callers keep it.

    Each method of `builder` has the name of a rule of the grammar. It gets the parts of the rule
    and returns what they make.

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
        start=[*starts, "reserved"],
        transformer=_Spread(builder),
        maybe_placeholders=True,
        cache=str(tables / f"grammar-{starts[0]}.tables"),
    )


def parse(parser: Lark, source: SourceText, start: str) -> Any:
    """Return what the builder makes of the text, or raise PrismSourceError."""
    try:
        return parser.parse(source.text, start=start)
    except UnexpectedToken as error:
        raise hinted(_token_error(parser, source, error), source, start) from None
    except UnexpectedCharacters as error:
        raise hinted(_character_error(source, error), source, start) from None
    except BuildError as error:
        if error.supported:
            mistake = source.error(error.position, error.reason)
            raise hinted(mistake, source, start, error.words) from None
        raise source.unsupported(error.position, error.reason) from None


def place_of(item: Token | Node) -> Position:
    """Return where a token or a node starts."""
    if isinstance(item, Token):
        return Position(item.line or 1, item.column or 1)
    return item.position


def describe(names: set[str], parser: Lark) -> str:
    """Name the terminals that could come next, in one phrase."""
    rest = set(names)
    phrases = []
    if {"NAME", "LPAR", "MINUS", "INT"} <= rest:
        phrases.append("a path formula" if rest >= PATH_START else "an expression")
        rest -= EXPRESSION_START
    if {"PLUS", "TIMES", "AND", "EQ"} <= names:
        phrases.append("an operator")
        rest -= OPERATORS
    signs = {t.name: t.pattern.value for t in parser.terminals if t.pattern.type == "str"}
    quoted = sorted({f"'{signs[name]}'" for name in rest if name in signs})
    words = sorted({WORDS[name] for name in rest if name in WORDS})
    phrases = [*words, *quoted, *phrases]
    return " or ".join([", ".join(phrases[:-1]), phrases[-1]] if phrases[1:] else phrases)


def _token_error(parser: Lark, source: SourceText, error: UnexpectedToken) -> PrismSourceError:
    token = error.token
    # a state that accepts nothing is the one after the whole text
    accepted: set[str] = error.interactive_parser.accepts() or {"$END"}
    unsupported = UNSUPPORTED | UNSUPPORTED_PROPERTIES if "P" in accepted else UNSUPPORTED
    if token.type in unsupported:
        return source.unsupported(place_of(token), *unsupported[token.type])
    if token.type == "$END":
        position = Position(token.end_line or 1, token.end_column or 1)
        text = "the end of the text"
    else:
        position = place_of(token)
        text = f"'{token[:SHOWN]}'"
    last = error.interactive_parser.parser_state.value_stack[-1:]
    if token.type == "LPAR" and last and getattr(last[0], "type", None) == "NAME":
        return unknown_function(last[0], place_of(last[0]), source)
    if token.type in PATH_START and "P" in accepted:
        reason = f"expected a state formula, found {text}"
        hint = "write path formulas inside P or R, and below other operators in parentheses"
        return source.error(position, f"{reason}; {hint}")
    if token.type in ("AND", "OR", "IMPLIES", "IFF") and "UNTIL" in accepted:
        reason = f"found {text} after a path formula, whose end is not clear"
        return source.error(position, f"{reason}; write the path formula in parentheses")
    if "NAME" in accepted and token.type != "NAME" and token.isidentifier():
        text += ", which is a reserved word"
    reason = f"expected {describe(accepted, parser)}, found {text}"
    if token.type == "PRIMED" or (accepted == {"COLON"} and token.type == "SEMICOLON"):
        reason += "; an assignment is written (x'=1)"
    return source.error(position, reason)


def unknown_function(name: str, position: Position, source: SourceText) -> PrismSourceError:
    """Return (not raise) the error of a name before a parenthesis that is no function."""
    listed = f"{', '.join(FUNCTIONS[:-1])} and {FUNCTIONS[-1]}"
    return source.error(position, f"unknown function '{name[:SHOWN]}'; there are {listed}")


def hinted(
    error: PrismSourceError, source: SourceText, start: str, words: Sequence[str] = ()
) -> PrismSourceError:
    """Add to a syntax error what was probably meant: one of some words, or of the language."""
    if isinstance(error, PrismUnsupportedError):
        return error
    place = Position(error.line, error.column)
    hint = ""
    if start == "model" and "module" not in source.text:
        hint = other_language(source)
    hint = hint or other_tool(source, place, start)
    vocabulary = words or (PROPERTY_WORDS if start == "properties" else MODEL_WORDS)
    hint = hint or misspelt(source, place, vocabulary)
    return source.error(place, error.reason + hint) if hint else error


def _character_error(source: SourceText, error: UnexpectedCharacters) -> PrismSourceError:
    character = source.text[error.pos_in_stream]
    reason = f"unexpected character {character!r}"
    if character == '"':
        reason = "a quoted name must end with '\"' on the same line"
    return source.error(Position(error.line, error.column), reason)
