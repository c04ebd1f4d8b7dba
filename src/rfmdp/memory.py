"""How much memory is left, so that what cannot fit is refused before it is built.

Linux promises more memory than it has, and ends the process that asks for the promise. So sizes
are compared with what is free: physical memory, the limit of the control group (containers, batch
systems) and that of the process, whichever is least.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rfmdp.errors import ResourceError

MEMINFO = Path("/proc/meminfo")
STATM = Path("/proc/self/statm")
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUP = Path("/proc/self/cgroup")
SHARE = 0.9  # of what is free; the rest is for everything else
LITTLE = 1 << 23  # bytes, too few to ask for: reading all limits takes most of a millisecond


def available_memory() -> int:
    """Return how many bytes this process may still take."""
    return max(0, min([*_machine_limits(), *_process_limits()], default=1 << 62))


def require_memory(size: float, what: str) -> None:
    """Raise ResourceError unless `size` bytes more fit into memory."""
    if size < LITTLE:
        return
    free = available_memory()
    if size > SHARE * free:
        raise ResourceError(
            f"{what}: needs {size / 1e9:.3g} GB of memory, {free / 1e9:.3g} GB are free; make the "
            "model smaller, or use a machine with more."
        )


def _machine_limits() -> Iterator[int]:
    """Yield what the machine leaves free, and this process' control group and those above it."""
    free = _table(MEMINFO).get("MemAvailable:")  # page cache included
    if free is not None:
        yield free * 1024
    own = [line[3:] for line in _text(OWN_GROUP).splitlines() if line.startswith("0::")]
    for name in own:  # a tree of the first version has none
        place = GROUPS / name.lstrip("/")
        for folder in (place, *place.parents):
            limit = _text(folder / "memory.max").strip()
            used = _text(folder / "memory.current").strip()
            if limit.isdigit() and used.isdigit():  # no limit is "max"
                # the file cache can be given back
                cache = _table(folder / "memory.stat").get("inactive_file", 0)
                yield int(limit) - int(used) + cache


def _process_limits() -> Iterator[int]:
    """Yield what `ulimit` leaves, on systems that have it."""
    try:
        import resource
    except ImportError:
        return
    pages = _text(STATM).split()  # in use: all in column 0, data in column 5
    for kind, column in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            used = int(pages[column]) if pages else 0
            yield soft - used * os.sysconf("SC_PAGE_SIZE")


def _text(path: Path) -> str:
    """Return the text of a file; nothing if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""


def _table(path: Path) -> dict[str, int]:
    """Return the lines `name number ...` of a file."""
    lines = (line.split() for line in _text(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}
