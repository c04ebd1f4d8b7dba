"""Set-up of every test run: where compiled kernels are kept, and how many examples are tried."""

import os
import tempfile

from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

from rfmdp.kernels.decorator import VARIABLE, private_folder

# for this process and those that tests start; `kernels.decorator` adds a folder for each text
if VARIABLE not in os.environ:
    tests = f"rfmdp-tests-{os.getuid()}"
    os.environ[VARIABLE] = private_folder(os.path.join(tempfile.gettempdir(), tests))

# "few": the same examples in every run. "many" for `make test-all`: twelve times as many, others in
# every run; those that failed are kept, and tried first by the next one. No limit of time.
settings.register_profile("few", deadline=None, derandomize=True, database=None, max_examples=32)
settings.register_profile(
    "many",
    settings.get_profile("few"),
    max_examples=400,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    print_blob=True,
)
settings.load_profile("few")
