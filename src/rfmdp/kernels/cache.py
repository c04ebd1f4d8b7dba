"""The folder of compiled kernels: named by their text, and this user's alone.

numba looks at the file of a kernel to see whether its machine code is stale, not at the files of
the steps that it calls. So the folder has a name for each text of all kernels.

numba's files are pickles: who writes to the folder runs code as the user who reads it. So a folder
is used only if it is no link, belongs to this user, and nobody else may enter it.
"""

import hashlib
import os
import stat
import tempfile
from functools import cache
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"  # where numba keeps machine code; a user who sets it trusts the folder


@cache
def cache_folder() -> str:
    """Return the folder of the compiled kernels of this version."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for path in [*sorted(here.glob("*.py")), here.parent / "rounding.py"]:
        digest.update(path.read_bytes())
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    base = os.environ.get(VARIABLE) or private_folder(os.path.join(home, "rfmdp-kernels"))
    return os.path.join(base, f"kernels-{digest.hexdigest()[:16]}")


def private_folder(folder: str) -> str:
    """Return a folder that only this user can enter.

    It is `folder`, else one of this user among the temporary files, else a new one that ends with
    the process.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    for path in (folder, os.path.join(tempfile.gettempdir(), f"rfmdp-{user}")):
        if _is_private(path):
            return path
    return _temporary().name


def _is_private(folder: str) -> bool:
    """Make the folder if there is none; return whether it is this user's alone, and writable."""
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        if not os.path.lexists(folder):
            os.mkdir(folder, 0o700)
        state = os.lstat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(state.st_mode) or not os.access(folder, os.W_OK):
        return False
    if not hasattr(os, "getuid"):  # Windows has other rules for who may enter
        return True
    return state.st_uid == os.getuid() and stat.S_IMODE(state.st_mode) == 0o700


@cache
def _temporary() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="rfmdp-")
