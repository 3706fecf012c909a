"""Watches a tree of processes: the CPU time they take, ended ones included, and the memory they hold."""

from __future__ import annotations

import resource
import threading
from collections import defaultdict
from contextlib import suppress

import psutil

SAMPLE_SECONDS = 0.5


def ended_children() -> float:
    """CPU seconds of all children of this process that have ended and been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Tree:
    """A process and all its descendants; memory is sampled while the `with` lasts.

    `peak` is the largest sum seen over the tree (PSS where the system tells it, else RSS), `peaks` the largest RSS of a
    single process by its program's name; bytes.
    """

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.peak = 0
        self.peaks: dict[str, int] = defaultdict(int)
        self._seen: dict[psutil.Process, float] = {}

    def cpu(self) -> float:
        """CPU seconds so far.

        A process that has ended is contained in the time of the parent that waited for it. If nobody in the tree did,
        as for orphans, it is contained in the samples. Both sums may lack something, so the larger one counts.
        """
        waited = 0.0
        for process in self._all():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                waited += sum(times[:4])  # own user and system, and those of ended children
                self._seen[process] = sum(times[:2])
        return max(waited, sum(list(self._seen.values())))  # a copy: the samples are taken by another thread

    def __enter__(self) -> Tree:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _all(self) -> list[psutil.Process]:
        try:
            return [*self._root.children(recursive=True), self._root]
        except psutil.NoSuchProcess:
            return []

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            total = 0
            for process in self._all():
                with suppress(psutil.Error):
                    memory, name = process.memory_full_info(), process.name()
                    self._seen[process] = sum(process.cpu_times()[:2])
                    total += getattr(memory, "pss", 0) or memory.rss
                    self.peaks[name] = max(self.peaks[name], memory.rss)
            self.peak = max(self.peak, total)
