"""Computes generated columns that the log does not have, as the server computes them from the row's other columns.

PostgreSQL sends no generated columns before version 18, later those that are stored and published, and virtual ones
never. Their expressions are immutable and use the row alone, so the server gives the same values for the row's image as
it did for the row. A large value that the log did not repeat is taken from the table, as it is by now: if that is
newer, the change that made it follows. (Source: PostgreSQL manual, "Generated Columns", "Logical Replication".)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.catalog.tables import source_of
from tailrace.connectors.postgres.log.protocol.framing import Frames
from tailrace.connectors.postgres.log.protocol.pgoutput import Relation
from tailrace.connectors.postgres.log.protocol.tuples import TEXT, UNCHANGED, Cells
from tailrace.connectors.postgres.server.connect import connect, is_transient, server_errors
from tailrace.connectors.postgres.snapshot.text_rows import copy_lines, rows_of
from tailrace.connectors.retry import retrying
from tailrace.errors import SourceError
from tailrace.model.arrow import mask
from tailrace.model.change import ChangeBatch, note

_EXPRESSIONS = """
SELECT a.attname::text, pg_get_expr(d.adbin, d.adrelid), format_type(a.atttypid, a.atttypmod)
FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s AND a.attname = ANY (%s) AND a.attgenerated <> ''
"""
# The columns that the expressions use, and those of the replica identity.
_INPUTS = """
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod),
  CASE WHEN a.attcollation <> t.typcollation THEN quote_ident(n.nspname) || '.' || quote_ident(c.collname) END
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_collation c ON c.oid = a.attcollation LEFT JOIN pg_namespace n ON n.oid = c.collnamespace
WHERE a.attrelid = %s AND a.attgenerated = '' AND (a.attname = ANY (%s) OR a.attnum IN (
  SELECT p.refobjsubid FROM pg_attrdef d JOIN pg_depend p ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
  WHERE d.adrelid = a.attrelid AND p.refclassid = 'pg_class'::regclass AND p.refobjid = a.attrelid))
"""
_PLACE = sql.Identifier("tailrace place")


@dataclass(frozen=True, slots=True)
class _Input:
    """A column that expressions use, or by which a row is found."""

    name: str
    type: str
    collation: str | None

    def cast(self, place: int) -> sql.Composed:
        """The value from its text."""
        return sql.SQL("CAST({} AS {})").format(sql.Identifier("k", f"k{place}"), sql.SQL(self.type))

    def value(self, place: int) -> sql.Composed:
        """The value with the column's collation."""
        collation = "" if self.collation is None else f" COLLATE {self.collation}"
        return self.cast(place) + sql.SQL(collation)


@dataclass(frozen=True, slots=True)
class _Formula:
    """How the columns of a relation are computed: their expressions, in their types, and what these use."""

    expressions: tuple[tuple[str, str], ...]
    inputs: tuple[_Input, ...]
    key: tuple[str, ...]


@dataclass
class Computed:
    """Computes for one read. `notes` say of which tables columns could not be computed, which are null then."""

    config: Config
    notes: list[ChangeBatch] = field(default_factory=list)
    _connection: psycopg.Connection | None = None
    _formulas: dict[int, _Formula] = field(default_factory=dict)

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def forget(self, oid: int) -> None:
        """Forget a relation that is described again."""
        self._formulas.pop(oid, None)

    def columns(
        self,
        table: CapturedTable,
        relation: Relation,
        cells: Sequence[Cells],
        old: Sequence[Cells],
        has: npt.NDArray[np.bool_],
        frames: Frames,
    ) -> dict[str, pa.Array]:
        """The columns that the log does not have, for the rows that have an image; `old` are the images before."""
        rows = np.flatnonzero(has)
        wanted = _of_columns(table, table.absent)
        if len(rows):
            texts, lacking = _texts(relation, cells, old, rows, frames)
            try:
                values = self._asked(table, wanted, relation, texts, lacking, len(rows))
                picks = np.zeros(len(has), np.int64)
                picks[rows] = np.arange(len(rows))
                taken = [values.field(place).take(pa.array(picks, mask=~has)) for place in range(len(table.absent))]
                return dict(zip(table.absent, taken, strict=True))
            except SourceError as error:
                self._fail(table, error)
        return {column.name: pa.nulls(len(has), column.arrow) for column in wanted.schema.columns}

    def _fail(self, table: CapturedTable, error: SourceError) -> None:
        """Note that a table's columns are not known, once for all of its rows."""
        remedy = f" ({error.remedy})" if error.remedy else ""
        why = f"{', '.join(table.absent)} cannot be computed: {error.what}{remedy}"
        if all(each.table.id != table.schema.id for each in self.notes):
            self.notes.append(note(table.schema, lacking=why))

    def _asked(
        self,
        table: CapturedTable,
        wanted: CapturedTable,
        relation: Relation,
        texts: dict[str, pa.Array],
        lacking: dict[str, npt.NDArray[np.bool_]],
        count: int,
    ) -> pa.StructArray:
        def attempt() -> pa.StructArray:
            connection = self._connected()
            if relation.oid not in self._formulas:
                self._formulas[relation.oid] = _formula(connection, table, relation)
            query = _Query(table, self._formulas[relation.oid], texts, lacking, count).text
            lines = [line for part in copy_lines(connection, query, str(table.schema.id)) for line in part]
            return rows_of(wanted, lines, 0)[0]

        with server_errors(f"generated columns of {relation}"):
            return retrying(self.config, attempt, is_transient)

    def _connected(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self.config, application="tailrace catalog")
        return self._connection


def _of_columns(table: CapturedTable, names: Sequence[str]) -> CapturedTable:
    """The table as if it had these columns only, in that order."""
    kinds = dict(zip((column.name for column in table.schema.columns), table.types, strict=True))
    columns = tuple(table.schema.column(name) for name in names)
    return replace(
        table, schema=replace(table.schema, columns=columns), types=tuple(kinds[name] for name in names), absent=()
    )


def _texts(
    relation: Relation, cells: Sequence[Cells], old: Sequence[Cells], rows: npt.NDArray[np.intp], frames: Frames
) -> tuple[dict[str, pa.Array], dict[str, npt.NDArray[np.bool_]]]:
    """The texts of the rows' columns, and the large values that the log did not repeat, by column."""
    texts, lacking = {}, {}
    for column, new, before in zip(relation.columns, cells, old, strict=True):
        text = new.take(rows).text(frames.buffer)
        unrepeated = new.tag[rows] == UNCHANGED
        if unrepeated.any():
            is_known = before.tag[rows] == TEXT
            text = pc.if_else(mask(unrepeated & is_known), before.take(rows).text(frames.buffer), text)
            lacking[column.name] = unrepeated & ~is_known
        texts[column.name] = text
    return texts, {name: flags for name, flags in lacking.items() if flags.any()}


def _formula(connection: psycopg.Connection, table: CapturedTable, relation: Relation) -> _Formula:
    names = list(table.absent)
    columns = connection.execute(_EXPRESSIONS, [relation.oid, names]).fetchall()
    expressions = {name: f"CAST(({expression}) AS {kind})" for name, expression, kind in columns}
    key = tuple(column.name for column in relation.columns if column.in_identity and relation.identity != "f")
    inputs = tuple(_Input(*row) for row in connection.execute(_INPUTS, [relation.oid, list(key)]))
    # A column that is no longer generated, or gone, has no value that anybody could compute.
    return _Formula(tuple((name, expressions.get(name, "NULL")) for name in names), inputs, key)


@dataclass(frozen=True)
class _Query:
    """The COPY of a formula for some rows, in order: over their texts, and over the table for what `lacking` flags."""

    table: CapturedTable
    formula: _Formula
    texts: dict[str, pa.Array]
    lacking: dict[str, npt.NDArray[np.bool_]]
    count: int

    @property
    def text(self) -> sql.Composed:
        """The statement."""
        used = [each for each in self.formula.inputs if each.name in self.texts]
        unknown = [each.name for each in used if each.name in self.lacking]
        columns = [self._column(each, place, unknown) for place, each in enumerate(used)]
        inner = sql.SQL("SELECT {} FROM {}").format(
            _listed([*columns, sql.SQL("k.") + _PLACE]), self._rows(used, unknown)
        )
        if unknown:
            inner += sql.SQL(" LEFT JOIN {} AS r ON {}").format(source_of(self.table), self._same(used))
        outputs = _listed([sql.SQL(expression) for _, expression in self.formula.expressions])
        return sql.SQL("COPY (SELECT {} FROM ({}) AS t ORDER BY t.{}) TO STDOUT").format(outputs, inner, _PLACE)

    def _rows(self, used: Sequence[_Input], unknown: Sequence[str]) -> sql.Composed:
        """The rows as a table k: texts k0, k1, ..., flags u0, u1, ..., and their places."""
        texts = [sql.SQL("{}::text[]").format(sql.Literal(self.texts[each.name].to_pylist())) for each in used]
        flags = [sql.SQL("{}::boolean[]").format(sql.Literal(self.lacking[name].tolist())) for name in unknown]
        if not texts:
            return sql.SQL("generate_series(1, {}) AS k ({})").format(sql.Literal(self.count), _PLACE)
        names = [
            *(sql.Identifier(f"k{at}") for at in range(len(texts))),
            *(sql.Identifier(f"u{at}") for at in range(len(flags))),
        ]
        return sql.SQL("unnest({}) WITH ORDINALITY AS k ({})").format(
            _listed([*texts, *flags]), _listed([*names, _PLACE])
        )

    def _column(self, column: _Input, place: int, unknown: list[str]) -> sql.Composed:
        """A column of a row: from its text, or from the row of the table."""
        value, name = column.value(place), sql.Identifier(column.name)
        if column.name in unknown:
            flag = sql.Identifier("k", f"u{unknown.index(column.name)}")
            value = sql.SQL("CASE WHEN {} THEN r.{} ELSE {} END").format(flag, name, value)
        return sql.SQL("{} AS {}").format(value, name)

    def _same(self, used: Sequence[_Input]) -> sql.Composable:
        """That a row of the table has the key of a row."""
        pairs = [(each, place) for place, each in enumerate(used) if each.name in self.formula.key]
        if len(pairs) < max(len(self.formula.key), 1):
            return sql.SQL("false")
        same = [sql.SQL("r.{} = {}").format(sql.Identifier(each.name), each.cast(place)) for each, place in pairs]
        return sql.SQL(" AND ").join(same)


def _listed(parts: Sequence[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)
