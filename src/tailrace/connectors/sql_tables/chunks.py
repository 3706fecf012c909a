"""Reads chunks of incremental snapshots in key order, with the log position that each chunk reflects."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.base import Key
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.ports import Position
from tailrace.connectors.refusals import refusals
from tailrace.connectors.signal_source import SignalSource
from tailrace.connectors.snapshot_ports import ChunkSession, ChunkTable, Page
from tailrace.connectors.snapshots import PagingKey, Unread, check_width
from tailrace.connectors.sql_tables.dialect import SqlDialect
from tailrace.connectors.sql_tables.images import block, expression, images, selected
from tailrace.connectors.sql_tables.keys import KeyColumn, after, key_columns, literal, order, printed
from tailrace.connectors.sql_tables.tables import Connection, Described
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override

# Keys of one statement.
_PIECE = 500


@dataclass(frozen=True)
class Session(ChunkSession):
    """Implements ChunkSession."""

    dialect: SqlDialect
    connection: Connection
    config: Config
    signals: SignalSource

    @override
    def window(self, table: TableId) -> AbstractContextManager[None]:
        """The marks are in the table's own database."""
        return self.signals.window(self.connection, table.database)

    @contextmanager
    @override
    def table(self, table: TableId, name: str, condition: str | None) -> Iterator[PagedTable]:
        catalog = self.dialect.catalog(self.connection, self.config)
        number = catalog.tables().get(table)
        if number is None:
            raise Unread("there is no such table", "UNKNOWN_SCHEMA")
        whole = catalog.described(table, number)
        captured = catalog.capture(catalog.descriptions()(table, number))
        if captured is None:
            raise Unread("none of its columns is captured", "UNKNOWN_SCHEMA")
        catalog.guard(captured, number)
        read = PagedTable(self.dialect, self.connection, self.config, captured, whole)
        if condition is None:
            yield read
            return
        origin = "the condition of the signal (additional-conditions)"
        with refusals(self.dialect.failures, table, origin), self.dialect.undone(self.connection):
            yield read


@dataclass(frozen=True)
class PagedTable(ChunkTable):
    """Implements ChunkTable."""

    dialect: SqlDialect
    connection: Connection
    config: Config
    captured: CapturedTable
    described: Described

    @property
    @override
    def schema(self) -> TableSchema:
        return self.captured.schema

    @override
    def page(self, condition: str | None, surrogate: str | None) -> Paging:
        """By the key of the signal or of the events; equal keys are distinguished by the table's own."""
        names = self.paged_by(surrogate)
        key = key_columns(self.described, names)
        if not key:
            raise Unread(f"it has no column {', '.join(names)}", "SQL_EXCEPTION")
        own = [each for each in key_columns(self.described, self.described.key) if each not in key]
        written = None if condition is None else self.dialect.grammar.condition(condition)
        return Paging(self, written, (*key, *own))

    @override
    def fence(self) -> str:
        return self.dialect.log_end(self.connection, self.config).to_text()

    @override
    def end(self) -> Position:
        return self.dialect.log_end(self.connection, self.config)

    @override
    def rows_of(self, keys: Sequence[Key]) -> tuple[pa.StructArray, pa.StructArray]:
        columns = self.key_of(self.schema.key)
        check_width(keys, len(columns), str(self.schema.id))
        row_images, existing = self.existing_rows(columns, keys)
        gone = [key for key in dict.fromkeys(keys) if key not in existing]
        return row_images, self.of_keys(columns, gone)

    def key_of(self, names: Sequence[str]) -> tuple[KeyColumn, ...]:
        """The key's columns. Raises Unread."""
        key = key_columns(self.described, names)
        if not key:
            raise Unread("it has no key", "NO_PRIMARY_KEY")
        return key

    def existing_rows(self, key: Sequence[KeyColumn], keys: Sequence[Key]) -> tuple[pa.StructArray, set[Key]]:
        """Images of the rows there are of these keys, and which of the keys those are."""
        parts: list[pa.StructArray] = []
        existing: set[Key] = set()
        for start in range(0, len(keys), _PIECE):
            piece = keys[start : start + _PIECE]
            given = ", ".join(
                f"({', '.join([str(place), *map(functools.partial(literal, self.dialect), key, values)])})"
                for place, values in enumerate(piece)
            )
            same = " AND ".join(f"t.{self.dialect.name(column.name)} = k.k{at}" for at, column in enumerate(key))
            columns = ", ".join(["place", *(f"k{at}" for at in range(len(key)))])
            listed = ", ".join(selected(self.dialect.name, self.captured, "t."))
            statement = (
                f"SELECT k.place, {listed} FROM {self.dialect.table(self.schema.id)} AS t "
                f"JOIN (VALUES {given}) AS k ({columns}) ON {same}"
            )
            rows = self.connection.rows(statement)
            existing.update(piece[row[0]] for row in rows)
            parts.append(self.images([row[1:] for row in rows]))
        return pa.concat_arrays(parts) if parts else self.images([]), existing

    def of_keys(self, key: Sequence[KeyColumn], keys: Sequence[Key]) -> pa.StructArray:
        """Images that have a key and nothing else, as the server reads its texts."""
        if not keys:
            return self.images([])
        places = {column.name: at for at, column in enumerate(key)}
        kinds = dict(zip((column.name for column in self.schema.columns), self.captured.types, strict=True))
        rows = []
        for values in keys:
            listed = [
                expression(
                    kinds[column.name], literal(self.dialect, key[places[column.name]], values[places[column.name]])
                )
                if column.name in places
                else "NULL"
                for column in self.schema.columns
            ]
            rows += self.connection.rows(self.dialect.one_row(listed))
        return self.images(rows)

    def images(self, rows: Sequence[tuple[object, ...]]) -> pa.StructArray:
        """Row images of rows of the driver."""
        columns = block(rows) if rows else [pa.nulls(0)] * len(self.schema.columns)
        return images(self.captured, columns, len(rows))

    @override
    def source(self, count: int, end: Position) -> pa.StructArray:
        return self.dialect.source_at(self.connection, self.config, self.schema.id, end, count)


@dataclass(frozen=True)
class Paging(Page):
    """Implements Page. The server compares keys, by its collations and its order of types."""

    table: PagedTable
    condition: str | None
    key: tuple[KeyColumn, ...]

    @property
    def _name(self) -> str:
        return self.table.dialect.table(self.table.schema.id)

    @property
    @override
    def key_text(self) -> str:
        return ", ".join(f"{self.table.dialect.name(column.name)} {column.type.declared}" for column in self.key)

    @override
    def check(self) -> None:
        """The server parses it where no parenthesis is open that it could close, then in its place."""
        if self.condition is None:
            return
        dialect, connection = self.table.dialect, self.table.connection
        dialect.parse(connection, f"SELECT CASE WHEN {self.condition} THEN 1 END AS met FROM {self._name}")
        dialect.parse(connection, f"SELECT 1 AS met FROM {self._name}{self._where()}")

    @override
    def estimate(self) -> int:
        statement = f"SELECT {self.table.dialect.count} FROM {self._name}{self._where()}"
        return int(self.table.connection.value(statement))

    @override
    def maximum(self) -> PagingKey | None:
        dialect = self.table.dialect
        backwards = order(dialect, self.key, " DESC")
        statement = f"SELECT {printed(dialect, self.key)} FROM {self._name}{self._where()} ORDER BY {backwards}"
        rows = self.table.connection.rows(dialect.limited(statement, 1))
        return dialect.texts(rows[0]) if rows else None

    @override
    def after(
        self, last: PagingKey | None, maximum: PagingKey, size: int
    ) -> tuple[pa.StructArray, PagingKey | None, int]:
        dialect = self.table.dialect
        conditions = [f"NOT {after(dialect, self.key, maximum)}"]
        conditions += [after(dialect, self.key, last)] if last is not None else []
        statement = (
            f"SELECT {printed(dialect, self.key)}, {', '.join(selected(dialect.name, self.table.captured))} "
            f"FROM {self._name}{self._where(*conditions)} ORDER BY {order(dialect, self.key)}"
        )
        rows = self.table.connection.rows(dialect.limited(statement, size) + dialect.hint(self.table.config))
        row_images = self.table.images([row[len(self.key) :] for row in rows])
        return row_images, (dialect.texts(rows[-1][: len(self.key)]) if rows else None), len(rows)

    def _where(self, *conditions: str) -> str:
        given = [*([f"({self.condition})"] if self.condition else []), *conditions]
        return f" WHERE {' AND '.join(given)}" if given else ""
