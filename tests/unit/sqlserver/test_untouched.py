"""Large values that an update did not touch: the placeholder that stands for them."""

from __future__ import annotations

import base64

import pytest

from tailrace.connectors.change_tables.dialect import Described, Instance, SourceColumn
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.config import resolve
from tailrace.connectors.sqlserver.log.reader import change_table
from tailrace.connectors.sqlserver.types.values import SqlType
from tailrace.events.unavailable import placeholder_text
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE

BASE = {"database.hostname": "h", "database.names": "shop", "topic.prefix": "server1"}
TABLE = TableId("shop", "dbo", "t", DATABASE_SCHEMA_TABLE)
GIVEN = "(gone)"


class OneTable(Catalog):
    """A catalog that asks no server."""

    def at(self, instance: Instance) -> Described:
        columns = (SourceColumn("id", SqlType("int", 4, 10, 0), required=True),)
        large = tuple(SourceColumn(name, SqlType(name, 16, 0, 0), required=False) for name in ("image", "text"))
        return Described(TABLE, columns + large, ("id",))

    def has_commands(self, instance: Instance) -> bool:
        return True


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("bytes", base64.b64encode(GIVEN.encode()).decode()),
        ("base64", base64.b64encode(GIVEN.encode()).decode()),
        ("hex", GIVEN.encode().hex()),
    ],
)
def test_old_and_new_images_show_the_same_placeholder(mode: str, shown: str) -> None:
    config = resolve({**BASE, "binary.handling.mode": mode, "unavailable.value.placeholder": GIVEN})
    instance = Instance("dbo_t", TABLE, 1, 2, "", "[shop].[cdc].[dbo_t_CT]")
    found = change_table(OneTable(None, config), config, instance)  # type: ignore[arg-type]
    assert found is not None
    _, image, text = found.captured.schema.columns
    assert placeholder_text(image.schema, image.placeholder or GIVEN) == f'"{shown}"'
    assert placeholder_text(text.schema, text.placeholder or GIVEN) == f'"{GIVEN}"'
    old = found.placeholders[1].as_py()
    assert (base64.b64encode(old).decode() if isinstance(old, bytes) else old) == shown
