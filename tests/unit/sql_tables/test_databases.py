"""The order of databases."""

from __future__ import annotations

import pytest

from tailrace.config import Config
from tailrace.connectors.sql_tables.databases import by_database, in_order
from tailrace.connectors.sqlserver.config import resolve
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE


def config(*names: str, faults: bool) -> Config:
    given = {"database.hostname": "h", "topic.prefix": "server1", "compat.faults": str(faults).lower()}
    return resolve({**given, "database.names": ",".join(names)})


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("a", "b"), ["b", "a"]),
        (("a", "b", "shop", "Sales", "inventory"), ["shop", "b", "a", "inventory", "Sales"]),
        (("alpha", "db10", "db2", "Zeta"), ["db10", "db2", "Zeta", "alpha"]),
    ],
)
def test_the_reference_reads_them_in_the_order_of_a_hash_set(names: tuple[str, ...], expected: list[str]) -> None:
    """What Java has printed for a HashSet of objects with the hash of SqlServerPartition."""
    assert in_order(config(*names, faults=True), names) == expected
    assert in_order(config(*map(str.upper, names), faults=True), names) == expected
    assert in_order(config(*names, faults=False), names) == sorted(names)


def test_tables_keep_their_order_inside_a_database() -> None:
    names = [(database, table) for table in ("u", "t") for database in ("a", "b")]
    tables = [TableId(database, "dbo", table, DATABASE_SCHEMA_TABLE) for database, table in names]
    assert [str(each) for each in by_database(tables, ["b", "a"])] == ["b.dbo.u", "b.dbo.t", "a.dbo.u", "a.dbo.t"]
