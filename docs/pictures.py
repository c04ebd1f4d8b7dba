"""Draw the pictures of docs/pictures.md again, by running the code of that page."""

import os
import re
from pathlib import Path

HERE = Path(__file__).parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Run the blocks of the page in the folder of its pictures."""
    text = (HERE / "pictures.md").read_text(encoding="utf-8")
    folder = HERE / "pictures"
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    names: dict[str, object] = {}
    for block in BLOCK.findall(text):
        exec(compile(block, "pictures.md", "exec"), names)  # our own page


if __name__ == "__main__":
    main()
