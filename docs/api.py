"""The reference of the public names: `python docs/api.py` writes its table, `docs/api.md`.

mkdocs runs this file as a hook when it builds the site: there the page also has the signature,
parameters and examples of every name, from the docstrings.
"""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import rfmdp

ROOT = Path(__file__).parents[1]
GROUPS = {  # heading -> folders whose public names it lists
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
WIDTH = 88  # of a signature on one line


def groups() -> dict[str, list[str]]:
    """Return the public names by heading, from the folders that the stub names."""
    tree = ast.parse((ROOT / "src" / "rfmdp" / "__init__.pyi").read_text())
    folders = {
        alias.name: (node.module or "").split(".")[0]
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return {
        heading: sorted((n for n in rfmdp.__all__ if folders[n] in chosen), key=str.lower)
        for heading, chosen in GROUPS.items()
    }


def summary(text: str) -> str:
    """Return the first sentence of a docstring."""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def page() -> str:
    """Return the table of all names."""
    lines = [
        "# Python reference",
        "",
        "Everything public, by what it is for. On the site signatures, parameters and examples "
        "follow below; `help(rfmdp.NAME)` has them, too.",
    ]
    for heading, names in groups().items():
        lines += ["", f"## {heading}", "", "| name | what |", "|---|---|"]
        lines += [f"| `{name}` | {summary(docstring(name))} |" for name in names]
    return "\n".join(lines) + "\n"


def docstring(name: str) -> str:
    """Return the documentation of a public name."""
    return DIRECTIONS.get(name) or inspect.getdoc(getattr(rfmdp, name)) or ""


def details(name: str) -> str:
    """Return the signature, parameters, members and examples of a public name, in Markdown."""
    value = getattr(rfmdp, name)
    lines = [f"### {name} {{#{name}}}", ""]
    if callable(value) and not _is_exception(value):
        lines += ["```python", signature(f"rfmdp.{name}", value), "```", ""]
    lines += [markdown(docstring(name)), ""]
    if inspect.isclass(value):
        lines += members(value)
    return "\n".join(lines)


def signature(name: str, value: Any) -> str:
    """Return how something is called, a line per parameter where one line is too short."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    shown = [_parameter(p) for p in found.parameters.values() if p.name not in ("self", "cls")]
    keyword = [p.kind is p.KEYWORD_ONLY for p in found.parameters.values()]
    if any(keyword):
        shown.insert(len(shown) - sum(keyword), "*")
    end = (
        ")"
        if inspect.isclass(value) or "return" not in _hints(value)
        else f") -> {_hints(value)['return']}"
    )
    line = f"{name}({', '.join(shown)}{end}"
    return (
        line if len(line) <= WIDTH else f"{name}(\n" + "".join(f"    {p},\n" for p in shown) + end
    )


def _hints(value: Any) -> dict[str, Any]:
    return {
        k: v if isinstance(v, str) else inspect.formatannotation(v)
        for k, v in inspect.get_annotations(value).items()
    }


def _parameter(parameter: inspect.Parameter) -> str:
    kind = parameter.annotation
    text = parameter.name
    if kind is not parameter.empty:
        text += f": {kind if isinstance(kind, str) else inspect.formatannotation(kind)}"
    if parameter.default is parameter.empty:
        return text
    shown = repr(parameter.default).removeprefix("mappingproxy(").replace("{})", "{}")
    return f"{text} = {'...' if shown.startswith('<') or len(shown) > 40 else shown}"


def members(kind: type) -> list[str]:
    """Return a table of the public methods and properties of a class."""
    lines = []
    for name, value in vars(kind).items():
        plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        text = inspect.getdoc(plain) or ""
        if name.startswith("_") or not (inspect.isfunction(plain) or isinstance(plain, property)):
            continue
        call = name if isinstance(plain, property) else " ".join(signature(name, plain).split())
        call = call.replace("( ", "(").replace(", )", ")").replace("|", "\\|")
        lines.append(f"| `{call}` | {summary(text)} |")
    return ["| member | what |", "|---|---|", *lines, ""] if lines else []


def _is_exception(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


def markdown(text: str) -> str:
    """Return a docstring in NumPy's style as Markdown."""
    parts = re.split(r"^(\w+)\n-{3,}$", text, flags=re.MULTILINE)
    lines = [parts[0].strip()]
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        lines += ["", f"**{heading}**", ""]
        lines += ["```pycon", body.strip(), "```"] if ">>>" in body else _entries(body)
    return "\n".join(lines)


def _entries(body: str) -> list[str]:
    """Return the entries of a section: names, and what is said about them."""
    lines = []
    for line in body.strip("\n").splitlines():
        name, colon, about = line.partition(" : ")
        if line[:1].strip():
            lines.append(f"- `{name}`: {about}" if colon else f"- `{line}`:")
        elif line.strip():
            lines.append(f"  {line.strip()}")
    return lines


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Add the details of all names to the reference; mkdocs calls this for every page."""
    if page.file.src_uri != "api.md":
        return markdown
    linked = re.sub(r"^\| `(\w+)` \|", r"| [`\1`](#\1) |", markdown, flags=re.MULTILINE)
    lines = [linked]
    for heading, names in groups().items():
        lines += ["", f"## {heading}, one by one", "", *map(details, names)]
    return "\n".join(lines)


if __name__ == "__main__":
    (ROOT / "docs" / "api.md").write_text(page())
