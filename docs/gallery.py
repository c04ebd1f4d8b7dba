"""Run the gallery and write its page with pictures: `python docs/gallery.py`."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "examples" / "gallery"
GROUPS = {
    "Decide": ("patrol", "servers", "inventory", "aircraft", "stock", "network"),
    "Learn": ("maintenance", "taxi", "factors", "next_sample", "cluster"),
    "Compare and explain": ("own_file", "radii", "explain", "storm"),
}
TOP = """# Gallery

Each example asks one question. It is a script of less than forty lines that ends with a picture and
an answer; `python examples/gallery/patrol.py` runs one. The scripts need
`pip install 'rfmdp[plots,data]'`, and for some of them `gym`, `cluster`, `ltl`, `mccormick` or
`storm` as well.
`python docs/gallery.py` runs all of them and writes this page.
"""


def main() -> None:
    """Run every script, keep its picture, and write the page."""
    pictures = ROOT / "docs" / "gallery"
    pictures.mkdir(exist_ok=True)
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in (name for names in GROUPS.values() for name in names):
            command = [sys.executable, str(SCRIPTS / f"{name}.py")]
            place = {**os.environ, "MPLBACKEND": "agg"}
            done = subprocess.run(
                command, cwd=folder, env=place, check=True, capture_output=True, text=True
            )
            answers[name] = done.stdout.splitlines()[-1]
            shutil.copy(Path(folder, f"{name}.png"), pictures)
            print(f"{name}: {answers[name]}", flush=True)
    (ROOT / "docs" / "gallery.md").write_text(page(answers), encoding="utf-8")


def page(answers: dict[str, str]) -> str:
    """Return the page, by the answers of the scripts."""
    lines = [TOP]
    for heading, names in GROUPS.items():
        lines += [f"## {heading}\n", *(_thumbnail(name) for name in names), ""]
    for name in (name for names in GROUPS.values() for name in names):
        code = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
        question, more = question_of(name)
        lines += [f'<a id="{name}"></a>\n', f"## {question}\n", more, "",
                  f"**Answer.** {answers[name]}\n", f"![{question}](gallery/{name}.png)\n",
                  f'<details markdown="1"><summary>examples/gallery/{name}.py</summary>\n',
                  f"```py\n{code}```\n", "</details>\n"]  # fmt: skip
    return "\n".join(lines)


def question_of(name: str) -> tuple[str, str]:
    """Return the question of a script, and what it says about it: both are its docstring."""
    code = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
    question, _, more = (ast.get_docstring(ast.parse(code)) or "").partition("\n\n")
    return question, more


def _thumbnail(name: str) -> str:
    question, _ = question_of(name)
    return f'<a href="#{name}"><img src="gallery/{name}.png" width="220" title="{question}"></a>'


if __name__ == "__main__":
    main()
