"""Reads a table in key-ordered pages: the last key, the next page, and the server's row estimate.

Nulls of a nullable key come last, as PostgreSQL sorts them. Rows of one key come in one chunk, however many: a key that
somebody names (`surrogate-key`, message.key.columns) need not be unique.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pyarrow as pa
from psycopg import sql

from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.catalog.tables import source_of
from tailrace.connectors.postgres.server.user_sql import check_condition, condition, one_statement
from tailrace.connectors.postgres.snapshot.keys import KeyTypes
from tailrace.connectors.postgres.snapshot.text_rows import copy_lines, rows_of
from tailrace.connectors.snapshots import PagingKey


@dataclass(frozen=True)
class Paging:
    """Reads the rows of a table that meet a condition in the order of a key. Columns of the key may be nullable."""

    connection: psycopg.Connection
    table: CapturedTable
    condition: str | None
    key: KeyTypes
    nullable: frozenset[str]

    @property
    def key_text(self) -> str:
        """The key's columns and types, as offsets name them."""
        return ",".join(f"{name} {kind}" for name, kind in self.key)

    def check(self) -> None:
        """Raise psycopg.Error where the condition is no single expression."""
        if self.condition:
            check_condition(self.connection, self._table(), self.condition)

    def maximum(self) -> PagingKey | None:
        """The last key there is, None without rows."""
        query = sql.SQL("SELECT {}{} ORDER BY {} LIMIT 1").format(
            self._texts(), self._rows(), sql.SQL(", ").join(sql.SQL("{} DESC").format(each) for each in self._names())
        )
        row = one_statement(self.connection, query).fetchone()
        return None if row is None else tuple(row)

    def after(
        self, last: PagingKey | None, maximum: PagingKey, size: int
    ) -> tuple[pa.StructArray, PagingKey | None, int]:
        """Images of the next rows, so many and those of the last one's key, that key, and their number.

        Raises SourceError.
        """
        bounds = [self._is_behind(maximum, within=True)]
        if last is not None:
            bounds.append(self._is_behind(last))
        columns = sql.SQL(", ").join(self._column(column.name) for column in self.table.schema.columns)
        query = sql.SQL("COPY (SELECT {}, {}{} ORDER BY {} FETCH FIRST {} ROWS WITH TIES) TO STDOUT").format(
            columns, self._texts(), self._rows(*bounds), sql.SQL(", ").join(self._names()), sql.Literal(size)
        )
        lines = [line for part in copy_lines(self.connection, query, str(self.table.schema.id)) for line in part]
        if not lines:
            return pa.nulls(0, self.table.schema.row_type), None, 0
        images, keys = rows_of(self.table, lines, len(self.key))
        return images, tuple(part[len(lines) - 1].as_py() for part in keys), len(lines)

    def estimate(self) -> int:
        """How many rows the server thinks there are."""
        query = sql.SQL("EXPLAIN (FORMAT JSON) SELECT{}").format(self._rows())
        row = one_statement(self.connection, query).fetchone()
        return 0 if row is None else int(row[0][0]["Plan"]["Plan Rows"])

    def _rows(self, *bounds: sql.Composable) -> sql.Composable:
        """FROM and WHERE. The condition may name the table, so that has no alias."""
        wanted = [*bounds, *([condition(self.condition)] if self.condition else [])]
        where = sql.SQL(" WHERE ") + sql.SQL(" AND ").join(wanted) if wanted else sql.SQL("")
        return sql.SQL(" FROM {}").format(source_of(self.table)) + where

    def _table(self) -> sql.Identifier:
        return sql.Identifier(self.table.schema.id.schema, self.table.schema.id.table)

    def _column(self, name: str) -> sql.Composable:
        return sql.SQL("{}.{}").format(self._table(), sql.Identifier(name))

    def _names(self) -> list[sql.Composable]:
        return [self._column(name) for name, _ in self.key]

    def _texts(self) -> sql.Composable:
        return sql.SQL(", ").join(sql.SQL("{}::text").format(name) for name in self._names())

    def _is_behind(self, bound: PagingKey, *, within: bool = False) -> sql.Composable:
        """That a row's key comes after another, or `within`: that it does not."""
        values = [
            sql.SQL("{}::{}").format(sql.Literal(part), sql.SQL(kind))
            for part, (_, kind) in zip(bound, self.key, strict=True)
        ]
        if not self.nullable:
            # In this form an index serves it.
            names, given = sql.SQL(", ").join(self._names()), sql.SQL(", ").join(values)
            return sql.SQL("ROW({}) {} ROW({})").format(names, sql.SQL("<=" if within else ">"), given)
        same: list[sql.Composable] = []
        steps: list[sql.Composable] = []
        for name, value, part in zip(self._names(), values, bound, strict=True):
            if part is not None:
                beyond = sql.SQL("({} > {} OR {} IS NULL)").format(name, value, name)
                steps.append(sql.SQL("(") + sql.SQL(" AND ").join([*same, beyond]) + sql.SQL(")"))
            same.append(sql.SQL("{} IS NOT DISTINCT FROM {}").format(name, value))
        behind = sql.SQL(" OR ").join(steps) if steps else sql.SQL("false")
        return sql.SQL("NOT coalesce({}, false)" if within else "({})").format(behind)
