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
    return max(0, min(_limits(), default=1 << 62))


def require_memory(size: float, what: str) -> None:
    """Raise ResourceError unless `size` bytes more fit into memory.

    Examples
    --------
    >>> require_memory(1000, "A small table")
    >>> require_memory(1e18, "A table of all states")
    Traceback (most recent call last):
    ...
    rfmdp.errors.ResourceError: A table of all states: needs 1e+09 GB of memory, ...
    """
    if size < LITTLE:
        return
    free = available_memory()
    if size > SHARE * free:
        raise ResourceError(
            f"{what}: needs {gigabytes(size)} of memory, {gigabytes(free)} are free; make the "
            "model smaller, or use a machine with more."
        )


def gigabytes(size: float) -> str:
    """Return a number of bytes for people."""
    return f"{size / 1e9:.3g} GB"


def _limits() -> Iterator[int]:
    """Yield what every limit that can be read leaves free."""
    yield from _physical()
    yield from _group_limits()
    yield from _process_limits()


def _physical() -> Iterator[int]:
    """Yield the free memory of the machine, page cache included."""
    try:
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024
                return
    except (OSError, ValueError, IndexError):
        pass
    try:
        yield os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return


def _group_limits() -> Iterator[int]:
    """Yield what the limits of this process' control group and those above it leave."""
    try:
        lines = OWN_GROUP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, group = line.split(":", 2)
        if kinds == "":
            base, most, used, cache = GROUPS, "memory.max", "memory.current", "inactive_file"
        elif "memory" in kinds.split(","):
            base, cache = GROUPS / "memory", "total_inactive_file"
            most, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        place = base / group.lstrip("/")
        for folder in (place, *place.parents):
            if folder != base and base not in folder.parents:
                break
            limit, taken = _number(folder / most), _number(folder / used)
            if limit is not None and taken is not None:
                yield limit - taken + _stat(folder / "memory.stat", cache)


def _process_limits() -> Iterator[int]:
    """Yield what `ulimit` leaves, on systems that have it."""
    try:
        import resource
    except ImportError:
        return
    for kind, used in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            yield soft - _pages(used)


def _number(path: Path) -> int | None:
    """Return the number in a file; None if there is none ("max")."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _stat(path: Path, name: str) -> int:
    """Return an entry of a control group's statistics; the cache can be given back."""
    try:
        for line in path.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    except (OSError, ValueError):
        pass
    return 0


def _pages(column: int) -> int:
    """Return bytes in use from a column of /proc/self/statm: 0 all, 5 data."""
    try:
        return int(STATM.read_text().split()[column]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
