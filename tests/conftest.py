"""Set-up of every test run: a cache of compiled kernels that knows all their files, seeds."""

import hashlib
import os
import tempfile
from pathlib import Path

from hypothesis import settings

_SOURCE = Path(__file__).parents[1] / "src" / "rfmdp"


def _cache_folder() -> Path:
    """Return a folder named by the text of all kernels.

    numba does not notice a change in another file that a cached kernel calls.
    """
    digest = hashlib.sha256()
    for path in [*sorted((_SOURCE / "kernels").glob("*.py")), _SOURCE / "rounding.py"]:
        digest.update(path.read_bytes())
    return Path(tempfile.gettempdir()) / f"rfmdp-kernels-{digest.hexdigest()[:16]}"


# before anything imports numba, which reads it once
os.environ.setdefault("NUMBA_CACHE_DIR", str(_cache_folder()))

settings.register_profile("rfmdp", deadline=None, derandomize=True)
settings.load_profile("rfmdp")
