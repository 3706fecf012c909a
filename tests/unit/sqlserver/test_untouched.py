"""Large values that an update did not touch are the placeholder."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from typing import Any

import pytest

from tailrace.config import Config
from tailrace.connectors.change_tables.changes import paired
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.sql_tables.images import block
from tailrace.connectors.sql_tables.tables import Described, SqlColumn
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.config import resolve
from tailrace.connectors.sqlserver.log.reader import InstanceTable, change_table
from tailrace.connectors.sqlserver.types.values import SqlType
from tailrace.events.unavailable import placeholder_text
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE

BASE = {"database.hostname": "h", "database.names": "shop", "topic.prefix": "server1"}
TABLE = TableId("shop", "dbo", "t", DATABASE_SCHEMA_TABLE)
GIVEN = "(gone)"


class OneTable(Catalog):
    """A catalog that asks no server."""

    def __init__(self, config: Config, *, required: bool) -> None:
        super().__init__(None, config)  # type: ignore[arg-type]
        self._required = required

    def at(self, instance: Instance) -> Described:
        columns = (SqlColumn("id", SqlType("int", 4, 10, 0), required=True),)
        large = tuple(SqlColumn(name, SqlType(name, 16, 0, 0), required=self._required) for name in ("image", "text"))
        return Described(TABLE, columns + large, ("id",))

    def has_commands(self, instance: Instance) -> bool:
        return True


def sha256(text: str) -> str:
    return hashlib.sha256(b"salt" + text.encode()).hexdigest()


def table_of(required: bool = False, **properties: str) -> InstanceTable:
    given = {name.replace("__", "."): text for name, text in properties.items()}
    config = resolve({**BASE, "unavailable.value.placeholder": GIVEN, **given})
    instance = Instance("dbo_t", TABLE, 1, 2, start="", changes="[shop].[cdc].[dbo_t_CT]")
    found = change_table(OneTable(config, required=required), config, instance)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("bytes", base64.b64encode(GIVEN.encode()).decode()),
        ("base64", base64.b64encode(GIVEN.encode()).decode()),
        ("hex", GIVEN.encode().hex()),
    ],
)
def test_old_and_new_images_show_the_same_placeholder(mode: str, shown: str) -> None:
    found = table_of(binary__handling__mode=mode)
    _, image, text = found.captured.schema.columns
    assert placeholder_text(image.schema, image.placeholder or GIVEN) == f'"{shown}"'
    assert placeholder_text(text.schema, text.placeholder or GIVEN) == f'"{GIVEN}"'
    old = found.placeholders[1].as_py()
    assert (base64.b64encode(old).decode() if isinstance(old, bytes) else old) == shown


@pytest.mark.parametrize("faults", ["false", "true"])
def test_a_mask_does_not_make_a_value_of_an_untouched_one(faults: str) -> None:
    """The change table has null for it in both images, whatever the column allows."""
    mask = "column.mask.hash.v2.SHA-256.with.salt.salt"
    found = table_of(required=True, compat__faults=faults, **{mask: "dbo.t.text"})
    lsn, when = bytes(10), datetime(2024, 1, 1)
    update = [(lsn, lsn, kind, bytes([0b010]), when, 0, 1, b"x", None) for kind in (3, 4)]
    insert = (lsn, lsn, 2, bytes([0b111]), when, 0, 1, b"x", "")
    rows = found.rows(block([*update, insert]))
    shown = found.incomplete(paired(rows, "t"))
    assert shown["before"].field("text").to_pylist() == [sha256(GIVEN) if faults == "true" else GIVEN, None]
    assert shown["unchanged"].field("text").to_pylist() == [True, False]
    assert rows.images.field("text").to_pylist() == [None, None, sha256("")]


@pytest.mark.parametrize(("faults", "shown"), [("false", GIVEN.encode()), ("true", GIVEN.encode()[:3])])
def test_a_binary_placeholder_is_cut_where_the_reference_cuts_it(faults: str, shown: bytes) -> None:
    cut: dict[str, Any] = {"column.truncate.to.3.chars": "dbo.t.image"}
    found = table_of(compat__faults=faults, **cut)
    image = found.captured.schema.columns[1]
    assert found.placeholders[1].as_py() == shown
    assert image.placeholder is not None
    assert placeholder_text(image.schema, image.placeholder) == f'"{base64.b64encode(shown).decode()}"'


def test_a_placeholder_in_hex_is_read() -> None:
    shown = "**"
    found = table_of(unavailable__value__placeholder="hex:2a2a")
    _, image, text = found.captured.schema.columns
    assert placeholder_text(text.schema, text.placeholder or "") == f'"{shown}"'
    assert placeholder_text(image.schema, image.placeholder or "") == f'"{base64.b64encode(shown.encode()).decode()}"'
    assert [value.as_py() for value in found.placeholders.values()] == [shown.encode(), shown]
