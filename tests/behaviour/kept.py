"""Follows a database with a Delta replica, without Spark: planned, read and written as a run does, step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailrace.errors import SinkError
from tailrace.pipeline.table_states import Reaction, TableStates
from tailrace.pipeline.targets import ReplicaTarget
from tailrace.sinks.replica import again, aside
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.modes import CHANGES
from tailrace.sinks.replica.renames import Stop, in_rounds, renamed
from tailrace.sinks.replica.reports import TableReport, summed
from tailrace.sinks.replica.sink import _merging, _moving
from tailrace.sinks.replica.states import COMPLETE
from tailrace.sinks.replica.target import read_table
from tailrace.spark.shapes import Shaper
from tests.behaviour.capture import Capture
from tests.conftest import Database

_BLOBS = pa.schema([("table", pa.string()), ("bytes", pa.binary())])


class Kept:
    """A pipeline and its replica below `root`, or another `lake`. Incomplete tables are told, and not read again."""

    def __init__(self, database: Database, root: Path, lake: ReplicaTarget | None = None, **properties: str) -> None:
        self.database, self._lake = database, lake or ReplicaTarget(path=str(root))
        given = {name.replace("__", "."): value for name, value in properties.items()}
        quick = {"table.watch.interval.ms": "1", "skipped.operations": "none", "rows.for.replica": "true"}
        self._given = {"include.unknown.datatypes": "true", **self._lake.properties, **quick, **given}
        self.capture = Capture(database, self._given)
        self.states = TableStates(reaction=Reaction("tell"), offset=lambda _: self.capture.offset)
        self._number = 0

    def restart(self, **properties: str) -> None:
        """Stop, and start again from the committed offset, perhaps with other properties."""
        self.stop()
        self._given |= {name.replace("__", "."): value for name, value in properties.items()}
        offset = self.capture.offset
        self.capture = Capture(self.database, self._given)
        self.capture.offset = offset
        self.states.captured(table.unique for table in self.tables())

    def stop(self) -> None:
        """Stop; the offset stays."""
        self.capture.close()

    def tables(self) -> list[Any]:
        return [schema.id for schema in self.capture.reader.discover()]

    def follow(self) -> None:
        """Read and write until nothing is left, the descriptions of the catalogue included."""
        quiet = 0
        while quiet < 2:
            before = self.capture.offset
            splits = self.capture.plan()
            quiet = quiet + 1 if self.capture.offset == before else 0
            self.write(splits)

    def write(self, splits: list[Any]) -> None:
        """Read splits and write them as a micro-batch."""
        reader, blobs = self.capture.reader, []
        for split in splits:
            reader.config.values["shape"] = "arrow"  # type: ignore[index]
            shaper = Shaper(reader, None, "[]", "run", "split")  # type: ignore[arg-type]
            for chunk in reader.read(split):
                blobs += [row for rows in shaper.rows(chunk) for row in rows.to_pylist()]
        blobs.sort(key=lambda row: row["table"])
        reports = summed(self._written([{name: row[name] for name in _BLOBS.names} for row in blobs]))
        self.states.written(self._number, reports.values())
        self._number += 1

    def _written(self, rows: list[dict[str, Any]]) -> list[TableReport]:
        root, options, known = self._lake.root, self._lake.options, self.states.known
        batch = MicroBatch(
            *(root, "kept", self._number, options, self._lake.on_drop == "keep", False, None),
            aside.folders(root, options),
            self._lake.on_error == "aside",
            self._lake.layout,
            copies=again.folders(root, options),
            known=known.seen,
            gone=known.gone,
        )

        def advance(done: Any) -> tuple[list[TableReport], list[Stop]]:
            parts = [pa.RecordBatch.from_pylist([row], _BLOBS) for row in rows]
            found = [row for part in _merging(batch, done)(iter(parts)) for row in part.to_pylist()]
            reports = [TableReport(**json.loads(row["report"])) for row in found if row["report"] is not None]
            return reports, [Stop.from_json(json.loads(row["stop"])) for row in found if row["stop"] is not None]

        def move(old: Stop, new: Stop) -> list[TableReport]:
            list(_moving(batch, old, new)(iter([pa.RecordBatch.from_pylist([{"id": 0}])])))
            return renamed(old, new, lacks_rows=self._lake.mode == CHANGES)

        return in_rounds(advance, move)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table's replica, in an order of their own."""
        return sorted(read_table(self._lake.root, _full(table), self._lake.options).to_pylist(), key=repr)

    def source(self, table: str, *, only: bool = False) -> list[dict[str, Any]]:
        """The rows of a table."""
        with self.database.connect() as connection:
            cursor = connection.execute(f"SELECT * FROM {'ONLY ' if only else ''}{table}".encode())
            names = [column.name for column in cursor.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return sorted(rows, key=repr)

    def why(self, table: str) -> str | None:
        """Why a table is not complete; None if it is."""
        state = self.states.tables.get(_full(table))
        if state is None or state.state == COMPLETE:
            return None
        return "; ".join(state.why) or state.state

    def is_same(self, table: str, *, only: bool = False) -> bool:
        """Whether a replica has the rows of its source, whatever is said of it; missing columns are null."""
        try:
            rows = self.rows(table)
        except SinkError:
            rows = []
        source = self.source(table, only=only)
        names = {name for row in (*rows, *source) for name in row}

        def texts(found: list[dict[str, Any]]) -> list[str]:
            return sorted(str({name: _plain(row.get(name)) for name in sorted(names)}) for row in found)

        return texts(rows) == texts(source)


def _full(table: str) -> str:
    return table if "." in table else f"public.{table}"


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return json.dumps(value)
    return str(value) if isinstance(value, Decimal) else value


@contextmanager
def keeping(database: Database, folder: Path, *statements: str, **properties: str) -> Iterator[Kept]:
    """A replica that has the tables which the statements make; a property's dots are written as two underscores."""
    database.execute(*statements)
    kept = Kept(database, folder / "lake", **properties)  # type: ignore[arg-type]
    try:
        kept.follow()
        yield kept
    finally:
        kept.stop()


@dataclass(frozen=True)
class Case:
    """Statements that run while a pipeline follows, and what is said of the table `t` then: a part of it, or nothing.

    `made` are statements before the pipeline starts. Each case has a schema of its own, which is on its search path.
    """

    statements: Sequence[str]
    why: str | None = None
    made: Sequence[str] = ()
    table: str = "t"
    only: bool = False

    def run(self, database: Database, schema: str, statements: Sequence[str]) -> None:
        """Run statements in the case's schema."""
        with database.connect() as connection:
            connection.execute(f"SET search_path = {schema}, public".encode())
            for statement in statements:
                connection.execute(statement.encode())

    def fault(self, kept: Kept, schema: str) -> str | None:
        """What is wrong in the end, if something is."""
        name = f"{schema}.{self.table}"
        found = kept.why(name)
        if self.why is not None:
            is_said = found is not None and self.why in found
            return None if is_said else f"{self.statements}: said is {found}, and not {self.why}"
        if found is not None:
            return f"{self.statements}: is said to be incomplete: {found}"
        if not kept.is_same(name, only=self.only):
            return f"{self.statements}: {kept.source(name)} is {kept.rows(name)}, and nothing is said"
        return None


def faults(
    database: Database, folder: Path, cases: Sequence[Case], *, is_stopped: bool = False, **properties: str
) -> list[str]:
    """Run cases in one pipeline, which may be stopped meanwhile; what is wrong with them."""
    names = {f"case_{place}": case for place, case in enumerate(cases)}
    for schema, case in names.items():
        database.execute(f"CREATE SCHEMA {schema}")
        case.run(database, schema, case.made)
    with keeping(database, folder, **properties) as kept:
        if is_stopped:
            kept.stop()
        for schema, case in names.items():
            case.run(database, schema, case.statements)
        if is_stopped:
            kept.restart()
        kept.follow()
        return [fault for schema, case in names.items() if (fault := case.fault(kept, schema)) is not None]
