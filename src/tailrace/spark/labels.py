"""Names a micro-batch by what it holds: the sinks that skip a repeated one know it by this label."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any


def batch_label(start: Mapping[str, Any], end: Mapping[str, Any], snapshots: Sequence[str]) -> str:
    """The label of the micro-batch between two offsets, with the names of the snapshots that it reads, sorted.

    A snapshot that is planned again reads other rows, so its name is part of the batch's.
    """
    text = json.dumps([start, end, snapshots], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
