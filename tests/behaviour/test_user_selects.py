"""A SELECT that a snapshot reads in place of a table may leave out columns, as in the reference engine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from tailrace.errors import SourceError
from tests.behaviour.stepping import Record, Stepped
from tests.conformance.db2 import Db2Source
from tests.conformance.sqlserver import ENABLE, SqlServerSource
from tests.conftest import Database
from tests.servers.db2.server import Db2
from tests.servers.sqlserver.server import SqlServer

OPTION = "snapshot.select.statement.overrides"
COLUMNS = (
    "id int NOT NULL PRIMARY KEY, name varchar(20) DEFAULT 'none' NOT NULL, code int NOT NULL, note varchar(20), "
    "amount int"
)
INSERT = "INSERT INTO {} VALUES (1, 'a', 2, 'n', 5)"
WHOLE = {"id": 1, "name": "a", "code": 2, "note": "n", "amount": 5}
# Required columns have their default, else the zero of their type.
WITHOUT = {"id": 1, "name": "none", "code": 0, "note": None, "amount": 5}


@dataclass(frozen=True)
class Table:
    """A table of one row, as pipelines and as SQL calls it."""

    connector: str
    source: Any
    name: str
    sql: str

    def read(self, select: str, **properties: str) -> list[tuple[Record, Record]]:
        """Keys and rows of a first snapshot that reads a SELECT from {}, with their names in small letters."""
        more = {name.replace("__", "."): value for name, value in properties.items()}
        given = {OPTION: self.name, f"{OPTION}.{self.name}": select.format(self.sql), **more}
        stream = Stepped(self.connector, self.source, given)
        found = []
        try:
            for _ in range(2):
                stream.step()
                found += [each for each in stream.records if each["value"]["payload"].get("op") == "r"]
        finally:
            stream.close()
        return [(_lower(each["key"]["payload"]), _lower(each["value"]["payload"]["after"])) for each in found]


def _lower(row: Record) -> Record:
    return {name.lower(): value for name, value in row.items()}


def postgres(database: Database) -> Table:
    database.execute(f"CREATE TABLE t ({COLUMNS})", INSERT.format("t"))

    def properties(_: str) -> dict[str, str]:
        return {**database.properties, "slot.name": f"selects_{uuid4().hex}", "publication.name": "selects"}

    source = SimpleNamespace(properties=properties, settle=lambda: None)
    return Table("postgres", source, "public.t", "public.t")


def sqlserver_table(source: SqlServerSource) -> Table:
    source.run(f"CREATE TABLE t ({COLUMNS})")
    source.run(ENABLE.format("t"))
    source.run(INSERT.format("t"))
    return Table("sqlserver", source, f"{source.name}.dbo.t", "dbo.t")


def db2_table(source: Db2Source) -> Table:
    name = f"{source.schema}.T"
    source.run(f"CREATE TABLE {name} ({COLUMNS})", INSERT.format(name))
    source.server.capture((source.schema, "T"))
    return Table("db2", source, name, name)


@pytest.fixture(params=["postgres", "sqlserver", "db2"])
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    number = abs(hash(request.node.name)) % 10**8
    if request.param == "postgres":
        yield postgres(request.getfixturevalue("database"))
    elif request.param == "sqlserver":
        server: SqlServer = request.getfixturevalue("sqlserver")
        source = SqlServerSource(server, f"b{number}selects")
        yield sqlserver_table(source)
        source.close()
    else:
        db2: Db2 = request.getfixturevalue("db2")
        schema = Db2Source(db2, f"B{number}")
        yield db2_table(schema)
        schema.close()


def test_columns_before_the_last_may_be_left_out(table: Table) -> None:
    assert table.read("SELECT id, amount FROM {}") == [({"id": 1}, WITHOUT)]
    assert table.read("SELECT amount, name FROM {}") == [({"id": 0}, {**WITHOUT, "id": 0, "name": "a"})]


def test_columns_are_found_by_their_names(table: Table) -> None:
    assert table.read("SELECT amount, note, code, name, id AS ID FROM {} ORDER BY id") == [({"id": 1}, WHOLE)]


def test_masks_reach_what_is_left_out(table: Table) -> None:
    masks = {"column__mask__with__3__chars": ".*(?i:name|note)"}
    row = {**WITHOUT, "name": "***", "note": "***"}
    assert table.read("SELECT id, amount FROM {}", **masks) == [({"id": 1}, row)]


def test_the_last_columns_may_not_be_left_out(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    select = "SELECT id, name, code FROM {}"
    with pytest.raises(SourceError, match=r"(?i)leaves out the table's last columns: note, amount") as raised:
        table.read(select)
    assert f"{OPTION}.{table.name}" in str(raised.value.remedy)
    assert table.read(f"{select} WHERE id > 1") == [], "without rows none is too short"
    hidden = {"column__exclude__list": r".*\.(?i:note|amount)"}
    assert table.read(select, **hidden) == [({"id": 1}, {"id": 1, "name": "a", "code": 2})]
    caplog.set_level(logging.WARNING)
    assert table.read(select, event__processing__failure__handling__mode="warn") == []
    assert "snapshot row 0 and all others is left out" in caplog.text


def test_columns_that_the_table_has_not(table: Table) -> None:
    with pytest.raises(SourceError, match=r"(?i)has a column that the table does not have: other") as raised:
        table.read("SELECT id, amount, code AS other FROM {}")
    assert f"take it out of {OPTION}.{table.name}" in str(raised.value.remedy)


def test_the_last_of_several_columns_of_one_name_counts(database: Database) -> None:
    assert postgres(database).read("SELECT *, 'x' AS name FROM {}") == [({"id": 1}, {**WHOLE, "name": "x"})]
