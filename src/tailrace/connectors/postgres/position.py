"""Positions in PostgreSQL's log: LSNs, the offset Spark keeps, and the fields of the `source` block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.offset import BEGIN, SNAPSHOT, StoredOffset
from tailrace.model.schema import ConnectSchema, Field
from tailrace.model.source import SourceBlock
from tailrace.snapshot.progress import Progress
from tailrace.snapshot.reading import Reading

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
)


def source_block(config: Config) -> SourceBlock:
    """The block as `compat.version` wants it."""
    if config.text("compat.version") == "current":
        return SOURCE
    fields = tuple(field for field in SOURCE.fields if not field.name.startswith("origin"))
    return SOURCE.as_old(fields, has_transaction=config.flag("provide.transaction.metadata"))


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
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the server said when a stretch of the log was planned: the slot's confirmed position, and its own clock.

    The stretch was read afterwards, which moved that position. So a slot that is not beyond it is one of before: the
    server has crashed, or it was restored from a copy that is older than the stretch. `last_commit` is the end of the
    last transaction that was read by then.
    """

    confirmed: int
    clock_us: int
    last_commit: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
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
    seen: Seen | None = None

    def owns(self, confirmed: int | None) -> bool:
        """Whether a slot with this confirmed position is the one that the pipeline created and nobody else moved."""
        if confirmed is None or (self.start is not None and confirmed <= self.start):
            return True
        if self.moved_from is not None:
            return confirmed >= self.moved_from
        return self.start is None  # an earlier version stored it, and moved any slot


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a pipeline has come. Spark stores its JSON; it is the only state there is.

    `pipeline` is drawn once for a checkpoint. phase `begin`: nothing read. `snapshot`: the snapshot is read; the log
    goes on at the slot's confirmed position, which nothing moves until the first stretch of the log has been
    committed. `stream`: every transaction whose commit record lies before `lsn` is read. `last_commit` is the end of
    the last transaction seen when this stretch was planned, for `source.sequence`; `ts_us` is when that was, `timeline`
    the one the server was on then, None if unknown.
    `progress` is how far snapshots have come that signals asked for, None without a signal table; `reading` how far the
    first snapshot has, None where one micro-batch reads it. `moved_from` is stored before the slot is created, or moved
    to a snapshot: it will not be before this position. `seen` is what the server said when this stretch was planned.
    """

    source: str
    pipeline: str
    phase: str = BEGIN
    lsn: int | None = None
    last_commit: int | None = None
    ts_us: int | None = None
    progress: Progress | None = None
    reading: Reading | None = None
    timeline: int | None = None
    moved_from: int | None = None
    seen: Seen | None = None

    def to_json(self) -> dict[str, Any]:
        """The offset as Spark stores it, see StoredOffset."""
        log = {
            "last_commit": self.last_commit,
            **({} if self.timeline is None else {"timeline": self.timeline}),
            **({} if self.moved_from is None else {"slot": self._slot()}),
            **({} if self.seen is None else {"server": _of_seen(self.seen)}),
        }
        return StoredOffset(
            SOURCE.connector,
            self.source,
            self.pipeline,
            self.phase,
            None if self.lsn is None else format_lsn(self.lsn),
            self.ts_us,
            log,
            None if self.progress is None else self.progress.to_json(),
            None if self.reading is None else self.reading.to_json(),
        ).to_json()

    @staticmethod
    def from_json(node: Mapping[str, Any], source: str) -> Offset:
        """Read an offset of this very source. Raises OffsetError for another source's or a newer version's."""
        stored = StoredOffset.from_json(node)
        stored.check(SOURCE.connector, source)
        log = stored.log
        return Offset(
            source,
            stored.pipeline,
            stored.phase,
            None if stored.position is None else parse_lsn(stored.position),
            log["last_commit"],
            stored.ts_us,
            None if stored.snapshots is None else Progress.from_json(dict(stored.snapshots)),
            None if stored.reading is None else Reading.from_json(dict(stored.reading)),
            log.get("timeline"),
            parse_lsn(log["slot"]["from"]) if "slot" in log else None,
            _to_seen(log["server"], log["last_commit"]) if "server" in log else None,
        )

    def _slot(self) -> dict[str, Any]:
        assert self.moved_from is not None
        return {"name": self.source.rpartition("/")[2], "from": format_lsn(self.moved_from)}

    @property
    def application(self) -> str:
        """The application name of this pipeline's readers: tells its own dead reader on the slot from a stranger."""
        return f"tailrace {self.pipeline}"

    @property
    def claim(self) -> Claim:
        """The log that is to be read from here on."""
        return Claim(self.lsn, None, self.timeline, self.ts_us, self.moved_from, self.seen)

    def claim_of_slot(self, start: Offset | None) -> Claim:
        """The slot of a batch from `start` (None: the first one) to here, which may have created or moved it."""
        if self.phase != SNAPSHOT or self.lsn is not None:
            return Claim(self.lsn)
        if self.moved_from is None:
            return Claim()
        return Claim(None if start is None else start.lsn, moved_from=self.moved_from)

    def at(self, **changes: Any) -> Offset:
        """A copy with some fields changed."""
        return replace(self, **changes)


def _of_seen(seen: Seen) -> dict[str, Any]:
    return {"confirmed": format_lsn(seen.confirmed), "clock_us": seen.clock_us}


def _to_seen(node: dict[str, Any], last_commit: int | None) -> Seen:
    return Seen(parse_lsn(node["confirmed"]), node["clock_us"], last_commit)
