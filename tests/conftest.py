"""Set-up of every test run: compiled kernels are kept among temporary files; seeds."""

import os
import tempfile

from hypothesis import settings

# before anything imports numba, which reads it once; `kernels.decorator` adds the kernels' hash
os.environ.setdefault("NUMBA_CACHE_DIR", os.path.join(tempfile.gettempdir(), "rfmdp-tests"))

settings.register_profile("rfmdp", deadline=None, derandomize=True)
settings.load_profile("rfmdp")
