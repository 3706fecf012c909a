"""Remedies for errors about a lost log position: how a pipeline starts again with a new snapshot."""

from __future__ import annotations

_OTHER_PATH = "with the sinks json and parquet also with another `path`"
NEW_CHECKPOINT = f"begin with a new checkpoint, {_OTHER_PATH}"
"""For a pipeline that has nothing on the server."""
NEW_SNAPSHOT = f"set snapshot.mode to when_needed for a new snapshot, or {NEW_CHECKPOINT}"
AFTER_DROP = f"start with a new checkpoint (run `tailrace drop`, delete the checkpoint, start; {_OTHER_PATH})"
"""For a pipeline that has something on the server, which `drop` finds by the old checkpoint."""
