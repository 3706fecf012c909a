"""The offset that Spark's checkpoint stores, version 2: the same fields for every connector.

A connector stores its position as text, and beside it, in `log`, what else it has to remember of its log. Nobody else
reads either. Offsets of version 1, which only the first connector wrote, are converted when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tailrace.errors import OffsetError

VERSION = 2
# Fields of version 1 that version 2 has in `log`.
_LOG_OF_VERSION_1 = ("last_commit", "timeline", "slot", "server")

BEGIN, SNAPSHOT, STREAM = "begin", "snapshot", "stream"


@dataclass(frozen=True)
class StoredOffset:
    """How far a pipeline has come; the only state there is.

    `source` is the database that `connector` reads, `pipeline` is drawn once for a checkpoint. phase `begin`: nothing
    is read; `snapshot`: the first snapshot is being read; `stream`: the log is read up to `position`. `ts_us` is when
    this was planned. `snapshots` is the state of snapshots that signals asked for, `reading` that of a first snapshot
    of several micro-batches; None if there is none.
    """

    connector: str
    source: str
    pipeline: str
    phase: str
    position: str | None = None
    ts_us: int | None = None
    log: Mapping[str, Any] = field(default_factory=dict)
    snapshots: Mapping[str, Any] | None = None
    reading: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """The offset as Spark stores it. The order of keys is part of the format, as Spark compares the text."""
        return {
            "version": VERSION,
            "connector": self.connector,
            "source": self.source,
            "pipeline": self.pipeline,
            "phase": self.phase,
            "position": self.position,
            "ts_us": self.ts_us,
            "log": dict(self.log),
            **({} if self.snapshots is None else {"snapshots": self.snapshots}),
            **({} if self.reading is None else {"reading": self.reading}),
        }

    @staticmethod
    def from_json(node: Mapping[str, Any]) -> StoredOffset:
        """The inverse of `to_json`, for version 1 as well. Raises OffsetError for another version."""
        version = node.get("version")
        if version not in (1, VERSION):
            raise OffsetError(
                f"the checkpoint has offsets of version {version}, this release reads versions 1 to {VERSION}",
                remedy="run the release that wrote the checkpoint, or a newer one",
            )
        log = node["log"] if version == VERSION else {name: node[name] for name in _LOG_OF_VERSION_1 if name in node}
        return StoredOffset(
            node["connector"],
            node["source"],
            node["pipeline"],
            node["phase"],
            position_of(node),
            node.get("ts_us"),
            log,
            node.get("snapshots"),
            node.get("reading"),
        )

    def check(self, connector: str, source: str) -> None:
        """Raise OffsetError if this is another source's offset."""
        if (self.connector, self.source) != (connector, source):
            raise OffsetError(
                f"the checkpoint belongs to {self.connector} {self.source!r}, "
                f"but the configuration names {connector} {source!r}",
                remedy="give each source a checkpoint of its own, or point the configuration back at that source",
            )


def position_of(node: Mapping[str, Any]) -> str | None:
    """The position in an offset of either version, as text; None if it has none yet."""
    text: str | None = node.get("position", node.get("lsn"))
    return text
