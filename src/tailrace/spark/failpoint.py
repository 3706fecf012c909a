"""Named places where the crash tests kill a process, to see that nothing is lost there.

The environment variable TAILRACE_FAILPOINT holds `name:nth:file`: at the nth time that a process reaches the place,
and only if the file does not exist yet (it is made then, so that the restarted process passes), it kills itself with
SIGKILL. Unset, which is always outside those tests, a place costs one dictionary look-up a batch.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

_reached: Counter[str] = Counter()


def reach(name: str) -> None:
    """Pass the place of that name."""
    armed = os.environ.get("TAILRACE_FAILPOINT")
    if armed is None:
        return
    wanted, nth, file = armed.split(":", 2)
    if name != wanted:
        return
    _reached[name] += 1
    if _reached[name] >= int(nth) and not Path(file).exists():
        Path(file).touch()
        os.kill(os.getpid(), signal.SIGKILL)
