"""The triggers that write the changes of a captured table to its log, which the capture step reads.

They see a statement's rows as a whole, so they can do as SQL Server's log does: an update is a pair of rows, a changed
key is a deletion and an insertion, and where a statement changes many keys, those that exist before and after are
updated while the others are deleted and inserted, in the order of the keys.
"""

from __future__ import annotations

from ..catalogue.model import Column, Table
from ..datatypes import LARGE_OBJECTS
from ..translate.bound import Bound

DELETE, INSERT, BEFORE, AFTER = 1, 2, 3, 4


def stored_columns(table: Table) -> list[Column]:
    """The columns that the log holds: all but computed ones."""
    return [column for column in table.columns if column.computed is None]


def log_table(table: Table) -> str:
    """The statement that creates a table's log."""
    columns = "".join(f", {column.physical} {column.kind.storage}" for column in stored_columns(table))
    return (
        f"CREATE TABLE log.t{table.object_id} (xid xid8 NOT NULL, position int8 NOT NULL, op int2 NOT NULL,"
        f" changed int[]{columns});"
        f"CREATE INDEX ON log.t{table.object_id} (xid);"
    )


def functions(table: Table) -> str:
    """The statements that create the trigger functions, or replace them after the table has changed."""
    return "".join(
        f"CREATE OR REPLACE FUNCTION log.{event}_{table.object_id}() RETURNS trigger LANGUAGE plpgsql AS $body$"
        f" BEGIN {body}"
        f" IF FOUND THEN PERFORM cat.note_transaction({table.database_id}); END IF; RETURN NULL; END $body$;"
        for event, body in (("inserted", _inserted(table)), ("deleted", _deleted(table)), ("updated", _updated(table)))
    )


def triggers(table: Table) -> str:
    """The statements that create the triggers."""
    number = table.object_id
    transitions = {
        "inserted": ("INSERT", "NEW TABLE AS new_rows"),
        "deleted": ("DELETE", "OLD TABLE AS old_rows"),
        "updated": ("UPDATE", "OLD TABLE AS old_rows NEW TABLE AS new_rows"),
    }
    return "".join(
        f"CREATE TRIGGER capture_{event} AFTER {word} ON u.t{number} REFERENCING {rows} FOR EACH STATEMENT EXECUTE"
        f" FUNCTION log.{event}_{number}();"
        for event, (word, rows) in transitions.items()
    )


def removal(object_id: int) -> str:
    """The statements that remove triggers, functions and log."""
    events = ("inserted", "deleted", "updated")
    drops = "".join(f"DROP TRIGGER IF EXISTS capture_{event} ON u.t{object_id};" for event in events)
    drops += "".join(f"DROP FUNCTION IF EXISTS log.{event}_{object_id}();" for event in events)
    return drops + f"DROP TABLE IF EXISTS log.t{object_id};"


def _names(table: Table) -> str:
    return "".join(f", {column.physical}" for column in stored_columns(table))


def _position(table: Table) -> str:
    return f"nextval('log.position_{table.database_id}')"


def _inserted(table: Table) -> str:
    head = f"INSERT INTO log.t{table.object_id} (xid, position, op{_names(table)})"
    return f"{head} SELECT pg_current_xact_id(), {_position(table)}, {INSERT}{_names(table)} FROM new_rows;"


def _deleted(table: Table) -> str:
    """Deletions: TEXT, NTEXT and IMAGE are not logged."""
    values = "".join(
        ", NULL" if column.kind.name in LARGE_OBJECTS else f", {column.physical}" for column in stored_columns(table)
    )
    head = f"INSERT INTO log.t{table.object_id} (xid, position, op{_names(table)})"
    return f"{head} SELECT pg_current_xact_id(), {_position(table)}, {DELETE}{values} FROM old_rows;"


def key_columns(table: Table) -> list[Column]:
    """The columns whose change moves a row: those of the primary key, or of a unique clustered index."""
    index = table.primary_key
    if index is None and table.clustered is not None and table.clustered.unique:
        index = table.clustered
    keys = [] if index is None else [table.by_id(column_id) for column_id, _ in index.keys]
    return [] if any(column.computed is not None for column in keys) else keys


def _key(alias: str, column: Column) -> str:
    return Bound(f"{alias}.{column.physical}", column.kind).key


def _updated(table: Table) -> str:
    keys = key_columns(table)
    if not keys:
        return _write_updates(table, "false", _paired())
    moved = " OR ".join(f"{_key('o', key)} IS DISTINCT FROM {_key('w', key)}" for key in keys)
    collapsed = " AND ".join(f"{_key('o', key)} = {_key('w', key)}" for key in keys)
    order = ", ".join(f"coalesce({_key('o', key)}, {_key('w', key)})" for key in keys)
    many = f"(SELECT count(*) FROM old_rows) > 1 AND EXISTS (SELECT 1 FROM {_paired()} WHERE {moved})"
    full = f"old_rows o FULL JOIN new_rows w ON {collapsed}"
    several = _write_updates(table, "false", full, order, "o IS NULL", "w IS NULL")
    return f"IF {many} THEN {several} ELSE {_write_updates(table, moved, _paired())} END IF;"


def _paired() -> str:
    """Old and new rows side by side: the server keeps them in the same order."""
    return (
        "(SELECT row_number() OVER () AS n, * FROM old_rows) o JOIN (SELECT row_number() OVER () AS n, * FROM"
        " new_rows) w USING (n)"
    )


def _write_updates(
    table: Table, moved: str, rows: str, order: str = "n", appeared: str = "false", vanished: str = "false"
) -> str:
    """Write two rows for each pair: before and after, or a deletion and an insertion."""
    columns = stored_columns(table)
    changed = ", ".join(
        f"CASE WHEN o.{c.physical} IS DISTINCT FROM w.{c.physical} THEN {c.column_id} END" for c in columns
    )
    both = "".join(f", o.{c.physical} AS o{c.column_id}, w.{c.physical} AS w{c.column_id}" for c in columns)
    pairs = (
        f"SELECT ({moved}) AS moved, ({appeared}) AS appeared, ({vanished}) AS vanished,"
        f" array_remove(ARRAY[{changed}]::int[], NULL) AS changed{both}"
        f" FROM {rows} ORDER BY {order} OFFSET 0"
    )
    values = "".join(f", CASE WHEN v.after THEN p.w{c.column_id} ELSE {_before(c)} END" for c in columns)
    operation = (
        f"CASE WHEN p.appeared THEN {INSERT} WHEN p.vanished THEN {DELETE} WHEN v.after THEN CASE WHEN p.moved"
        f" THEN {INSERT} ELSE {AFTER} END"
        f" ELSE CASE WHEN p.moved THEN {DELETE} ELSE {BEFORE} END END"
    )
    return (
        f"WITH p AS MATERIALIZED (SELECT {_position(table)} AS position, x.* FROM ({pairs}) x WHERE"
        f" cardinality(x.changed) > 0)"
        f" INSERT INTO log.t{table.object_id} (xid, position, op, changed{_names(table)})"
        f" SELECT pg_current_xact_id(), p.position, {operation}, p.changed{values} FROM p CROSS JOIN (VALUES"
        f" (false), (true)) v(after)"
        " WHERE NOT (p.appeared AND NOT v.after) AND NOT (p.vanished AND v.after);"
    )


def _before(column: Column) -> str:
    """A value before the change: large ones are logged only where they change, TEXT, NTEXT and IMAGE never."""
    name = f"p.o{column.column_id}"
    if column.kind.name in LARGE_OBJECTS:
        return "NULL"
    if column.kind.is_logged_apart:
        return f"CASE WHEN p.moved OR p.vanished OR {column.column_id} = ANY (p.changed) THEN {name} END"
    return name
