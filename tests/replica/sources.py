"""The tables of a case's source, by its database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.behaviour.engines import counted
from tests.golden.databases.database import GoldenServer
from tests.golden.databases.db2 import GoldenDb2
from tests.golden.databases.mongodb import GoldenMongo
from tests.golden.databases.postgres import DATABASE, GoldenPostgres
from tests.golden.databases.sqlserver import GoldenSqlServer
from tests.replica import change_tables, mongodb, postgres
from tests.replica.content import SourceTable


def tables_of(server: GoldenServer, properties: Mapping[str, str], sink: Mapping[str, Any]) -> Sequence[SourceTable]:
    """The captured tables with what they hold now. Raises ValueError for settings that the comparison does not know."""
    ignored = frozenset(str(name) for name in sink.get("metadata", {}).values())
    if sink.get("names", "source") != "source":
        raise ValueError("the comparison knows the source's names alone")
    if isinstance(server, GoldenPostgres):
        with server.server.connect(DATABASE) as connection:
            nulls = sink.get("out_of_range") == "null"
            return list(postgres.tables(connection, postgres.Captured(properties), ignored, nulls=nulls))
    if isinstance(server, GoldenMongo):
        as_text = ".*" if sink.get("out_of_range") == "text" else properties.get("column.out.of.range.text", "")
        return list(mongodb.collections(server.client, mongodb.Captured(properties), ignored, as_text))
    if isinstance(server, GoldenSqlServer):
        return list(change_tables.of_sqlserver(server, properties, ignored))
    assert isinstance(server, GoldenDb2)
    return list(change_tables.of_db2(server, properties, ignored))


def rows_of_replicas(root: Path) -> dict[str, int]:
    """How many rows each replica below a root has, by its folder."""
    return counted(root)
