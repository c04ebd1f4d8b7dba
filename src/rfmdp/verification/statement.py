"""What a file claims, in words: what stands in it as the checker read it.

What a property calls a set of states is only a text unless it is evaluated here: labels, variables,
constants and formulas of the file, compared. Texts with other things in them (nested properties,
functions, products) are not evaluated; then nobody knows more than the list of states.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping

import lark
import numpy as np

from rfmdp.types import AnyArray, BoolArray
from rfmdp.verification.fields import need
from rfmdp.verification.lattice_model import Lattice
from rfmdp.verification.reading import Claim, Model, labelled
from rfmdp.verification.sets import Undecided

PROBABILITIES = ("Parity", "Reach", "Until", "Globally", "Next", "BudgetUntil", "LongRunShare")
LONGEST = 200  # characters of a text of the file that are shown
GRAMMAR = r"""  // from the loosest to the tightest
!?start: iff | iff "=>" iff
!?iff: or | iff "<=>" or
!?or: and | or "|" and
!?and: not | and "&" not
!?not: equal | "!" not
!?equal: order | order ("="|"!=") order
!?order: sum | sum ("<"|"<="|">"|">=") sum
!?sum: sign | sum ("+"|"-") sign
!?sign: atom | "-" sign
?atom: "(" start ")" | NUMBER | LABEL | NAME
NUMBER: /\d+(\.\d*)?([eE][+-]?\d+)?/
LABEL: /"[^"]*"/
NAME: /[A-Za-z_]\w*/
%ignore /\s/
"""
OPERATORS: dict[str, tuple[bool | None, Callable[..., AnyArray]]] = {  # of truth, or of numbers
    "=>": (True, lambda a, b: ~a | b), "<=>": (True, operator.eq), "|": (True, operator.or_),
    "&": (True, operator.and_), "!": (True, operator.invert),
    "=": (None, operator.eq), "!=": (None, operator.ne), "<": (None, operator.lt),
    "<=": (None, operator.le), ">": (None, operator.gt), ">=": (None, operator.ge),
    "+": (False, operator.add), "-": (False, lambda a, *b: a - b[0] if b else -a),
}  # fmt: skip
EVALUATED = 2_000  # characters of a text that is evaluated
DEEPEST = 40  # parentheses, signs, and formulas within formulas


def statement(claim: Claim) -> list[tuple[str, str]]:
    """Return lines, each with the word before it.

    Names and texts are those of the file, which nobody checks; they never make lines of their own.
    """
    model = claim.model
    counts = model.sizes.items()
    lines = [
        ("model", ", ".join(f"{n:,} {what}{'' if n == 1 else 's'}" for what, n in counts)),
        ("property", _property(claim)),
    ]
    if claim.path is not None:
        for text, listed in claim.path.atoms:
            means = _means(claim.path.base, text, listed, "atom")
            known = "those that the text means" if means else "as listed; not checked"
            sizes = f"{listed.sum():,} of {claim.path.base.states:,} states"
            lines.append(("atom", f"{_plain(text)}: {sizes}, {known}"))
        made = "as the file has it: the claim is about this automaton"
        lines.append(("automaton", made if claim.path.supplied else "made again from the formula"))
    for name, states in claim.states.items() if claim.path is None else ():
        if claim.objective.get(name) is None:
            text = claim.texts.get(name, "")
            known = f"as listed; not checked: the file calls them {_plain(text)}"
            if _means(model, text, states, name):
                known = "those that the text means"
            known = known if text else "as listed"
            lines.append((name, f"{states.sum():,} of {model.states:,} states, {known}"))
    measure = "absolute" if claim.absolute else "relative"
    lines.append(("method", f"{_plain(claim.method)}, {measure} precision {claim.precision:g}"))
    lines.append(("status", claim.status.lower().replace("_", " ")))
    lines.append(("bounds", _bounds(claim)))
    origin = () if model.provenance is None else model.provenance.lines()
    lines += [(word, f"{_plain(text)} (as the file says)") for word, text in origin]
    sides = [word for side, word in ((-1, "lower"), (1, "upper")) if side in claim.bounds]
    of = "the policy" if claim.fixed else "the optimum"
    only = " only; the other side is not claimed" if len(sides) == 1 else ""
    lines.append(("claimed", f"{' and '.join(sides) or 'no'} bounds of {of}{only}"))
    return lines


def _property(claim: Claim) -> str:
    """Return the property in PRISM's notation."""
    name = claim.objective.get("reward")
    kind = "P" if claim.kind in PROBABILITIES else f'R{{"{_plain(name)}"}}' if name else "R"
    kind = "S" if claim.kind == "LongRunShare" else kind
    sides = "".join("max" if side > 0 else "min" for side in (claim.agent, claim.nature))
    return f"{kind}{sides}=? [ {_path(claim)} ]"


def _path(claim: Claim) -> str:
    if claim.path is not None:
        return _plain(claim.path.words)
    given = claim.objective
    discount = given.get("discount", 1.0)
    factor = "" if discount == 1.0 else f"{{discount={discount!r}}}"
    stay, target = (_states(claim, n) if n in claim.states else "" for n in ("stay", "target"))
    if claim.kind == "BudgetUntil":
        bound = f'{{"{_plain(given.get("reward") or "")}"}}<={given["budget"]}'
        return f"{stay} U{bound} {target}"
    if claim.kind == "Until" and not claim.states["stay"].all():
        return f"{stay} U{_times(claim)} {target}"
    return {
        "Reach": f"F {target}", "ReachReward": f"F {target}", "Until": f"F{_times(claim)} {target}",
        "Globally": f"G{_times(claim)} {stay}", "Next": f"X {target}",
        "LongRunShare": target, "LongRunAverage": "S", "Instantaneous": f"I={given.get('step')}",
        "Cumulative": f"C{factor}<={given.get('steps')}",
    }.get(claim.kind, f"C{factor}")  # fmt: skip


def _states(claim: Claim, name: str) -> str:
    """Return a set of states: a label, or a text that means these states."""
    label = claim.objective.get(name)
    if label is not None:
        return f'"{_plain(label)}"'
    text = claim.texts.get(name, "")
    if not _means(claim.model, text, claim.states[name], name):
        return f"(the {claim.states[name].sum():,} states as listed)"
    return _plain(text) if re.fullmatch(r'!?(\w+|"[^"]*")', text) else f"({_plain(text)})"


def _means(model: Model | Lattice, text: str, listed: BoolArray, name: str) -> bool:
    """Return whether a text is evaluated here; one that means other states is a `FileError`."""
    states = meaning(model, text)
    same = states is None or bool((states == listed).all())
    need(same, f"{name}: the text {_plain(text)} means other states than those that are listed")
    return states is not None


def _times(claim: Claim) -> str:
    earliest = claim.objective.get("earliest", 0)
    latest = claim.objective.get("latest")
    if latest is None:
        return f">={earliest}" if earliest else ""
    return f"[{earliest},{latest}]" if earliest else f"<={latest}"


def _bounds(claim: Claim) -> str:
    """Return the bounds that are claimed at the initial state; of several, from least to most."""
    initial = claim.model.initial
    lower, upper = claim.bounds.get(-1), claim.bounds.get(1)
    low = "not claimed" if lower is None else repr(float(lower[initial].min()))
    high = "not claimed" if upper is None else repr(float(upper[initial].max()))
    where = "the initial state" if len(initial) == 1 else f"the {len(initial):,} initial states"
    return f"[{low}, {high}] at {where}".replace("inf", "Infinity")


def _plain(text: object) -> str:
    """Return a text of the file as one line: it could have been made to look like ours."""
    shown = str(text)[:LONGEST]
    return shown if shown.isprintable() else repr(shown)


def meaning(model: Model | Lattice, text: str) -> BoolArray | None:
    """Return where (S,) a text holds; None if it is not evaluated here.

    Raises
    ------
    FileError
        If it names a label that the model does not have.
    """
    try:
        value = _evaluated(model, text, 0)
    except Undecided:
        return None
    return value if value.dtype == np.bool_ else None


@functools.cache
def _parser() -> lark.Lark:
    return lark.Lark(GRAMMAR, parser="lalr")


def _evaluated(model: Model | Lattice, text: str, depth: int) -> AnyArray:
    """Return the values (S,) of a text, which is nested in others so deep."""
    if len(text) > EVALUATED:
        raise Undecided
    try:
        tree = _parser().parse(text)
    except lark.exceptions.LarkError:
        raise Undecided from None

    def value(tree: lark.ParseTree, depth: int) -> AnyArray:
        if depth > DEEPEST:
            raise Undecided
        if isinstance(tree, lark.Token):
            return np.full(model.states, _named(model, tree, depth))
        *left, sign, right = tree.children
        logical, function = OPERATORS[str(sign)]
        operands = [value(child, depth + 1) for child in (*left, right)]
        types = {operand.dtype == np.bool_ for operand in operands}
        if types not in ({True}, {False}) or logical not in (None, *types):
            raise Undecided
        return function(*operands)

    return value(tree, depth)


def _named(model: Model | Lattice, token: lark.Token, depth: int) -> AnyArray | float:
    """Return what a number, a label, a variable, a constant or a formula is."""
    if token.type == "NUMBER" and not (token.isdigit() and len(token) > 15):
        return int(token) if token.isdigit() else float(token)
    if token.type == "LABEL":
        return labelled(model, token[1:-1])
    if token in ("true", "false"):
        return str(token) == "true"
    if token in model.variables:
        return model.variables[token]
    content = model.formulas.get(token)
    if isinstance(content, Mapping):
        return _evaluated(model, str(content.get("expression")), depth + 1)
    if isinstance(content, bool | float) or (isinstance(content, int) and abs(content) < 2**53):
        value: float = content
        return value
    raise Undecided
