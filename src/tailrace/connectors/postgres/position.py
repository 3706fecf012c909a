"""Positions in PostgreSQL's log (LSNs), the log state in an offset, and the `source` block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.options.events import PROVIDE_TRANSACTION_METADATA
from tailrace.connectors.offset import SNAPSHOT, Reached, readable
from tailrace.connectors.postgres.catalog.capturing import ENTRY, Capturing
from tailrace.connectors.postgres.catalog.enum_labels import Labels
from tailrace.connectors.postgres.options import COMPATIBILITY, OLD
from tailrace.model.schema import ConnectSchema, Field
from tailrace.model.source import OffsetEntries, SourceBlock

_OPTIONAL_LONG = ConnectSchema("int64", optional=True)
_OPTIONAL_TEXT = ConnectSchema("string", optional=True)

SOURCE = SourceBlock(
    connector="postgresql",
    schema_name="io.debezium.connector.postgresql.Source",
    fields=(
        Field("schema", ConnectSchema("string")),
        Field("table", ConnectSchema("string")),
        Field("txId", _OPTIONAL_LONG),
        Field("lsn", _OPTIONAL_LONG),
        Field("xmin", _OPTIONAL_LONG),
        Field("origin", _OPTIONAL_TEXT),
        Field("origin_lsn", _OPTIONAL_LONG),
    ),
    sequence=("last_commit", "lsn"),
    transaction_id=("txId", "lsn"),
    message_schemas="io.debezium.connector.postgresql.",
    position=("lsn",),
    event_id=(("lsn", "lsn"), ("txId", "txId"), ("sequence", "sequence")),
    # PostgresOffsetContext.getOffset(): server, ts_usec, and messageType or the three of a snapshot; an incremental one
    # has all of these and its own four. After a commit there are lsn_proc and lsn_commit.
    offset=OffsetEntries(3, 5, 10, ("txId", "lsn", "xmin", "last_commit", "last_commit")),
)


def source_block(config: Config) -> SourceBlock:
    """The block as `compat.version` wants it."""
    if config[COMPATIBILITY] != OLD:
        return SOURCE
    fields = tuple(field for field in SOURCE.fields if not field.name.startswith("origin"))
    return SOURCE.as_old(fields, has_transaction=config[PROVIDE_TRANSACTION_METADATA])


# The `source` column of PostgreSQL's change batches.
SOURCE_TYPE = pa.struct(
    [
        ("txId", pa.int64()),
        ("lsn", pa.int64()),
        ("xmin", pa.int64()),
        ("origin", pa.string()),
        ("origin_lsn", pa.int64()),
        ("last_commit", pa.int64()),
    ]
)


def format_lsn(lsn: int) -> str:
    """An LSN as PostgreSQL prints it, `16/B374D848`."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """The inverse of `format_lsn`. Raises ValueError."""
    high, slash, low = text.partition("/")
    if not slash or not 0 < len(high) <= 8 or not 0 < len(low) <= 8:
        raise ValueError(f"{text!r} is no LSN")
    return (int(high, 16) << 32) | int(low, 16)


@dataclass(frozen=True, slots=True)
class SeenLog:
    """What the server said when a stretch of the log was planned: the slot's confirmed position, and its own clock.

    The stretch was read afterwards, which moved that position. So a slot that is not beyond it is one of before: the
    server has crashed, or it was restored from a copy that is older than the stretch. `last_commit` is the end of the
    last transaction that was read by then.
    """

    confirmed: int
    clock_us: int
    last_commit: int | None = None


@dataclass(frozen=True, slots=True)
class LogClaim:
    """The log that a pipeline counts on, from `start` on (None: from where the slot is).

    Up to `end` it was read or planned while the server was on `timeline` (None: unknown). `since_us` is when the log
    ended at `start`, in microseconds since 1970; `seen` what the server said then. A slot that is beyond `start` is
    another pipeline's, unless it is at `moved_from` or beyond, where this pipeline itself wanted to create or move it.
    """

    start: int | None = None
    end: int | None = None
    timeline: int | None = None
    since_us: int | None = None
    moved_from: int | None = None
    seen: SeenLog | None = None

    def owns(self, confirmed: int | None) -> bool:
        """Whether a slot with this confirmed position is the one that the pipeline created, and was not moved since."""
        if confirmed is None or (self.start is not None and confirmed <= self.start):
            return True
        return self.moved_from is not None and confirmed >= self.moved_from


def claim(reached: Reached) -> LogClaim:
    """The log that is to be read from here on."""
    return LogClaim(
        reached.position, None, reached.log.get("timeline"), reached.ts_us, _moved_from(reached.log), _seen(reached.log)
    )


def claim_of_slot(start: Reached | None, end: Reached) -> LogClaim:
    """The slot of a batch from `start` (None: the first one) to `end`, which may have created or moved it."""
    if end.phase != SNAPSHOT or end.position is not None:
        return LogClaim(end.position)
    return LogClaim(None if start is None else start.position, moved_from=_moved_from(end.log))


def remembered(
    last_commit: int | None = None,
    *,
    timeline: int | None = None,
    slot: str | None = None,
    moved_from: int | None = None,
    seen: SeenLog | None = None,
    labels: Labels | None = None,
    capturing: Capturing | None = None,
) -> dict[str, Any]:
    """What an offset has in `log`; see SeenLog.

    `last_commit` is the end of the last transaction seen when this was planned, for `source.sequence`; `timeline` the
    one the server was on then, None if unknown. `moved_from` is stored before `slot` is created, or moved to a
    snapshot: it will not be before this position. `labels` are those that the schemas of enums show, by the type's oid.
    `capturing` is for sinks that keep tables.
    """
    return {
        "last_commit": last_commit,
        **({} if timeline is None else {"timeline": timeline}),
        **({} if moved_from is None else {"slot": {"name": slot, "from": format_lsn(moved_from)}}),
        **({} if seen is None else {"server": {"confirmed": format_lsn(seen.confirmed), "clock_us": seen.clock_us}}),
        **({} if labels is None else {"labels": dict(labels)}),
        **({} if capturing is None else {ENTRY: capturing.to_json()}),
    }


def last_commit(log: Mapping[str, Any]) -> int | None:
    """The end of the last transaction that `log` knows of."""
    end: int | None = log.get("last_commit")
    return end


def _moved_from(log: Mapping[str, Any]) -> int | None:
    with readable():
        return parse_lsn(log["slot"]["from"]) if "slot" in log else None


def _seen(log: Mapping[str, Any]) -> SeenLog | None:
    node = log.get("server")
    with readable():
        return None if node is None else SeenLog(parse_lsn(node["confirmed"]), node["clock_us"], log["last_commit"])
