"""The parser of `grammar.lark` and its syntax errors. The only importer of lark's parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from rfmdp.language.ast import FILTERS, ModelType, Name, Node
from rfmdp.language.source import (
    NOWHERE,
    Position,
    PrismSourceError,
    PrismUnsupportedError,
    SourceText,
    nearest,
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
PATH_START = {"X", "F", "G"}
EXPRESSION_START = PATH_START | {
    *("NAME", "INT", "DOUBLE", "TRUE", "FALSE", "STRING", "LPAR", "NOT", "MINUS", "FUNCTION"),
    *("MIN", "MAX", "FUNC", "P", "P_QUANTIFIED", "R", "R_QUANTIFIED", "S", "LRA", "FILTER"),
}
OPERATORS = {
    *("POWER", "TIMES", "DIVIDE", "PLUS", "MINUS", "LT", "LE", "GT", "GE", "EQ", "NE"),
    *("AND", "OR", "IFF", "IMPLIES", "QUESTION"),
}
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
FUNCTIONS = ("min", "max", "floor", "ceil", "round", "pow", "mod", "log")
QUANTIFIERS = ("min", "max", "minmin", "minmax", "maxmin", "maxmax")
COMMON_WORDS = (*FUNCTIONS, "const", "formula", "label", "true", "false")
MODEL_WORDS = (*COMMON_WORDS, *(kind.value for kind in ModelType), "int", "double", "bool",
               "global", "module", "endmodule", "init", "endinit", "rewards",
               "endrewards")  # fmt: skip
PROPERTY_WORDS = (*COMMON_WORDS, *FILTERS, *QUANTIFIERS, "filter",
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


class BuildError(Exception):
    """Raised while a tree is made, where the text is not known; `parse` adds the source line."""

    def __init__(self, position: Position, reason: str, supported: bool = True) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason
        self.supported = supported


def make_parser(rules: Mapping[str, Callable[..., Any]]) -> Lark:
    """Return a new parser; callers keep it.

    rules : for each rule of the grammar, what its parts make

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
        transformer=SimpleNamespace(**{rule: _spread(make) for rule, make in rules.items()}),
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


def parse(parser: Lark, source: SourceText, start: str) -> Any:
    """Return what the rules make of the text, or raise PrismSourceError."""
    try:
        return parser.parse(source.text, start=start)
    except UnexpectedToken as error:
        mistake = _token_error(parser, source, error)
    except UnexpectedCharacters as error:
        mistake = _character_error(source, error)
    except BuildError as error:
        mistake = source.error(error.position, error.reason)
        if not error.supported:
            mistake = source.unsupported(error.position, error.reason)
        if start == "properties":  # the reason says which words there are
            raise mistake from None
    if isinstance(mistake, PrismUnsupportedError):
        raise mistake
    place = Position(mistake.line, mistake.column)
    raise source.error(place, mistake.reason + _hint(source, place, start))


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
    if token.type == "LPAR" and last and isinstance(last[0], Name):
        listed = f"{', '.join(FUNCTIONS[:-1])} and {FUNCTIONS[-1]}"
        reason = f"unknown function '{last[0].name[:SHOWN]}'; there are {listed}"
        return source.error(last[0].position, reason)
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


def _character_error(source: SourceText, error: UnexpectedCharacters) -> PrismSourceError:
    character = source.text[error.pos_in_stream]
    reason = f"unexpected character {character!r}"
    if character == '"':
        reason = "a quoted name must end with '\"' on the same line"
    return source.error(Position(error.line, error.column), reason)
