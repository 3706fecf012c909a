"""Measures the memory of a run's processes: this one, Java, and the Python processes that read and write."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")


def memory() -> dict[str, int]:
    """Resident bytes of this process and those below it, by kind: `driver`, `java`, `python`; empty but on Linux."""
    parents = dict(_parents())
    sizes = Counter[str]()
    for pid in parents:
        if _is_below(pid, parents):
            kind, resident = _kind(pid), _resident(pid)
            if resident:
                sizes[kind] += resident
    return dict(sizes)


def _parents() -> Iterator[tuple[int, int]]:
    for entry in _PROC.iterdir() if _PROC.exists() else ():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:  # it has ended meanwhile
                continue
            yield int(entry.name), int(stat.rpartition(")")[2].split()[1])


def _is_below(pid: int, parents: dict[int, int]) -> bool:
    seen = set[int]()
    while pid not in seen and pid in parents:
        if pid == os.getpid():
            return True
        seen.add(pid)
        pid = parents[pid]
    return False


def _kind(pid: int) -> str:
    if pid == os.getpid():
        return "driver"
    try:
        name = (_PROC / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # it has ended meanwhile
        return "python"
    return "java" if name == "java" else "python"


def _resident(pid: int) -> int:
    try:
        pages = (_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1]
    except OSError:  # it has ended meanwhile
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
