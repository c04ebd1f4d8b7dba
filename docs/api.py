"""Write the reference page from the public names: `python docs/api.py`."""

import ast
import inspect
from pathlib import Path

import rfmdp

ROOT = Path(__file__).parents[1]
GROUPS = {  # heading -> rooms whose public names it lists
    "Models": ("model", "opening", "language", "domains"),
    "Sets": ("sets",),
    "Questions": ("objective", "answers", "temporal"),
    "Solving": ("solving", "inner", "outer", "verification"),
    "Policies and pages": ("policies", "report"),
    "Learning": ("learning", "sources"),
    "Many runs": ("running",),
    "Files": ("formats",),
    "Errors": ("errors",),
}
DIRECTIONS = {"MAX": "Whoever it is maximises.", "MIN": "Whoever it is minimises."}


def homes() -> dict[str, str]:
    """Return the room of every public name, from the stub."""
    tree = ast.parse((ROOT / "src" / "rfmdp" / "__init__.pyi").read_text())
    return {
        alias.name: (node.module or "").split(".")[0]
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def summary(name: str) -> str:
    """Return the first sentence of a name's documentation."""
    text = DIRECTIONS.get(name) or inspect.getdoc(getattr(rfmdp, name)) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def page() -> str:
    """Return the reference page."""
    rooms = homes()
    lines = [
        "# Python reference",
        "",
        "Everything public, by what it is for; `help(rfmdp.NAME)` has parameters, shapes and "
        "examples.",
    ]
    for heading, chosen in GROUPS.items():
        names = sorted((n for n in rfmdp.__all__ if rooms[n] in chosen), key=str.lower)
        lines += ["", f"## {heading}", "", "| name | what |", "|---|---|"]
        lines += [f"| `{name}` | {summary(name)} |" for name in names]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "api.md").write_text(page())
