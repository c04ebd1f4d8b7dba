"""Check a result again, by plain means that share nothing with the solver.

The bounds of a solution are proofs: put into the Bellman operator once, they show that they hold.
Only what is proven here is accepted, state by state.

What these means cannot decide, too many products of sets without vertices for instance, is said to
be not proven, and the verdict is not "valid".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rfmdp.errors import FileError, UnsupportedError
from rfmdp.formats.files import load_record, record_of
from rfmdp.record import Record, inside
from rfmdp.types import AnyArray, BoolArray, FloatArray
from rfmdp.verification.checker import SolutionChecker, Verdict
from rfmdp.verification.fields import field
from rfmdp.verification.lattice import LatticeChecker
from rfmdp.verification.lattice_model import Lattice
from rfmdp.verification.reading import Claim, read_claim
from rfmdp.verification.statement import PROBABILITIES, statement

Progress = Callable[[str], None]
LEARNED = ("row_ptr", "row_actions", "valuations", "initial")  # what learning leaves as it is
RESOLUTION = 2.0**-40  # of the largest value: a width that counts as closed at every precision
ROUNDING = 2.0**-50  # of widths


def verify(
    result: object | str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    model: object | None = None,
) -> Verdict:
    """Check the claims of a solution or a learning run, or of a file that holds one.

    Parameters
    ----------
    result
        A solution, a learning run, or the name of a file.
    progress
        Called now and then with what is being checked.
    model
        The model that the result has to be about, built again; it is compared with the one in the
        result. By default that one is taken as it is.

    Raises
    ------
    FileError
        If the file is damaged or holds something else.
    """
    kind, header, arrays = _record(result)
    if kind not in ("solution", "learning run"):
        place = result if isinstance(result, str | os.PathLike) else "verify"
        raise FileError(
            f"{place}: must hold a solution or a learning run, holds a {kind}; give a file that "
            "`rfmdp solve -o` or `rfmdp learn -o` wrote."
        )
    verdict = verdict_of(kind, header, arrays, progress or (lambda what: None))
    if model is not None and not verdict.failed:
        prefix = "model." if kind == "solution" else "model/"
        if "model" not in header:
            header, prefix = header["solution"], "solution/model."
        ours = header["model"], inside(prefix, arrays)
        differs = _differences(ours, record_of(model)[1:], learned=kind != "solution")
        where = f": {', '.join(differs)}" if differs else ""
        verdict.note(not differs, "model as it was built again", where)
    return verdict


def _differences(
    ours: tuple[Mapping[str, Any], Mapping[str, AnyArray]],
    built: tuple[Mapping[str, Any], Mapping[str, AnyArray]],
    learned: bool,
) -> list[str]:
    """Return the fields in which two models differ, each given by header and arrays.

    A learned model has its own sets, outcomes and rewards, and perhaps one state more.
    """
    names, arrays = set(ours[0]) | set(built[0]), set(ours[1]) | set(built[1])
    names.discard("provenance")
    if learned:
        names &= {"actions", "labels", "variables"}
        arrays = {name for name in arrays if name in LEARNED or name.startswith("label.")}
    differs = [name for name in names if ours[0].get(name) != built[0].get(name)]
    for name in arrays:
        here, there = (side[1].get(name, np.empty(0)) for side in (ours, built))
        here = here[: len(there)] if learned else here
        if not np.array_equal(here, there, equal_nan=there.dtype.kind == "f"):
            differs.append(name)
    return sorted(differs)


def verdict_of(
    kind: str, header: Mapping[str, Any], arrays: Mapping[str, AnyArray],
    progress: Progress = lambda what: None,
) -> Verdict:  # fmt: skip
    """Check the record of a solution or a learning run."""
    verdict = Verdict()

    def check_solution(claim: Claim) -> None:
        verdict.claims = statement(claim)
        verdict.note(True, "fields")
        _plain_checks(claim, verdict)
        if verdict.failed:
            return
        checker = LatticeChecker if isinstance(claim.model, Lattice) else SolutionChecker
        checker(claim, verdict, progress).run()

    try:
        if kind == "solution":
            check_solution(read_claim(header, arrays))
        else:
            # here, because it loads SciPy, which solutions do not need
            from rfmdp.verification.learning import check_run

            check_run(header, arrays, verdict, check_solution)
            beta = field(field(header, "settings", dict), "beta", int, float)
            verdict.claims.append(("learned", f"from samples, with error probability {beta:g}"))
    except FileError as fault:  # of a field that is read; whatever else is raised is our mistake
        verdict.failed.append(str(fault))
    return verdict


def _record(result: object | str | os.PathLike[str]) -> Record:
    """Return what is in a file, or would be in that of a result."""
    if isinstance(result, str | os.PathLike):
        return load_record(result)
    try:
        return record_of(result)
    except UnsupportedError:
        raise UnsupportedError(
            "verify: must be a solution, a learning run or the name of a file that holds one, got "
            f"a {type(result).__name__}."
        ) from None


def _plain_checks(claim: Claim, verdict: Verdict) -> None:
    """Look at what can be told from the numbers alone."""
    nothing = np.full(claim.model.states, np.inf)
    lower, upper = claim.bounds.get(-1, -nothing), claim.bounds.get(1, nothing)
    if -1 in claim.bounds and claim.kind not in ("ReachReward", "Total"):
        verdict.states(lower < np.inf, "lower bounds are finite")
    if 1 in claim.bounds:
        verdict.states(upper > -np.inf, "upper bounds are above minus infinity")
    verdict.states((lower <= claim.value) & (claim.value <= upper), "lower <= value <= upper")
    if claim.status == "CERTIFIED":
        verdict.note(len(claim.bounds) == 2, "certified only with both sides")
        close = _close(claim, lower, upper)
        verdict.states(close | ~claim.interest, "bounds as close as certified")


def _close(claim: Claim, lower: FloatArray, upper: FloatArray) -> BoolArray:
    """Return where (S,) the width is within precision times the value, or 2^-40 of the largest."""
    both = np.isfinite(lower) & np.isfinite(upper)
    size = np.where(both, np.maximum(np.abs(lower), np.abs(upper)), 0.0)
    least = 1.0 if claim.kind in PROBABILITIES else 0.0
    if claim.kind == "LongRunAverage":
        least = float(np.abs(claim.paid()[0]).max())
    scale = float(size.max(initial=least))
    aim = claim.precision * (1.0 if claim.absolute else size)
    with np.errstate(invalid="ignore"):
        width = np.where(lower == upper, 0.0, upper - lower)
    return np.asarray(width <= np.maximum(aim, RESOLUTION * scale) * (1.0 + ROUNDING))
