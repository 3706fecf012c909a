"""Named places where the crash tests kill a process, to see that nothing is lost there.

The environment variable TAILRACE_FAILPOINT names a file. While it exists, it holds `place nth group`: the process that
comes to the place for the nth time since then removes the file, so that its successor passes, and kills itself with
SIGKILL, after the process group of that number (0: no group), which is how a process of the driver takes all of the
driver along. Unset, which is always outside those tests, a place costs one dictionary look-up a batch.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

_reached: Counter[str] = Counter()


def reach(name: str) -> None:
    """Pass the place of that name."""
    file = os.environ.get("TAILRACE_FAILPOINT")
    if file is None or not Path(file).exists():
        return
    armed = Path(file).read_text(encoding="utf-8")
    place, nth, group = armed.split()
    if name != place:
        return
    _reached[armed] += 1
    if _reached[armed] < int(nth):
        return
    Path(file).unlink()
    if int(group):
        os.killpg(int(group), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
