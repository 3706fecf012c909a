"""Decides by `snapshot.mode` when the tables are read, and whether the log is read after them."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.config import Config
from tailrace.config.entrypoints import custom
from tailrace.config.options.snapshot import (
    BASED_SNAPSHOT_DATA,
    BASED_SNAPSHOT_ON_DATA_ERROR,
    BASED_START_STREAM,
    SNAPSHOT_MODE,
    SNAPSHOT_MODE_CUSTOM_NAME,
)
from tailrace.config.plugin_groups import SNAPSHOTTERS
from tailrace.config.snapshot_plugins import Snapshotter


@dataclass(frozen=True, slots=True)
class SnapshotMode:
    """What a mode does.

    `at_first`: tables are read by a pipeline without a position; `at_start`: at each start of one that has one;
    `when_lost`: also where the server no longer has the log from the position on. Without `at_first` a connector then
    continues at the end of the log, if it can. `streams`: the log follows. `begins`: a pipeline without a position may
    begin.
    """

    at_first: bool
    at_start: bool = False
    when_lost: bool = False
    streams: bool = True
    begins: bool = True

    @staticmethod
    def of(config: Config) -> SnapshotMode:
        """The mode of a configuration."""
        name = config[SNAPSHOT_MODE]
        if name in _MODES:
            return _MODES[name]
        if name == "custom":
            return SnapshotMode._custom(custom(config, SNAPSHOT_MODE, SNAPSHOT_MODE_CUSTOM_NAME, SNAPSHOTTERS))

        data = config[BASED_SNAPSHOT_DATA]
        return SnapshotMode(
            data, at_start=data, when_lost=config[BASED_SNAPSHOT_ON_DATA_ERROR], streams=config[BASED_START_STREAM]
        )

    @staticmethod
    def _custom(asked: Snapshotter) -> SnapshotMode:
        return SnapshotMode(
            asked.should_snapshot_data(False, False),
            at_start=asked.should_snapshot_data(True, False),
            when_lost=asked.should_snapshot_on_data_error(),
            streams=asked.should_stream(),
        )


_MODES = {
    "initial": SnapshotMode(True),
    "initial_only": SnapshotMode(True, streams=False),
    "no_data": SnapshotMode(False),
    "always": SnapshotMode(True, at_start=True),
    "when_needed": SnapshotMode(True, when_lost=True),
    "when_needed_no_data": SnapshotMode(False, when_lost=True),
    "recovery": SnapshotMode(False, begins=False),
}
