"""Stores columns, properties and commits of a replica's tables beside them, one commit for each transaction.

Two tables of the schema have it, `_tailrace_tables` and `_tailrace_commits`, and change in the transaction that changes
the rows. A table itself says whose it is and which version it has, at the end of its comment: so a table that was put
back from a dump is told from the newest one. A trigger notes who else has written it. Versions are of one sequence,
drawn under a lock that lets one transaction write a table at a time; so they ascend in the order of the commits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from tailrace.sinks.replica.postgres.columns import arrow_type, fitted, sql_type
from tailrace.sinks.replica.postgres.connections import Connection
from tailrace.sinks.replica.table import Commit, LakeError, LostRaceError, Mark

TABLES, COMMITS, VERSIONS, WRITES = (
    "_tailrace_tables",
    "_tailrace_commits",
    "_tailrace_versions",
    "_tailrace_writes",
)
# The setting by which the trigger tells our writes, whose value is the table's id.
_OWN = "tailrace.writes"
_COMMENT = re.compile(r"\s*\[replica ([0-9a-f-]{36}) by Tailrace, version (\d+)\]$")
KEPT_COMMITS = 500
_WRITER = "Tailrace"
_NOT_OURS = "rename or drop the table, then run `tailrace retry`; or give the replica another `namespace`"

_MAKE = """
CREATE TABLE IF NOT EXISTS {tables} (
  folder text NOT NULL, name text NOT NULL, id uuid NOT NULL UNIQUE, relation text NOT NULL, oid oid NOT NULL,
  columns bytea NOT NULL, properties text NOT NULL, PRIMARY KEY (folder, name));
CREATE TABLE IF NOT EXISTS {commits} (
  id uuid NOT NULL, version bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(), mark text, app text,
  number bigint, operation text NOT NULL, writer text NOT NULL, keeps_rows boolean NOT NULL, is_own boolean NOT NULL,
  PRIMARY KEY (id, version));
CREATE SEQUENCE IF NOT EXISTS {versions};
CREATE OR REPLACE FUNCTION {writes}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS
$$ BEGIN
  IF current_setting({own}, true) IS DISTINCT FROM TG_ARGV[0] THEN
    INSERT INTO {commits} (id, version, operation, writer, keeps_rows, is_own)
    VALUES (TG_ARGV[0]::uuid, nextval({sequence}), TG_OP,
            session_user || ' with ' || coalesce(nullif(current_setting('application_name'), ''), 'no name'),
            false, false);
  END IF;
  RETURN NULL;
END $$;
"""
_LOAD = """
SELECT t.id::text, t.relation, t.columns, t.properties, t.oid = c.oid, obj_description(c.oid, 'pg_class'),
  (SELECT max(version) FROM {commits} m WHERE m.id = t.id AND is_own),
  (SELECT max(version) FROM {commits} m WHERE m.id = t.id),
  (SELECT json_object_agg(attname, format_type(atttypid, atttypmod)) FROM pg_attribute
   WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
FROM {tables} t LEFT JOIN pg_class c
  ON c.relname = t.relation AND c.relnamespace = to_regnamespace({schema}) AND c.relkind IN ('r', 'p')
WHERE t.folder = %s AND t.name = %s
"""


@dataclass(frozen=True)
class State:
    """A table as its ledger has it; `words` is what people have written into its comment."""

    id: str
    relation: str
    version: int
    schema: pa.Schema
    properties: Mapping[str, str]
    words: str = ""


@dataclass(frozen=True)
class Ledger:
    """The ledger in a schema of a database."""

    namespace: str

    def of(self, name: str) -> sql.Identifier:
        """An object of the schema."""
        return sql.Identifier(self.namespace, name)

    def make(self, connection: Connection) -> None:
        """Make the schema and the ledger, unless they are there."""
        row = connection.execute("SELECT to_regprocedure(%s)", [f'"{self.namespace}".{WRITES}()']).fetchone()
        if row is not None and row[0] is not None:
            return
        # Statements that make what is not there yet fail where two of them run at once.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"tailrace {self.namespace}"])
        row = connection.execute("SELECT to_regnamespace(%s)", [f'"{self.namespace}"']).fetchone()
        if row is None or row[0] is None:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.namespace)))
        sequence = sql.Literal(f'"{self.namespace}".{VERSIONS}')
        connection.execute(self._statement(_MAKE, own=sql.Literal(_OWN), sequence=sequence))

    def names(self, connection: Connection, folder: str) -> frozenset[str]:
        """The names of the tables of a folder; none where no replica was written yet."""
        if not self._is_made(connection):
            return frozenset()
        rows = connection.execute(self._statement("SELECT name FROM {tables} WHERE folder = %s"), [folder])
        return frozenset(name for (name,) in rows)

    def load(self, connection: Connection, folder: str, name: str) -> State | None:
        """A table as it is now, None where there is none. Raises LakeError for one of somebody else."""
        if not self._is_made(connection):
            return None
        statement = self._statement(_LOAD, schema=sql.Literal(f'"{self.namespace}"'))
        row = connection.execute(statement, [folder, name]).fetchone()
        return None if row is None or row[4] is None else self._state(*row)

    def _state(
        self,
        id_: str,
        relation: str,
        columns: bytes,
        properties: str,
        is_same: bool,
        comment: str | None,
        own: int,
        newest: int,
        types: Mapping[str, str],
    ) -> State:
        match = _COMMENT.search(comment or "")
        if (match is None and not is_same) or (match is not None and match[1] != id_):
            raise LakeError(f"{self.namespace}.{relation} is a table that this replica has not made", _NOT_OURS)
        words = (comment or "") if match is None else (comment or "")[: match.start()]
        version = own if match is None else int(match[2])
        # One that was put back says an older version; what was noted since is of the one that is gone.
        version = newest if version == own else version
        schema = _schema(pa.ipc.read_schema(pa.py_buffer(columns)), types, relation)
        return State(id_, relation, version, schema, json.loads(properties), words)

    def lock(self, connection: Connection, folder: str, name: str, state: State) -> None:
        """Keep others from writing the table until the transaction ends. Raises LostRaceError if it has changed.

        Readers go on. Who writes it waits; who has written it and has not committed is waited for.
        """
        try:
            statement = sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(self.of(state.relation))
            connection.execute(statement)
        except psycopg.errors.UndefinedTable as error:
            raise LostRaceError(f"{state.relation} was dropped meanwhile") from error
        now = self.load(connection, folder, name)
        if now is None or (now.id, now.version) != (state.id, state.version):
            raise LostRaceError(f"{state.relation} was written by another process meanwhile")
        connection.execute("SELECT set_config(%s, %s, true)", [_OWN, state.id])
        self._watch(connection, state)

    def begin(self, connection: Connection, folder: str, name: str, state: State) -> None:
        """Enter a table that was made in this transaction, and forget one of its name that somebody has dropped."""
        self.remove(connection, folder, name, is_dropped=True)
        statement = self._statement(
            "INSERT INTO {tables} (folder, name, id, relation, oid, columns, properties) "
            "VALUES (%s, %s, %s, %s, {oid}::regclass, %s, %s)",
            oid=sql.Literal(f'"{self.namespace}"."{state.relation}"'),
        )
        stored = [state.schema.serialize().to_pybytes(), json.dumps(dict(state.properties))]
        connection.execute(statement, [folder, name, state.id, state.relation, *stored])
        connection.execute("SELECT set_config(%s, %s, true)", [_OWN, state.id])
        self._watch(connection, state)

    def commit(
        self, connection: Connection, before: State, after: State, mark: Mark | None, operation: str, *, keeps: bool
    ) -> State:
        """Enter a commit that made one state of another; the state with its version. `keeps`: the rows are the same."""
        statement = self._statement("DELETE FROM {commits} WHERE id = %s AND version > %s")
        connection.execute(statement, [before.id, before.version])
        statement = self._statement(
            "INSERT INTO {commits} (id, version, mark, app, number, operation, writer, keeps_rows, is_own) "
            "VALUES (%s, nextval({sequence}), %s, %s, %s, %s, %s, %s, true) RETURNING version",
            sequence=sql.Literal(f'"{self.namespace}".{VERSIONS}'),
        )
        told = [None, None, None] if mark is None else [mark.text, mark.app, mark.version]
        row = connection.execute(statement, [before.id, *told, operation, _WRITER, keeps]).fetchone()
        assert row is not None
        if after.properties != before.properties or not after.schema.equals(before.schema, check_metadata=True):
            statement = self._statement("UPDATE {tables} SET columns = %s, properties = %s WHERE id = %s")
            stored = [after.schema.serialize().to_pybytes(), json.dumps(dict(after.properties))]
            connection.execute(statement, [*stored, after.id])
        made = replace(after, version=int(row[0]))
        text = f"{made.words}{' ' if made.words else ''}[replica {made.id} by Tailrace, version {made.version}]"
        table = self.of(made.relation)
        connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(table, sql.Literal(text)))
        return made

    def commits(self, connection: Connection, state: State, limit: int | None) -> list[Commit]:
        """The newest commits of a table up to its version, the newest first."""
        statement = self._statement(
            "SELECT version, mark, (extract(epoch FROM at) * 1000)::bigint, operation, writer, keeps_rows "
            "FROM {commits} WHERE id = %s AND version <= %s ORDER BY version DESC LIMIT %s"
        )
        return [Commit(*row) for row in connection.execute(statement, [state.id, state.version, limit])]

    def written(self, connection: Connection, state: State, app: str) -> int | None:
        """The number of the newest mark of an application."""
        statement = self._statement("SELECT max(number) FROM {commits} WHERE id = %s AND version <= %s AND app = %s")
        row = connection.execute(statement, [state.id, state.version, app]).fetchone()
        return None if row is None else row[0]

    def count_commits(self, connection: Connection, state: State) -> int:
        """How many commits are listed."""
        row = connection.execute(self._statement("SELECT count(*) FROM {commits} WHERE id = %s"), [state.id]).fetchone()
        return 0 if row is None else int(row[0])

    def prune(self, connection: Connection, state: State) -> None:
        """Remove commits, but the newest ones and the last one of each application."""
        statement = self._statement(
            "DELETE FROM {commits} WHERE id = %s AND version < (SELECT min(version) FROM "
            "(SELECT version FROM {commits} WHERE id = %s ORDER BY version DESC LIMIT %s) newest) "
            "AND version NOT IN (SELECT max(version) FROM {commits} WHERE id = %s AND app IS NOT NULL GROUP BY app)"
        )
        connection.execute(statement, [state.id, state.id, KEPT_COMMITS // 2, state.id])

    def remove(self, connection: Connection, folder: str, name: str, *, is_dropped: bool = False) -> None:
        """Drop a table with all that is stored of it, if there is one."""
        if not self._is_made(connection):
            return
        statement = self._statement("DELETE FROM {tables} WHERE folder = %s AND name = %s RETURNING id, relation")
        for id_, relation in connection.execute(statement, [folder, name]).fetchall():
            connection.execute(self._statement("DELETE FROM {commits} WHERE id = %s"), [id_])
            if not is_dropped:
                connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(self.of(relation)))

    def _watch(self, connection: Connection, state: State) -> None:
        """Have the trigger, which a table that was put back may lack."""
        statement = sql.SQL("SELECT FROM pg_trigger WHERE tgrelid = {}::regclass AND tgname = {} AND tgenabled = 'O'")
        name = sql.Literal(f'"{self.namespace}"."{state.relation}"')
        if connection.execute(statement.format(name, WRITES)).rowcount:
            return
        table, trigger = self.of(state.relation), sql.Identifier(WRITES)
        connection.execute(sql.SQL("DROP TRIGGER IF EXISTS {} ON {}").format(trigger, table))
        statement = sql.SQL(
            "CREATE TRIGGER {} AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {} FOR EACH STATEMENT "
            "EXECUTE FUNCTION {}({})"
        )
        connection.execute(statement.format(trigger, table, self.of(WRITES), sql.Literal(state.id)))

    def _is_made(self, connection: Connection) -> bool:
        row = connection.execute("SELECT to_regclass(%s)", [f'"{self.namespace}".{COMMITS}']).fetchone()
        return row is not None and row[0] is not None

    def _statement(self, text: str, **parts: sql.Composable) -> sql.Composed:
        names = {"tables": TABLES, "commits": COMMITS, "versions": VERSIONS, "writes": WRITES}
        return sql.SQL(text).format(**{key: self.of(name) for key, name in names.items()}, **parts)


def _schema(stored: pa.Schema, types: Mapping[str, str], relation: str) -> pa.Schema:
    """The columns of a table, in the types that they have there by now."""
    return pa.schema(list(_fields(stored, types, relation)))


def _fields(stored: pa.Schema, types: Mapping[str, str], relation: str) -> Iterator[pa.Field]:
    for field in stored:
        sql_name = types.get(fitted(field.name))
        if sql_name == sql_type(field):
            yield field
            continue
        kind: Any = None if sql_name is None else arrow_type(sql_name)
        if kind is None:
            what = "was dropped or renamed" if sql_name is None else f"has the type {sql_name} by now"
            raise LakeError(f"somebody else has altered the table: {relation}.{field.name} {what}", _NOT_OURS)
        yield pa.field(field.name, kind)
