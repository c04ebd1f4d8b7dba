"""Set-up of every test run: where compiled kernels are kept, and how many examples are tried."""

import os
import tempfile

from hypothesis import settings

# before anything imports numba, which reads it once; `kernels.decorator` adds the kernels' hash
os.environ.setdefault("NUMBA_CACHE_DIR", os.path.join(tempfile.gettempdir(), "rfmdp-tests"))

# the same examples in every run, twelve times as many for `make test-all`; no limit of time
settings.register_profile("few", deadline=None, derandomize=True, database=None, max_examples=32)
settings.register_profile("many", settings.get_profile("few"), max_examples=400)
settings.load_profile("few")
