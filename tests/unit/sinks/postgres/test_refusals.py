"""What a database refuses, of a replica's rows and tables: one sentence with the remedy, and nothing is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tailrace.errors import SinkAwayError, TableError
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column
from tailrace.sinks.replica.roots import database_root
from tailrace.sinks.replica.table import LostRaceError, Mark
from tests.conftest import Database
from tests.unit.sinks.postgres.test_postgres import ORDERS, Replica, order


@pytest.mark.long
def test_a_character_that_the_encoding_lacks(database: Database) -> None:
    name = f"{database.name}_latin"
    database.execute(f"CREATE DATABASE {name} ENCODING LATIN1 TEMPLATE template0 LOCALE 'C'")
    replica = Replica(database)
    replica.options = {"url": database.server.url(name)}
    replica.root = database_root(replica.options["url"], "lake")
    replica.write(("c", None, order(1, "é")))
    with pytest.raises(TableError, match="LATIN1") as error:
        replica.write(("c", None, order(2, "€")))
    assert "encoding is UTF8" in str(error.value)
    assert replica.table.scan().read_all().to_pylist() == [order(1, "é")]


def test_a_key_that_no_index_takes(database: Database) -> None:
    replica, schema = Replica(database), replace(ORDERS, key=("note",), identity=("note",))
    long = "".join(chr(0x4E00 + number % 20_000) for number in range(0, 9000, 7))  # does not compress
    replica.write(("c", None, order(1, "short")), schema=schema)
    with pytest.raises(TableError, match=r"index row size .* exceeds") as error:
        replica.write(("c", None, order(2, long)), ("u", None, order(3, "short")), schema=schema)
    assert "message.key.columns" in str(error.value)


@pytest.mark.long
def test_a_constraint_of_somebody_else(database: Database) -> None:
    replica = Replica(database)
    replica.write(("c", None, order(1)))
    database.execute('ALTER TABLE lake."public.orders" ADD CHECK (id < 5)')
    with pytest.raises(TableError, match="violates check constraint") as error:
        replica.write(("c", None, order(6)))
    assert "drop the constraint" in str(error.value)


@pytest.mark.long
def test_a_standby_is_waited_for(database: Database) -> None:
    database.execute(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
    with pytest.raises(SinkAwayError, match="read-only"):
        Replica(database).write(("c", None, order(1)))


@pytest.mark.long
@pytest.mark.parametrize("count", [1500, 1700])
def test_a_table_of_very_many_columns(database: Database, count: int) -> None:
    replica = Replica(database)
    more = tuple(Column(f"c{number}", ConnectSchema("int32", True), pa.int32()) for number in range(count))
    schema = replace(ORDERS, columns=(*ORDERS.columns, *more))
    row: dict[str, Any] = {**order(1), **{column.name: 1 for column in more}}
    if count > 1600:
        with pytest.raises(TableError, match="at most 1600 columns") as error:
            replica.write(("c", None, row), schema=schema)
        assert "column.exclude.list" in str(error.value)
        return
    for _ in range(2):
        replica.write(("u", None, row), schema=schema)
    assert replica.table.scan().read_all().to_pylist() == [row]


def test_a_table_that_is_altered_while_it_is_read_may_be_read_again(database: Database) -> None:
    replica = Replica(database)
    replica.write(("c", None, order(1)))
    before = replica.table
    replica.alter(("note", "remark"))
    with pytest.raises(LostRaceError, match="altered meanwhile"):
        before.scan().read_all()


@pytest.mark.long
def test_two_replicas_in_one_schema_do_not_mix(database: Database) -> None:
    replica = Replica(database)
    replica.write(("c", None, order(1)))
    other = replica.table
    other.append(pa.table({"id": pa.array([2], pa.int32()), "note": ["theirs"]}), Mark("tailrace/other", 1, "{}"))
    assert replica.table.written("tailrace/other") == 1
    assert replica.table.written("tailrace/query") == replica.number << 16
