"""SELECTs of the snapshot's own: by whole names, with and without quotes, none of them without its statement."""

from __future__ import annotations

import pytest

from tailrace.config.overrides import overrides
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.sqlserver.config import resolve as resolve_sqlserver
from tailrace.errors import ConfigError

NAME = "snapshot.select.statement.overrides"
BASE = {"topic.prefix": "t", "database.hostname": "h", "database.user": "u", "database.dbname": "d"}


def test_names_with_quotes_are_those_of_the_catalog() -> None:
    listed = 'public.Orders,"My.Schema"."Order.Items",My."a""b"'
    statements = {
        f"{NAME}.public.ORDERS": "1",
        f"{NAME}.My.Schema.Order.Items": "2",
        f'{NAME}.My."a""b"': "3",
        f"{NAME}.public.other": "4",
    }
    config = resolve({**BASE, NAME: listed, **statements})
    assert overrides(config) == {"public.Orders": "1", "My.Schema.Order.Items": "2", 'My.a"b': "3"}


def test_a_listed_table_without_its_statement_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"overrides\.public\.b: A value is required"):
        resolve({**BASE, NAME: "public.a,public.b", f"{NAME}.public.a": "SELECT 1"})


def test_names_of_sql_server_may_be_in_brackets() -> None:
    """SqlServerConnectorConfig.getSnapshotSelectOverridesByTable parses them with SqlServerTableIdPredicates."""
    given = {"topic.prefix": "t", "database.hostname": "h", "database.names": "shop"}
    listed = "[shop].[dbo].[my table],dbo.[a]]b]"
    statements = {f"{NAME}.[shop].[dbo].[my table]": "1", f"{NAME}.dbo.[a]]b]": "2"}
    config = resolve_sqlserver({**given, NAME: listed, **statements})
    assert overrides(config) == {"shop.dbo.my table": "1", "dbo.a]b": "2"}
    with pytest.raises(ConfigError, match=r"dbo\.b: A value is required"):
        resolve_sqlserver({**given, NAME: "[dbo].[b]"})
