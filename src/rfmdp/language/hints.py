"""What a text that cannot be read was probably meant to be: a misspelt word, another language."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

from rfmdp.language.source import Position, SourceText

QUANTIFIERS = ("min", "max", "minmin", "minmax", "maxmin", "maxmax")
FUNCTIONS = ("min", "max", "floor", "ceil", "round", "pow", "mod", "log")
PROPERTY_WORDS = (
    *(letter + quantifier for letter in "PR" for quantifier in QUANTIFIERS),
    *QUANTIFIERS,
    *FUNCTIONS,
    *("filter", "state", "avg", "sum", "count", "forall", "exists", "first", "print", "printall"),
    *("range", "argmin", "argmax", "const", "formula", "label", "true", "false"),
)
MODEL_WORDS = (
    *("dtmc", "mdp", "idtmc", "imdp", "const", "int", "double", "bool", "formula", "label"),
    *("global", "module", "endmodule", "init", "endinit", "rewards", "endrewards"),
    *("true", "false"),
    *FUNCTIONS,
)
ALIKE = 0.74  # likeness of words, from 0 to 1; "Pmix" and "Pmin" have 0.75
WORD = re.compile(r"[A-Za-z_]\w*")
OTHER_LANGUAGES = (
    ("a JANI model", r"\s*\{[^}]*\"jani-version\""),
    ("JSON", r"\s*\{\s*\""),
    ("XML", r"\s*<\?xml"),
    ("PPDDL or another language of parentheses", r"\s*\(\s*(define|model|defdomain)\b"),
    ("a DRN file (give it the suffix .drn)", r"(\s*//.*\n)*\s*@type\s*:"),
    ("an explicit .tra file (give it the suffix .tra)", r"\s*(dtmc|mdp)?\s*\d+ \d+( \d+)?\s*\n"),
    ("a POMDP file in Cassandra's format", r"(\s*#.*\n|\s)*(discount|values|states)\s*:"),
    ("PEPA", r"(?s).*?\(\s*\w+\s*,\s*[\w.]+\s*\)\s*\.\s*\w+|%"),
    ("properties, not a model", r"(\s*//.*\n|\s)*(P|R)((min|max){0,2}\s*(=\?|[<>])|\{)"),
)
OTHER_SIGNS = (  # what other tools write in formulas, and what it is here
    (r"\|\|", "'or' is written |"),
    (r"&&", "'and' is written &"),
    (r"==", "'equal' is written ="),
)
OTHER_PROPERTIES = (
    (r"\bLRA\s*(min|max)*\s*(=\?|[<>])", "long-run averages (LRA) are not supported"),
    (r"\bT\s*(min|max)*\s*(=\?|[<>])",
     'expected times (T) are rewards here: R{"steps"}=? [ F ... ] with rewards "steps" true : 1'),
    (r"\brew\s*\{", "bounds on rewards inside of a path (rew{...}) are not supported"),
)  # fmt: skip
READ = "models in the PRISM language (dtmc, mdp, idtmc, imdp), .drn, .tra, .umb and .rfmdp are read"


def nearest(word: str, known: Collection[str]) -> str | None:
    """Return the known word that another one was probably meant to be.

    >>> nearest("fiter", PROPERTY_WORDS), nearest("queue", PROPERTY_WORDS)
    ('filter', None)
    """
    if word in known:
        return None
    found = get_close_matches(word, [k for k in known if k[:1] == word[:1]], 1, ALIKE)
    return found[0] if found else None


def question(word: str, known: Collection[str]) -> str:
    """Return a question about a word that is not known, or nothing if no known one is near."""
    meant = nearest(word, known)
    return "" if meant is None else f"; did you mean '{meant}'?"


def misspelt(source: SourceText, position: Position, known: Collection[str]) -> str:
    """Return a question about the last misspelt word of a line up to a place, or nothing."""
    line = source.text.split("\n")[position.line - 1 : position.line]
    for word in reversed(list(WORD.finditer(line[0]) if line else [])):
        meant = nearest(word[0], known) if word.start() < position.column else None
        if meant is not None:
            return f"; did you mean '{meant}' instead of '{word[0]}'?"
    return ""


def other_tool(source: SourceText, position: Position, start: str) -> str:
    """Return what a line would be here that looks like one of another tool, or nothing."""
    line = source.text.split("\n")[position.line - 1 : position.line]
    for pattern, hint in (*(OTHER_PROPERTIES if start == "properties" else ()), *OTHER_SIGNS):
        if any(re.search(pattern, text) for text in line):
            return f"; {hint}"
    return ""


def other_language(source: SourceText) -> str:
    """Return what language a text looks like that is no PRISM model, or nothing."""
    for name, pattern in OTHER_LANGUAGES:
        if re.match(pattern, source.text):
            return f"; this looks like {name}: {READ}"
    return ""
