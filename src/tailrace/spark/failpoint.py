"""Named places where the crash tests kill or stop a process, to see that nothing is lost there.

The environment variable TAILRACE_FAILPOINT names a file. While it exists, it holds `place nth how`: the process that
comes to the place for the nth time since then removes the file, so that its successor passes. `how` is a number: the
process kills itself with SIGKILL, after the process group of that number (0: no group), which is how a process of the
driver takes all of the driver along. Or it is `stop`: the process writes its id to the file with the suffix `.stopped`
and stops until it gets SIGCONT, in a session of its own, as it would end with its daemon otherwise. Unset, which is
always outside those tests, a place costs one dictionary look-up.
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
    place, nth, how = armed.split()
    if name != place:
        return
    _reached[armed] += 1
    if _reached[armed] < int(nth):
        return
    if how == "stop":
        Path(file).with_suffix(".stopped").write_text(str(os.getpid()), encoding="utf-8")
    Path(file).unlink()
    if how == "stop":
        os.setsid()
        os.kill(os.getpid(), signal.SIGSTOP)
        return
    if int(how):
        os.killpg(int(how), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
