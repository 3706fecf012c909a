"""What keeps SQL of a signal from writing holds by itself: each layer is tried without those before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

import pytest

from tailrace.connectors.sqlserver.client import connect
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tailrace.errors import SourceError
from tests.conformance import hostile_sql
from tests.conformance.sqlserver import SqlServerSource, SqlServerSubject
from tests.conformance.stepped import Pipeline, pipeline, row
from tests.conformance.subject import Insert
from tests.servers.sqlserver.server import SqlServer

KINDS = ("incremental", "blocking")
# Batches that the server takes as they are: nothing but a layer keeps them from their end.
ESCAPES = {
    "incremental": "1=1); {}; SELECT 1 WHERE (1=1",
    "blocking": "SELECT * FROM {} x) AS y; {}; SELECT * FROM (SELECT * FROM {} z",
}


class Trusting:
    """A grammar that takes everything as it is."""

    def condition(self, text: str) -> str:
        return text

    query = condition


@pytest.fixture
def source(sqlserver: SqlServer) -> Iterator[SqlServerSource]:
    source = SqlServerSource(sqlserver, f"c{uuid4().hex[:8]}")
    source.create("victim")
    source.commit(*(Insert("victim", row(key)) for key in (1, 2, 3)))
    yield source
    source.close()


@pytest.fixture
def line(source: SqlServerSource) -> Iterator[Pipeline]:
    with pipeline(SqlServerSubject(), source) as line:
        yield line


def text_of(kind: str, table: str, statement: str) -> str:
    return ESCAPES[kind].format(*((statement,) if kind == "incremental" else (table, statement, table)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_server_parses_what_would_leave_its_place(
    source: SqlServerSource,
    line: Pipeline,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    monkeypatch.setattr(type(DIALECT), "grammar", Trusting())
    delete = "DELETE FROM [victim]"
    texts = hostile_sql.conditions(delete) if kind == "incremental" else hostile_sql.selects(line.table, delete)
    for number, text in enumerate([text_of(kind, line.table, delete), *texts]):
        line.ask(str(number), text, kind)
    line.steps()
    assert len(source.rows("victim")) == 3
    assert "Incorrect syntax" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_what_would_write_is_rolled_back(
    source: SqlServerSource, line: Pipeline, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(type(DIALECT), "grammar", Trusting())
    monkeypatch.setattr(type(DIALECT), "parse", lambda *_: None)
    line.ask("0", text_of(kind, line.table, "DELETE FROM [victim]"), kind)
    line.steps()
    assert len(source.rows("victim")) == 3


def test_a_text_that_ends_its_transaction_is_told(source: SqlServerSource) -> None:
    connection: Any = connect(_config(source))
    with pytest.raises(SourceError, match="has ended its transaction"), DIALECT.undone(connection):
        connection.run("COMMIT")
    with DIALECT.undone(connection):
        connection.run("DELETE FROM victim")
    with suppress(ValueError), DIALECT.undone(connection):
        connection.run("DELETE FROM victim")
        raise ValueError
    connection.close()
    assert len(source.rows("victim")) == 3


def _config(source: SqlServerSource) -> Any:
    package = SqlServerSubject().package
    return package.resolve({**source.properties("p"), "topic.prefix": "t"})


@pytest.mark.skipif(not find_spec("ibm_db"), reason="IBM has no driver for this processor")
def test_db2_parses_a_query_before_it_is_run(request: pytest.FixtureRequest) -> None:
    from tailrace.connectors.db2.cli.library import Db2Error
    from tailrace.connectors.db2.client import connect as connected
    from tests.conformance.db2 import Db2Source, Db2Subject

    source = Db2Source(request.getfixturevalue("db2"), f"C{uuid4().hex[:8].upper()}")
    source.create("victim")
    source.commit(Insert("victim", row(1)))
    connection = connected(Db2Subject().package.resolve({**source.properties("p"), "topic.prefix": "t"}))
    connection.prepare(f"SELECT 1 FROM {source.name('victim')}")
    connection.prepare(f"DELETE FROM {source.name('victim')}")
    for wrong in ("SELECT nowhere FROM SYSIBM.SYSDUMMY1", "SELECT 1 FROM SYSIBM.SYSDUMMY1 WHERE (1=1)) OR (1=1"):
        with pytest.raises(Db2Error):
            connection.prepare(wrong)
    with connection.transaction():
        connection.run(f"DELETE FROM {source.name('victim')}")
    connection.close()
    assert len(source.rows("victim")) == 1
    source.close()
