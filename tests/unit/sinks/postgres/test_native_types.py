"""Columns of uuid, json, jsonb and time in tables in PostgreSQL, and what becomes of values that are none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tailrace.model.native import UPPER_UUID
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableSchema
from tests.conftest import Database
from tests.unit.sinks.postgres.test_postgres import BAG, ORDERS, Replica

UUID = "0e1d7a3c-54f2-4c38-9c42-9d3f2b6f0a11"
JSON, JSONB = '{"b": 1,  "a":1.50, "b": 2}', '{"a": 1.50, "b": 2}'


def of(name: str, kind: str = "string", arrow: pa.DataType | None = None, **more: Any) -> Column:
    schema = ConnectSchema(kind, True, name=None if kind == "string" else f"io.debezium.time.{name}")
    return Column(name, schema, arrow or pa.string(), **more)


def named(name: str, semantic: str, **more: Any) -> Column:
    return Column(name, ConnectSchema("string", True, name=f"io.debezium.data.{semantic}", **more), pa.string())


def lists(column: Column, sql: str | None = None) -> Column:
    schema = ConnectSchema("array", True, items=column.schema)
    return Column(f"{column.name}s", schema, pa.list_(column.arrow), sql=sql)


ID, DOCUMENT, CLOCK = named("id_of", "Uuid"), named("document", "Json"), of("MicroTime", "int64", pa.int64())
COLUMNS = (
    *(ID, DOCUMENT, CLOCK, of("binary", sql="jsonb"), of("capital", sql=UPPER_UUID)),
    *(lists(ID), lists(DOCUMENT), lists(CLOCK), lists(of("binary"), "jsonb[]")),
)
VALUES: dict[str, Any] = {
    "id_of": UUID,
    "document": JSON,
    "MicroTime": 86_399_999_999,
    "binary": JSONB,
    "capital": UUID.upper(),
    "id_ofs": [UUID, None],
    "documents": [JSON, "null"],
    "MicroTimes": [0, None],
    "binarys": [JSONB],
}


def with_columns(*columns: Column, table: TableSchema = ORDERS) -> TableSchema:
    identity = table.identity if table.key else (*table.identity, *(column.name for column in columns))
    return replace(table, columns=(*table.columns, *columns), identity=identity)


def types(replica: Replica) -> dict[str, str]:
    rows = replica.query(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute "
        "WHERE attrelid = 'lake.\"public.orders\"'::regclass AND attnum > 0 AND NOT attisdropped"
    )
    return {name: kind for name, kind in rows if name not in ("id", "note")}


def stored(replica: Replica) -> list[dict[str, Any]]:
    return sorted(replica.table.scan().read_all().to_pylist(), key=lambda row: int(row["id"]))


def row(number: int, **values: Any) -> dict[str, Any]:
    return {"id": number, "note": "n", **values}


@pytest.mark.parametrize("table", [ORDERS, BAG], ids=["key", "bag"])
def test_values_have_their_types_and_are_read_as_the_source_has_them(database: Database, table: TableSchema) -> None:
    replica, schema = Replica(database), with_columns(*COLUMNS, table=table)
    nothing: dict[str, Any] = dict.fromkeys(VALUES)
    empty: dict[str, Any] = {**nothing, "MicroTimes": [], "id_ofs": []}
    replica.write(("c", None, row(1, **VALUES)), ("c", None, row(2, **nothing)), schema=schema)
    replica.write(("c", None, row(3, **VALUES)), ("c", None, row(4, **empty)), schema=schema)
    replica.write(("d", row(3, **VALUES), None), ("u", row(2, **nothing), row(2, **VALUES)), schema=schema)
    assert types(replica) == {
        "id_of": "uuid",
        "document": "json",
        "MicroTime": "time without time zone",
        "binary": "jsonb",
        "capital": "uuid",
        "id_ofs": "uuid[]",
        "documents": "json[]",
        "MicroTimes": "time without time zone[]",
        "binarys": "jsonb[]",
    }
    clock = {"MicroTime": "23:59:59.999999", "MicroTimes": ["00:00:00.000000", None]}
    whole = {**VALUES, **clock}
    assert stored(replica) == [row(1, **whole), row(2, **whole), row(4, **empty)]


@pytest.mark.parametrize(
    "value", ['{"a": NaN}', "[" * 100_000 + "]" * 100_000, "no JSON", ""], ids=["number", "deep", "text", "empty"]
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_column_with_a_value_that_is_none_of_its_type_takes_texts(
    database: Database, value: str, is_first: bool
) -> None:
    replica, schema = Replica(database), with_columns(DOCUMENT, ID)
    if not is_first:
        replica.write(("c", None, row(1, document=JSON, id_of=UUID)), schema=schema)
    replica.write(("c", None, row(2, document=value, id_of=UUID)), schema=schema)
    replica.write(("c", None, row(3, document=JSON, id_of=UUID)), schema=schema)
    assert types(replica) == {"document": "text", "id_of": "uuid"}
    assert [each["document"] for each in stored(replica)] == ([] if is_first else [JSON]) + [value, JSON]


def test_an_hour_after_midnight_and_a_column_that_becomes_text(database: Database) -> None:
    replica = Replica(database)
    schema = with_columns(CLOCK, of("capital", sql=UPPER_UUID))
    replica.write(("c", None, row(1, MicroTime=86_400_000_000, capital=UUID.upper())), schema=schema)
    found = row(1, MicroTime="24:00:00.000000", capital=UUID.upper())
    assert stored(replica) == [found]
    changed = with_columns(Column("MicroTime", ConnectSchema("string", True), pa.string()), of("capital"))
    replica.write(("c", None, row(2, MicroTime="noon", capital="none")), schema=changed)
    assert types(replica) == {"MicroTime": "text", "capital": "text"}
    assert stored(replica) == [found, row(2, MicroTime="noon", capital="none")]


@pytest.mark.parametrize("key", [DOCUMENT, of("binary", sql="jsonb"), ID, CLOCK], ids=lambda column: column.name)
def test_a_key_of_such_a_type(database: Database, key: Column) -> None:
    replica = Replica(database)
    schema = replace(with_columns(key), key=(key.name,), identity=(key.name,))
    values: dict[str, list[Any]] = {"document": ['{"a": 1}', '{"a":1}'], "binary": ['{"a": 1}', '{"a": 2}']}
    one, two = values.get(key.name, [UUID, UUID.replace("0", "1")] if key is ID else [1, 2])
    replica.write(*(("c", None, row(at, **{key.name: each})) for at, each in enumerate((one, two))), schema=schema)
    replica.write(("u", None, row(5, **{key.name: one})), ("d", row(1, **{key.name: two}), None), schema=schema)
    assert [each["id"] for each in stored(replica)] == [5]


def test_a_masked_column_is_text(database: Database) -> None:
    replica, masked = Replica(database), named("id_of", "Uuid", parameters=(("masked", "true"),))
    replica.write(("c", None, row(1, id_of="***")), schema=with_columns(masked))
    assert types(replica) == {"id_of": "text"}
