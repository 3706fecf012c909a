"""A table in PostgreSQL as the rules of replicas see it: each change of it is one transaction, with its mark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from tailrace.override import override
from tailrace.sinks.replica.evolve import sql_name
from tailrace.sinks.replica.fold import COUNT, KEEP, Net
from tailrace.sinks.replica.postgres import statements
from tailrace.sinks.replica.postgres.columns import as_text, selected, sql_type, stored
from tailrace.sinks.replica.postgres.connections import Connection, batches, transaction
from tailrace.sinks.replica.postgres.copying import read, staged
from tailrace.sinks.replica.postgres.errors import RefusedValueError
from tailrace.sinks.replica.postgres.ledger import KEPT_COMMITS, Ledger, State
from tailrace.sinks.replica.reshape import Reshaping
from tailrace.sinks.replica.table import Bounds, Commit, Maintenance, Mark, Rows, Table

_FEW_COMMITS = 8  # guessed


@dataclass(frozen=True)
class TableLocation:
    """Where a table is: its database, the ledger, and its names there."""

    conninfo: str = field(repr=False)
    ledger: Ledger
    folder: str
    name: str
    uri: str


class TargetTable(Table):
    """Implements Table."""

    def __init__(self, place: TableLocation, state: State) -> None:
        self._place, self._state = place, state

    @property
    @override
    def uri(self) -> str:
        return self._place.uri

    @property
    @override
    def id(self) -> str:
        return self._state.id

    @property
    @override
    def version(self) -> int:
        return self._state.version

    @property
    @override
    def schema(self) -> pa.Schema:
        return self._state.schema

    @property
    @override
    def properties(self) -> Mapping[str, str]:
        return self._state.properties

    @override
    def count(self) -> int:
        """PostgreSQL counts them by reading."""
        with transaction(self._place.conninfo) as connection:
            row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(self._table)).fetchone()
        return 0 if row is None else int(row[0])

    @override
    def scan(self, bounds: Bounds | None = None) -> pa.RecordBatchReader:
        schema = self.schema
        columns = sql.SQL(", ").join(selected(each) for each in schema)
        where = sql.SQL("") if bounds is None else _within(bounds)
        query = sql.SQL("SELECT {} FROM {}{}").format(columns, self._table, where).as_string()

        def rows() -> Iterator[pa.RecordBatch]:
            for batch in batches(self._place.conninfo, query):
                arrays = [values.cast(each.type) for values, each in zip(batch.columns, schema, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, rows())

    @override
    def stored(self, schema: pa.Schema) -> pa.Schema:
        return stored(schema)

    @override
    def commits(self) -> Iterator[Commit]:
        """Most often the first one is enough."""
        seen = 0
        for limit in (_FEW_COMMITS, None):
            with transaction(self._place.conninfo) as connection:
                commits = self._place.ledger.commits(connection, self._state, limit)
            yield from commits[seen:]
            seen = len(commits)
            if limit is None or seen < limit:
                return

    @override
    def written(self, app: str) -> int | None:
        with transaction(self._place.conninfo) as connection:
            return self._place.ledger.written(connection, self._state, app)

    @override
    def set_property(self, name: str, text: str, mark: Mark) -> None:
        after = replace(self._state, properties={**self.properties, name: text})
        self._write("SET PROPERTY", mark, lambda _: after, keeps=True)

    @override
    def append(self, rows: pa.Table, mark: Mark) -> None:
        def insert(connection: Connection) -> None:
            source = staged(connection, "_tailrace_rows", rows, self.schema)
            self._lock(connection)
            connection.execute(statements.insert(self._table, self.schema, source))

        self._fill("APPEND", mark, insert, rows)

    @override
    def overwrite(self, rows: Rows, mark: Mark, *, reshapes: bool) -> None:
        """Readers have the old rows until it is committed; views of columns that are the same stay."""
        schema = stored(rows.schema) if reshapes else self.schema

        def put(connection: Connection) -> State:
            # Rows may come from the table itself, which is read while nothing of it is locked.
            source, after = read(connection, "_tailrace_rows", rows, schema)
            self._lock(connection)
            connection.execute(sql.SQL("DELETE FROM {}").format(self._table))
            for statement in statements.refit(self._table, self.schema, after):
                connection.execute(statement)
            connection.execute(statements.insert(self._table, after, source))
            return replace(self._state, schema=after)

        self._write("OVERWRITE", mark, put, locks=True)

    @override
    def reshape(self, shape: Reshaping, mark: Mark) -> None:
        """No row is written again."""

        fields = [
            self.schema.field(old).with_name(new) for old, new in zip(shape.names, shape.schema.names, strict=True)
        ]

        def alter(connection: Connection) -> State:
            for statement in statements.rename(self._table, self.schema, shape):
                connection.execute(statement)
            return replace(self._state, schema=pa.schema(fields))

        self._write("ALTER", mark, alter)

    @override
    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        """No row is written again."""
        if not fields:
            return
        schema = pa.schema([*self.schema, *stored(pa.schema(list(fields)))])

        def alter(connection: Connection) -> State:
            for each in list(schema)[len(self.schema) :]:
                connection.execute(statements.add_column(self._table, each))
            return replace(self._state, schema=schema)

        self._write("ADD COLUMNS", None, alter, keeps=True)

    @override
    def widen(self, schema: pa.Schema, mark: Mark) -> bool:
        """Other types than a wider number have their rows written again."""
        changed = [each for each in schema if sql_type(each) != sql_type(self.schema.field(each.name))]
        if any(not _is_number(each.type) for each in changed):
            return False

        def alter(connection: Connection) -> State:
            for each in changed:
                connection.execute(statements.retype(self._table, each))
            return replace(self._state, schema=schema)

        self._write("ALTER", mark, alter, keeps=True)
        return True

    @override
    def merge(self, net: Net, rows: pa.Table, mark: Mark) -> int:
        names, kept = self.schema.names, net.kept
        flags = [pa.field(KEEP + name, pa.bool_()) for name in kept]
        put = 0

        def apply(connection: Connection) -> None:
            nonlocal put
            schema = pa.schema([*self.schema, pa.field(COUNT, pa.int64()), *flags])
            source = staged(connection, "_tailrace_rows", rows, schema)
            merge = statements.Merge(self._table, names, self._fields(net.key), kept, source)
            self._lock(connection)
            connection.execute(statements.index(self._state.relation, self._place.ledger, merge.key))
            connection.execute(merge.delete())
            put = connection.execute(merge.update()).rowcount + connection.execute(merge.insert()).rowcount

        self._fill("MERGE", mark, apply, rows)
        return put

    @override
    def succeed(self, key: Sequence[str], end: str, ends: pa.Table, versions: pa.Table, mark: Mark) -> None:
        def apply(connection: Connection) -> None:
            schema, fields = self.schema, self._fields(key)
            ended = staged(connection, "_tailrace_ends", ends, pa.schema([*fields, schema.field(end)]))
            source = staged(connection, "_tailrace_rows", versions, schema)
            self._lock(connection)
            connection.execute(statements.index(self._state.relation, self._place.ledger, fields))
            connection.execute(statements.end(self._table, fields, end, ended))
            connection.execute(statements.insert(self._table, schema, source))

        self._fill("SUCCEED", mark, apply, versions, ends)

    @override
    def merge_bag(self, net: Net, added: pa.Table, mark: Mark) -> None:
        gone = net.rows.filter(pc.less(net.rows.column(COUNT), 0))

        def apply(connection: Connection) -> None:
            fields = [self.schema.field(name) for name in net.table.row_type.names]
            images = staged(connection, "_tailrace_gone", gone, pa.schema([*fields, pa.field(COUNT, pa.int64())]))
            source = staged(connection, "_tailrace_rows", added, self.schema)
            self._lock(connection)
            if gone.num_rows:
                connection.execute(statements.delete_equal(self._table, fields, images))
            connection.execute(statements.insert(self._table, self.schema, source))

        self._fill("MERGE", mark, apply, added, gone)

    @override
    def maintenance(self) -> Autovacuum:
        return Autovacuum(self)

    def crowded(self) -> bool:
        """Whether more commits are listed than are kept."""
        with transaction(self._place.conninfo) as connection:
            return self._place.ledger.count_commits(connection, self._state) > KEPT_COMMITS

    def prune(self) -> None:
        """Remove old commits from the list."""
        with transaction(self._place.conninfo) as connection:
            self._place.ledger.prune(connection, self._state)

    @property
    def _table(self) -> sql.Identifier:
        return self._place.ledger.of(self._state.relation)

    def _lock(self, connection: Connection) -> None:
        self._place.ledger.lock(connection, self._place.folder, self._place.name, self._state)

    def _fields(self, names: Collection[str]) -> list[pa.Field]:
        return [each for each in self.schema if each.name in names]

    def _fill(self, operation: str, mark: Mark, act: Callable[[Connection], None], *rows: pa.Table) -> None:
        """Write rows; where a value is none of its column's type, the column takes any text from then on."""

        def put(connection: Connection) -> State:
            act(connection)
            return self._state

        try:
            self._write(operation, mark, put, locks=True)
        except RefusedValueError:
            if not self._take_texts(rows):
                raise
            self._write(operation, mark, put, locks=True)

    def _take_texts(self, rows: Sequence[pa.Table]) -> bool:
        """Have columns of text where rows have values that are none of the type; whether there are such columns."""
        refused: list[pa.Field] = []
        if not any(sql_name(each) for each in self.schema):
            return False

        def alter(connection: Connection) -> State:
            for number, some in enumerate(rows):
                fields = [each for each in self._fields(some.column_names) if sql_name(each) is not None]
                if not fields:
                    continue
                _, after = read(connection, f"_tailrace_read_{number}", some, pa.schema(fields))
                refused.extend(each for each, then in zip(fields, after, strict=True) if sql_name(then) is None)
            self._lock(connection)
            names = {each.name for each in refused}
            for each in self._fields(names):
                connection.execute(statements.to_text(self._table, each))
            columns = [as_text(each) if each.name in names else each for each in self.schema]
            return replace(self._state, schema=pa.schema(columns))

        self._write("ALTER", None, alter, keeps=True, locks=True)
        return bool(refused)

    def _write(
        self,
        operation: str,
        mark: Mark | None,
        act: Callable[[Connection], State],
        *,
        keeps: bool = False,
        locks: bool = False,
    ) -> None:
        """Do something in a transaction that enters its commit. `locks`: it locks the table itself, in time."""
        with transaction(self._place.conninfo) as connection:
            if not locks:
                self._lock(connection)
            after = act(connection)
            made = self._place.ledger.commit(connection, self._state, after, mark, operation, keeps=keeps)
        self._state = made


class Autovacuum(Maintenance):
    """Implements Maintenance: PostgreSQL's autovacuum removes old versions of rows, and what is left is the list of
    commits.
    """

    live: Mapping[str, int] = {}
    kept_seconds = None

    def __init__(self, table: TargetTable) -> None:
        self._table = table

    @override
    def others(self) -> Mapping[str, int]:
        return {}

    @override
    def small(self, size: int) -> int:
        return 0

    @property
    @override
    def is_crowded(self) -> bool:
        return self._table.crowded()

    @override
    def keep(self, seconds: int, mark: Mark) -> None:
        """Replaced versions cannot be read again."""

    @override
    def join(self, size: int, mark: Mark) -> None:
        """There are no files of ours."""

    @override
    def old(self) -> Sequence[str]:
        return ()

    @override
    def remove(self, mark: Mark) -> None:
        self._table.prune()


def _within(bounds: Bounds) -> sql.Composable:
    """The condition of rows within bounds of a column."""
    name, sides = sql.Identifier(bounds.column), ((">=", bounds.least), ("<=", bounds.most))
    met = [
        sql.SQL("{} {} {}").format(name, sql.SQL(sign), sql.Literal(each)) for sign, each in sides if each is not None
    ]
    return sql.SQL(" WHERE ({}) OR {} IS NULL").format(sql.SQL(" AND ").join(met), name) if met else sql.SQL("")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
