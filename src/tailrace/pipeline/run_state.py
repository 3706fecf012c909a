"""Tells from two small files in the checkpoint whether a pipeline runs, and how its last run ended.

A run has `lease.json` while it runs, and writes `last_run.json` when it ends. A killed run leaves its lease behind.
"""

from __future__ import annotations

import json
import logging
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from pyarrow import fs

from tailrace.errors import ConfigError, TailraceError
from tailrace.override import override
from tailrace.pipeline.checkpoint import file_system
from tailrace.pipeline.complete import FILE as COMPLETE
from tailrace.pipeline.files import LocalFile
from tailrace.pipeline.lease import STALE_SECONDS, LeaseFile, Owner
from tailrace.pipeline.restarts import Restarted

log = logging.getLogger(__name__)

LEASE, LAST_RUN = "lease.json", "last_run.json"
# Of an owner on another machine only the age of its file is known, by this machine's clock.
_SILENT_SECONDS = 2 * STALE_SECONDS

State = Literal["never started", "running", "stopped", "failed", "killed"]


@dataclass(frozen=True)
class Ended:
    """How a run ended: when (ISO 8601), and by which error, None if it was stopped or had read everything.

    `caught_up` is that of its Owner.
    """

    at: str
    error: str | None = None
    remedy: str | None = None
    caught_up: float | None = None

    @staticmethod
    def read(content: str) -> Ended | None:
        """What a file says, None for one that is damaged: it is of use to people only."""
        try:
            return Ended(**json.loads(content))
        except (ValueError, TypeError):
            return None


@dataclass(frozen=True)
class RunState:
    """Whether a pipeline runs. `owner` is who runs it, or was killed; `last` how the last run ended, if it did.

    Of a run that has committed a micro-batch, `last` is None.
    """

    state: State
    owner: Owner | None = None
    last: Ended | None = None

    @property
    def is_dead(self) -> bool:
        """Whether it does not run, and nobody has stopped it."""
        return self.state in ("failed", "killed")

    @property
    def caught_up(self) -> float | None:
        """When the log last ended where the pipeline has read to, as its run saw it; None if that is unknown."""
        run = self.owner or self.last
        return None if run is None else run.caught_up

    @property
    def restarted(self) -> Restarted | None:
        """The newest restart of a run's query, None if there was none, or nothing runs."""
        said = None if self.owner is None or self.state != "running" else self.owner.restarted
        return None if said is None else Restarted(**said)

    @override
    def __str__(self) -> str:
        if self.state in ("running", "killed") and self.owner is not None:
            verb = "running" if self.state == "running" else "killed, or its machine is out of reach"
            return f"{verb}: process {self.owner.pid} on {self.owner.host}, since {self.owner.since}"
        return self.state if self.last is None else f"{self.state} at {self.last.at}"


def ended(file: LeaseFile, error: TailraceError | None, caught_up: float | None = None) -> bool:
    """Write down how a run ended; whether that was possible. If not it is logged: the run has ended all the same."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    text = None if error is None else str(error).partition("\n  Remedy: ")[0]
    end = Ended(now, text, None if error is None else error.remedy, caught_up)
    content = json.dumps(asdict(end))
    try:
        file.write(content)
    except TailraceError as failure:
        if isinstance(file, LocalFile) and file.overwrite(content):
            return True
        log.warning("how the run ended is not written down: %s", failure)
        return False
    return True


def ended_early(checkpoint: str, error: TailraceError) -> None:
    """Write down that a run failed before it had the lease, where the checkpoint is local and no other run uses it.

    A checkpoint that cannot be read is the next start's to report.
    """
    with suppress(ConfigError):
        if "://" not in checkpoint and run_state(checkpoint).state != "running":
            ended(LocalFile(Path(checkpoint) / LAST_RUN), error)


def run_state(checkpoint: str) -> RunState:
    """Whether the pipeline of a checkpoint (a path or URL) runs. Raises ConfigError, SparkAloneError."""
    filesystem, root = file_system(checkpoint)
    lease, last = _content(filesystem, f"{root}/{LEASE}"), _content(filesystem, f"{root}/{LAST_RUN}")
    end = None if last is None else Ended.read(last)
    if lease is None and end is None:
        end = _untold(filesystem, root)
    if lease is None:
        state: State = "never started" if end is None else "stopped" if end.error is None else "failed"
        return RunState(state, None, end)
    owner = Owner.read(lease)
    is_alive = None if owner is None else owner.is_alive()
    if is_alive is None:
        written = filesystem.get_file_info(f"{root}/{LEASE}").mtime
        is_alive = written is not None and time.time() - written.timestamp() < _SILENT_SECONDS
    if not is_alive:
        return RunState("killed", owner, end)
    # What ended the run before is over once this one has committed a micro-batch.
    is_over = owner is not None and _committed_since(filesystem, root, owner.since)
    return RunState("running", owner, None if is_over else end)


def demand_stopped(checkpoint: str, why: str) -> None:
    """Raises ConfigError, which says `why`, while the pipeline of a checkpoint runs; SparkAloneError."""
    run = run_state(checkpoint)
    if run.state == "running":
        by = "`PUT /connectors/<name>/stop`, or by taking its file away"
        remedy = f"stop it first; one of `tailrace run FOLDER` by {by}"
        raise ConfigError(f"{why}: it is {run}", where=checkpoint, remedy=remedy)


def caught_up(progress: dict[str, Any]) -> float | None:
    """When the log last ended where a micro-batch ends, by its progress in Spark; None if the source does not say."""
    source = (progress.get("sources") or [{}])[0]
    latest = source.get("latestOffset") or {}
    lag = (json.loads(latest) if isinstance(latest, str) else latest).get("lag_ms")
    begun = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00"))
    return None if lag is None else begun.timestamp() - lag / 1000


def _committed_since(filesystem: fs.FileSystem, root: str, since: str) -> bool:
    """Whether a micro-batch was committed after an instant (ISO 8601)."""
    selector = fs.FileSelector(f"{root}/commits", allow_not_found=True)
    times = [info.mtime for info in filesystem.get_file_info(selector) if info.mtime is not None]
    return max(times, default=datetime.min.replace(tzinfo=timezone.utc)) > datetime.fromisoformat(since)


def _untold(filesystem: fs.FileSystem, root: str) -> Ended | None:
    """The end of a run that has not written it down; None if no run has got so far that its own files show it."""
    shown = filesystem.get_file_info(f"{root}/{COMPLETE}")
    if shown.type is not fs.FileType.File or shown.mtime is None:
        return None
    error = "the last run has not written down how it ended, as it cannot on a full disk"
    remedy = f"free space on the disk of {root} if it is full, see the run's log, and start again: it resumes"
    return Ended(shown.mtime.isoformat(timespec="seconds"), error, remedy)


def _content(filesystem: fs.FileSystem, path: str) -> str | None:
    try:
        with filesystem.open_input_stream(path) as stream:
            return str(stream.read().decode(errors="replace"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"the file cannot be read: {error.strerror or error}",
            where=path,
            remedy="run this as the user who runs the pipeline",
        ) from error
