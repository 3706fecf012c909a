"""Describes captured tables by the columns of their change tables, so that one that is added to these is noticed."""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.connectors.db2.catalog import Catalog
from tailrace.connectors.db2.client import Connection
from tailrace.connectors.db2.statements import text
from tailrace.model.structure import Structure
from tailrace.model.table import TableId
from tailrace.model.table_id import SCHEMA_TABLE

_COLUMNS = "SELECT TABSCHEMA, TABNAME, COLNAME FROM SYSCAT.COLUMNS WHERE TABSCHEMA IN ({schemas})"
_COLUMNS_ZOS = "SELECT TBCREATOR, TBNAME, NAME FROM SYSIBM.SYSCOLUMNS WHERE TBCREATOR IN ({schemas})"


def structures(connection: Connection, catalog: Catalog, *, is_zos: bool) -> Mapping[TableId, Structure]:
    """The captured tables, with the columns that they and their change tables have. May raise the driver's errors.

    What rows have in a column before a change table has it, by a default or an UPDATE, no log tells. A column is known
    by its name: numbers of columns are given anew when one is dropped.
    """
    captured = {*catalog.captured()}
    changes = {
        TableId(catalog.database, owner.rstrip(), table, SCHEMA_TABLE): (owner.rstrip(), table, schema.rstrip(), name)
        for owner, table, schema, name, _ in catalog.registered()
    }
    named = [names for table, names in changes.items() if table in captured]
    if not named:
        return {}
    schemas = ", ".join(text(each) for each in sorted({each for names in named for each in (names[0], names[2])}))
    columns: dict[tuple[str, str], set[str]] = {}
    for schema, table, column in connection.rows((_COLUMNS_ZOS if is_zos else _COLUMNS).format(schemas=schemas)):
        columns.setdefault((schema.rstrip(), table), set()).add(column)
    found = {}
    for id_ in captured & changes.keys():
        owner, table, schema, name = changes[id_]
        own = sorted(columns.get((owner, table), set()) & columns.get((schema, name), set()))
        if own:
            hidden = tuple({*own}.difference(catalog.filter.columns(id_, own)))
            found[id_] = Structure(columns={each: each for each in own}, hidden=hidden, filled=tuple(own))
    return found
