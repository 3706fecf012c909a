"""A snapshotter of one's own, as an installed package offers it: the tables are read at each start."""

from __future__ import annotations


class EveryStart:
    """`snapshot.mode=custom` with `snapshot.mode.custom.name=every_start`."""

    def __init__(self, properties: dict[str, str]) -> None:
        """Nothing is asked of the properties."""

    def should_snapshot_data(self, offset_exists: bool, snapshot_in_progress: bool) -> bool:
        return True

    def should_stream(self) -> bool:
        return True

    def should_snapshot_on_data_error(self) -> bool:
        return False
