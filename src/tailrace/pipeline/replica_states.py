"""Makes the states of a pipeline's replica: where they are stored, and how its tables are asked for again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tailrace.config import Config
from tailrace.config.options.snapshot import SIGNAL_FOLDER
from tailrace.connectors.notifications import Notice
from tailrace.connectors.signal import Signal
from tailrace.errors import TailraceError
from tailrace.pipeline.checkpoint import file_system
from tailrace.pipeline.definition import Definition, ReplicaTarget
from tailrace.pipeline.files import checkpoint_file
from tailrace.pipeline.table_states import FILE, Reaction, TableStates
from tailrace.sinks.replica import again
from tailrace.sinks.replica.states import TableState, from_text
from tailrace.snapshot import channels
from tailrace.snapshot.signals import EXECUTE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def states_of(
    session: SparkSession,
    definition: Definition,
    config: Config,
    target: ReplicaTarget,
    notify: Callable[[Notice], object],
) -> TableStates:
    """The states of a pipeline that starts. Raises ConfigError where they cannot be read."""
    folder = config.need(SIGNAL_FOLDER)

    def ask(table: str, request: str) -> None:
        data = {"data-collections": [table], "again": True}
        channels.send(folder, Signal(request, EXECUTE, json.dumps(data)))

    def offset(batch: int) -> dict[str, Any] | None:
        text = checkpoint_file(session, f"{definition.checkpoint}/offsets", str(batch)).read()
        # A version line, a line of metadata, and the offset of the one source.
        lines = (text or "").splitlines()
        last_offset: dict[str, Any] | None = json.loads(lines[2]) if len(lines) > 2 else None
        return last_offset

    return TableStates(
        file=checkpoint_file(session, definition.checkpoint, FILE),
        offset=offset,
        ask=ask,
        is_waiting=lambda request: channels.is_pending(folder, request),
        discard=lambda table: again.discard(target.root, table, target.options),
        reaction=Reaction(target.on_incomplete, target.read_again.pause_seconds),
        notify=notify,
    )


def stored_states(checkpoint: str) -> dict[str, TableState]:
    """The states that a checkpoint (a path or URL) holds, without Spark. Raises ConfigError, SparkAloneError."""
    filesystem, root = file_system(checkpoint)
    try:
        with filesystem.open_input_stream(f"{root}/{FILE}") as stream:
            return from_text(stream.read().decode())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TailraceError(
            f"the states of the replica's tables cannot be read: {error}",
            where=f"{root}/{FILE}",
            remedy="run this as the user who runs the pipeline; put the file back from a copy if it is damaged",
        ) from error
