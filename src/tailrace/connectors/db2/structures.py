"""Describes captured tables as the catalog has them, so that what happens outside the log is noticed.

TRUNCATE, IMPORT with REPLACE and ACTIVATE NOT LOGGED INITIALLY leave nothing in the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tailrace.connectors.db2.catalog import Catalog
from tailrace.connectors.db2.failures import FAILURES
from tailrace.connectors.db2.statements import text
from tailrace.connectors.sql_tables.tables import Connection, Row
from tailrace.model.structure import Fact, Member, Structure
from tailrace.model.table import TableId
from tailrace.model.table_id import SCHEMA_TABLE

_COLUMNS = "SELECT TABSCHEMA, TABNAME, COLNAME FROM SYSCAT.COLUMNS WHERE TABSCHEMA IN ({schemas})"
_COLUMNS_ZOS = "SELECT TBCREATOR, TBNAME, NAME FROM SYSIBM.SYSCOLUMNS WHERE TBCREATOR IN ({schemas})"
_TABLES = """
SELECT TABSCHEMA, TABNAME, VARCHAR(CREATE_TIME), DATACAPTURE FROM SYSCAT.TABLES WHERE TABSCHEMA IN ({schemas})
"""
_TABLES_ZOS = """
SELECT CREATOR, NAME, VARCHAR(CREATEDTS), DATACAPTURE FROM SYSIBM.SYSTABLES WHERE CREATOR IN ({schemas})
"""
# Of a table that is not partitioned it has one row. Attached and detached parts have a status until they are (no more)
# read as parts of the table; others have an empty one, which is null in databases that are compatible with Oracle.
_PARTS = """
SELECT TABSCHEMA, TABNAME, DATAPARTITIONID, DATAPARTITIONNAME FROM SYSCAT.DATAPARTITIONS
WHERE TABSCHEMA IN ({schemas}) AND (STATUS IS NULL OR STATUS NOT IN ('A', 'D', 'I', 'L'))
"""
# Times are texts of digits.
LOADS = """
SELECT TABSCHEMA, TABNAME, MAX(COALESCE(END_TIME, START_TIME)) FROM SYSIBMADM.DB_HISTORY
WHERE OPERATION = 'L' AND TABSCHEMA IN ({schemas}) GROUP BY TABSCHEMA, TABNAME
"""
# Y and L (with long columns) are captured; z/OS has a blank.
_NOT_CAPTURED = ("N", "")
_LOADED = "rows were loaded or replaced by LOAD, which the log does not show"
_UNSENT = "the log does not have its changes until ALTER TABLE ... DATA CAPTURE CHANGES, as when it is created again"
_Name = tuple[str, str]


@dataclass
class Catalogued:
    """What the catalog has of the tables of some schemas, by schema and name of the table."""

    columns: dict[_Name, set[str]] = field(default_factory=dict)
    tables: dict[_Name, tuple[str, str]] = field(default_factory=dict)
    parts: dict[_Name, dict[str, Member]] = field(default_factory=dict)
    loads: dict[_Name, int] = field(default_factory=dict)


def structures(connection: Connection, catalog: Catalog, *, is_zos: bool) -> Mapping[TableId, Structure]:
    """The captured tables, with the columns that they and their change tables have. May raise the driver's errors.

    What rows have in a column before a change table has it, by a default or an UPDATE, no log tells. A column is known
    by its name: columns are numbered again when one is dropped.
    """
    captured = {*catalog.captured()}
    changes = {
        TableId(catalog.database, owner.rstrip(), table, SCHEMA_TABLE): (owner.rstrip(), table, schema.rstrip(), name)
        for owner, table, schema, name, _ in catalog.registered()
    }
    named = [names for table, names in changes.items() if table in captured]
    if not named:
        return {}
    facts = _read(connection, {each for names in named for each in (names[0], names[2])}, is_zos=is_zos)
    by_table = {}
    for id_ in captured & changes.keys():
        owner, table, schema, name = changes[id_]
        own = sorted(facts.columns.get((owner, table), set()) & facts.columns.get((schema, name), set()))
        if own and (owner, table) in facts.tables:
            hidden = tuple({*own}.difference(catalog.filter.columns(id_, own)))
            by_table[id_] = described(facts, (owner, table), own, hidden)
    return by_table


def described(facts: Catalogued, name: _Name, own: Sequence[str], hidden: Sequence[str]) -> Structure:
    """A table with these columns (all that its change table has, and those of them that are not captured)."""
    created, capture = facts.tables[name]
    # A later LOAD is a smaller size; one that the history does not have any more is a larger one.
    loaded = Fact("", _LOADED, sizes=(-facts.loads.get(name, 0),))
    return Structure(
        identity=created,
        columns={each: each for each in own},
        hidden=hidden,
        filled=tuple(own),
        members=facts.parts.get(name, {}),
        facts={"loaded": loaded},
        unsent=_UNSENT if capture in _NOT_CAPTURED else None,
    )


def _read(connection: Connection, schemas: set[str], *, is_zos: bool) -> Catalogued:
    catalogued, listed = Catalogued(), ", ".join(map(text, sorted(schemas)))

    def each(query: str, note: Callable[..., Any]) -> None:
        for schema, table, *values in connection.rows(query.format(schemas=listed)):
            note((schema.rstrip(), table), *values)

    each(
        _COLUMNS_ZOS if is_zos else _COLUMNS,
        lambda name, column: catalogued.columns.setdefault(name, set()).add(column),
    )
    each(
        _TABLES_ZOS if is_zos else _TABLES,
        lambda name, created, capture: catalogued.tables.update({name: (str(created), (capture or "").strip())}),
    )
    if not is_zos:
        each(_PARTS, lambda name, id_, part: catalogued.parts.setdefault(name, {}).update({str(id_): Member(part, "")}))
        catalogued.loads = {
            (schema.rstrip(), table): int(at or 0) for schema, table, at in loads(connection, schemas) or ()
        }
    return catalogued


def loads(connection: Connection, schemas: set[str]) -> Sequence[Row] | None:
    """Schema and name of each table that LOAD has filled, and when it last did; None if the user may not know that."""
    try:
        return connection.rows(LOADS.format(schemas=", ".join(map(text, sorted(schemas)))))
    except FAILURES.driver_error as error:
        # A RESTRICTIVE database shows its history to those alone who were granted it, which `check` asks for.
        if FAILURES.is_transient(error):
            raise
        return None
