"""The folder of machine code: nobody else can have put anything there."""

import os
import stat
import tempfile

import pytest

from processes import python
from rfmdp.kernels import decorator as cache


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Return a folder in the user's cache and the one among temporary files, neither made yet."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(temporary))
    return tmp_path / "home" / "rfmdp-kernels", temporary / f"rfmdp-{os.getuid()}"


def is_private(folder):
    state = os.lstat(folder)
    return stat.S_ISDIR(state.st_mode) and stat.S_IMODE(state.st_mode) == 0o700


def of_others(folder, kind, tmp_path):
    """Put what is not this user's alone in the place of the folder."""
    folder.parent.mkdir(exist_ok=True)
    if kind == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    elif kind == "file":
        folder.write_text("")
    else:
        folder.mkdir()
        folder.chmod(kind)


BAD = ["link", "file", 0o777, 0o770, 0o755, 0o500]


def test_the_folder_in_the_cache_of_the_user(places):
    home, _ = places
    for _ in range(2):
        assert cache.private_folder(str(home)) == str(home)
        assert is_private(home)


@pytest.mark.parametrize("kind", BAD)
def test_another_folder_where_the_first_is_not_private(places, kind, tmp_path):
    home, temporary = places
    of_others(home, kind, tmp_path)
    assert cache.private_folder(str(home)) == str(temporary)
    assert is_private(temporary)


@pytest.mark.parametrize("kind", BAD)
def test_a_new_folder_where_none_is_private(places, kind, tmp_path):
    home, temporary = places
    of_others(home, "file", tmp_path)
    of_others(temporary, kind, tmp_path)
    folder = cache.private_folder(str(home))
    assert folder not in (str(home), str(temporary))
    assert is_private(folder)


def test_a_folder_of_another_user_is_not_used(places, monkeypatch):
    home, _ = places
    home.mkdir(parents=True, mode=0o700)
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    assert cache.private_folder(str(home)) != str(home)


PRINT = "from rfmdp.kernels.decorator import cache_folder; print(cache_folder())"


def test_kernels_were_read_from_a_folder_that_anybody_may_fill(tmp_path):
    """Where the home folder cannot be used, one among the temporary files was, whoever made it."""
    (tmp_path / "home").write_text("")  # nothing can be made below
    (tmp_path / f"rfmdp-{os.getuid()}").mkdir()
    (tmp_path / f"rfmdp-{os.getuid()}").chmod(0o777)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    del environment["NUMBA_CACHE_DIR"]
    process = python(PRINT, env=environment)
    assert process.returncode == 0, process.stderr
    folder = process.stdout.strip()
    assert folder.startswith(str(tmp_path))
    assert f"rfmdp-{os.getuid()}" not in folder
    assert sorted(os.listdir(tmp_path)) == ["home", f"rfmdp-{os.getuid()}"]  # it ended, too


LOWER = """
import numpy as np
from rfmdp.kernels.statistical import mixture_lower
n = np.arange(2.0, 4002.0, 4.0)
kappa = 2.0 ** np.arange(-2.0, 18.0)
weight, lower = np.full(20, -np.log(20.0)), np.empty(1000)
mixture_lower(np.floor(0.3 * n), n, np.full(1000, 12.3), kappa, weight, np.empty(20), lower)
print(lower.tobytes().hex())
"""


def test_a_kernel_that_was_just_compiled_rounded_otherwise(tmp_path):
    """The first run with a seed had other last digits: steps with code of their own were taken."""
    tmp_path.chmod(0o700)
    runs = [python(LOWER, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}) for _ in range(2)]
    assert runs[0].stdout, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout
