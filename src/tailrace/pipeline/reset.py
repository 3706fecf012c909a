"""Has a stopped pipeline forget its position: its next start begins from the beginning, as with a new checkpoint."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from pyarrow import fs

from tailrace.errors import ConfigError
from tailrace.pipeline.checkpoint import file_system
from tailrace.pipeline.definition import Definition, FileTarget
from tailrace.pipeline.files import LocalFile
from tailrace.pipeline.lease import Lease
from tailrace.pipeline.query_id import position_of
from tailrace.pipeline.run_state import LEASE, demand_stopped


def reset(definition: Definition) -> list[str]:
    """Drop what the pipeline created on its server, and move its checkpoint aside; a line for each thing done.

    Raises ConfigError while it runs, for sinks that remember micro-batches by their numbers, and for a checkpoint in a
    store; SourceError and OffsetError as `tailrace drop` does. Nothing is changed then.
    """
    demand_stopped(definition.checkpoint, "the pipeline moves its position")
    target = definition.sink.target
    if isinstance(target, FileTarget):
        raise ConfigError(
            f"the sink at {target.path} remembers the micro-batches of this checkpoint, and would leave out new ones",
            remedy="give the sink another `path` and the pipeline another `checkpoint`",
        )
    system, path = file_system(definition.checkpoint)
    if not isinstance(system, fs.LocalFileSystem):
        raise ConfigError(
            f"the checkpoint {definition.checkpoint} is in a store, where folders cannot be moved",
            remedy="run `tailrace drop`, and give the pipeline another `checkpoint`",
        )
    begun = position_of(definition)
    if begun.planned is None:
        return []
    admin = definition.admin()
    aside = Path(f"{path}.reset-{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%f}")
    # No run may start between the question whether one does and the end.
    lease = Lease(LocalFile(Path(path) / LEASE))
    lease.acquire()
    try:
        # The run that has ended may have left a reader behind, in a process that other pipelines use as well.
        admin.drop_at_stop(begun.offsets)
        done = admin.drop(begun.offsets)
        Path(path).rename(aside)
        (aside / LEASE).unlink()
    finally:
        lease.release()
    return [*done, f"the former checkpoint is {aside}"]
