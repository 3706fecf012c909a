"""The offset that Spark's checkpoint stores, version 2: the same fields for every connector.

A connector stores its position as text and, in `log`, what else it has to remember of its log. No other code reads
either.

| phase | means | set by | followed by |
|---|---|---|---|
| begin | nothing is read; there is no position | a new checkpoint | snapshot |
| snapshot | the log is prepared, and tables are read if the mode says so | the first batch | snapshot, stream |
| stream | the log is read up to the position | the first batch that reads the log | stream, snapshot |

From `stream` a pipeline gets back to `snapshot` where the position is lost, or `snapshot.mode` asks for it at a start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from tailrace.connectors.lost_log_remedies import AFTER_DROP
from tailrace.errors import OffsetError

VERSION = 2

BEGIN, SNAPSHOT, STREAM = "begin", "snapshot", "stream"
# In the `log` of an offset that continues at the end of the log, without reading tables.
WITHOUT_ROWS = "without_rows"
FOLLOWING: Mapping[str, frozenset[str]] = {
    BEGIN: frozenset({SNAPSHOT}),
    SNAPSHOT: frozenset({SNAPSHOT, STREAM}),
    STREAM: frozenset({STREAM, SNAPSHOT}),
}

_UNREADABLE = "the checkpoint's offset cannot be read"
_REMEDY = f"restore the newest file in the checkpoint's folder `offsets` from a copy, or {AFTER_DROP}"


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a pipeline has read its source, as its connector sees it.

    `source` is the database that `connector` reads, `pipeline` is a random id of the checkpoint. phase `begin`: nothing
    is read; `snapshot`: the first snapshot is being read; `stream`: the log is read up to `position`, a value of the
    connector. `ts_us` is when this was planned, `log` what the connector remembers of its log, ready for JSON.
    """

    connector: str
    source: str
    pipeline: str
    phase: str = BEGIN
    _: KW_ONLY
    position: Any = None
    ts_us: int | None = None
    log: Mapping[str, Any] = field(default_factory=dict)

    @property
    def application(self) -> str:
        """A name for this pipeline's connections. By it the pipeline recognises its own dead reader."""
        return f"tailrace {self.pipeline}"


def fields(node: Mapping[str, Any], connector: str, source: str, parse: Callable[[str], Any]) -> dict[str, Any]:
    """The fields of Reached in a stored offset; `parse` makes a position of its text.

    Raises OffsetError for another version, for the offset of another source, and for one that cannot be read.
    """
    version = node.get("version")
    if version != VERSION:
        raise OffsetError(
            f"the checkpoint has offsets of version {version}, this release reads version {VERSION}",
            remedy="run the release that wrote the checkpoint, or continue with a new one: "
            "set `checkpoint` to a new folder, and the tables are read again",
        )
    if (node.get("connector"), node.get("source")) != (connector, source):
        raise OffsetError(
            f"the checkpoint belongs to {node.get('connector')} {node.get('source')!r}, "
            f"but the configuration names {connector} {source!r}",
            remedy="give each source a checkpoint of its own, or point the configuration back at that source",
        )
    with readable():
        return {
            "connector": connector,
            "source": source,
            "pipeline": node["pipeline"],
            "phase": node["phase"],
            "position": _position(node, parse),
            "ts_us": node.get("ts_us"),
            "log": node["log"],
        }


def _position(node: Mapping[str, Any], parse: Callable[[str], Any]) -> Any:
    """The position; None before the log is read. Raises OffsetError for a phase that is none."""
    phase, text = node["phase"], position_of(node)
    if phase not in FOLLOWING:
        raise OffsetError(f"{_UNREADABLE}: its phase is {phase!r}", remedy=_REMEDY)
    if phase == STREAM and text is None:
        # Where the server would begin of its own accord need not be where the pipeline is.
        raise OffsetError(f"{_UNREADABLE}: it has no position, although the log is being read", remedy=_REMEDY)
    return None if text is None else parse(text)


@contextmanager
def readable() -> Iterator[None]:
    """Turn what a part of an offset that is damaged, or was changed by hand, raises in the block into OffsetError."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise OffsetError(f"{_UNREADABLE}: {why}", remedy=_REMEDY) from error


def stored(
    reached: Reached,
    text: Callable[[Any], str],
    snapshots: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The offset as Spark stores it. The order of keys is part of the format, as Spark compares the text.

    `text` prints a position. `snapshots` is the state of snapshots that signals requested, `reading` that of a first
    snapshot of several micro-batches; None if there is none.
    """
    return {
        "version": VERSION,
        "connector": reached.connector,
        "source": reached.source,
        "pipeline": reached.pipeline,
        "phase": reached.phase,
        "position": None if reached.position is None else text(reached.position),
        "ts_us": reached.ts_us,
        "log": dict(reached.log),
        **({} if snapshots is None else {"snapshots": snapshots}),
        **({} if reading is None else {"reading": reading}),
    }


def position_of(node: Mapping[str, Any]) -> str | None:
    """The position in a stored offset, as text; None if it has none yet."""
    text: str | None = node.get("position")
    return text
