"""Where a snapshot resumes whose tables were altered meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tailrace.config import Config
from tailrace.connectors.change_tables.snapshots import ChangeTableSnapshots
from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.connectors.sql_tables.tables import Described
from tailrace.connectors.sqlserver.config import resolve
from tailrace.connectors.sqlserver.snapshot import SqlServerDialect
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE

CONFIG = resolve({"database.hostname": "h", "database.names": "shop", "topic.prefix": "server1"})
TABLE = TableId("shop", "dbo", "t", DATABASE_SCHEMA_TABLE)


class Keyed(SqlServerDialect):
    """A database with one table, whose key has so many columns."""

    def __init__(self, *key: str) -> None:
        self._key = key

    def catalog(self, connection: object, config: Config) -> Any:
        return SimpleNamespace(
            tables=lambda: {TABLE: 1},
            captured=lambda: [TABLE],
            descriptions=lambda: lambda table, number: Described(table, (), self._key),
        )


class Server:
    """Asks over a connection that nobody uses."""

    config = CONFIG

    def ask(self, question: Callable[[object], object], doing: str = "") -> object:
        return question(None)


@pytest.mark.parametrize(
    ("key", "table", "goes_on"), [("a b", "t", True), ("a", "t", False), ("", "t", False), ("a b", "u", False)]
)
def test_a_table_with_another_key_is_begun_again(key: str, table: str, *, goes_on: bool) -> None:
    snapshots = ChangeTableSnapshots(Keyed(*key.split()), CONFIG, cast("Any", Server()))
    place = SnapshotPlace((f"shop.dbo.{table}", "shop.dbo.v"), ("1", None), "s")
    found = snapshots.verified(CONFIG, cast("Any", None), place)
    assert found == (place if goes_on else place.restarted())
    assert snapshots.verified(CONFIG, cast("Any", None), found.restarted()).last is None
