"""What a source says of its tables for a catalogue: comments, and the columns that tell rows apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.pipeline.cataloguing import described
from tailrace.pipeline.definition import from_content
from tailrace.sinks.replica.catalogs.entry import TableDescription
from tests.behaviour.streams import properties
from tests.conformance.sqlserver import ENABLE, SqlServerSource
from tests.conftest import Database


def of(connector: str, given: dict[str, str], folder: Path, **more: object) -> dict[str, TableDescription]:
    catalog = {"type": "hive", "uri": "thrift://127.0.0.1:9"}
    replica = {"path": "replica", "names": "catalog", "catalog": catalog, "namespace": "shop", **more}
    source = {"connector": connector, "config": given}
    content = {"source": source, "sink": {"replica": replica}, "checkpoint": "state"}
    definition = from_content(content, base=folder, where="test")
    assert definition.sink.replica is not None
    return described(definition, definition.sink.replica)


def test_postgres_has_comments_of_tables_and_columns(database: Database, tmp_path: Path) -> None:
    database.execute(
        'CREATE TABLE "Order Lines" ("Order" int, line int, note text, PRIMARY KEY (line, "Order"))',
        """COMMENT ON TABLE "Order Lines" IS 'a line''s table'""",
        """COMMENT ON COLUMN "Order Lines"."Order" IS 'Bestellung №'""",
        "CREATE TABLE bag (n int)",
        "CREATE TABLE parts (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
        "COMMENT ON TABLE parts IS 'in parts'",
        "COMMENT ON INDEX parts_pkey IS 'no table'",
    )
    found = of("postgres", {**properties(database), "topic.prefix": "t"}, tmp_path)
    lines = found["public.Order Lines"]
    assert (lines.comment, lines.columns) == ("a line's table", {"order": "Bestellung №"})
    assert sorted(lines.key) == ["line", "order"]
    assert found["public.bag"] == TableDescription()
    for mode, sequence in (("history", "_sequence"), ("changes", "place")):
        metadata = {} if sequence == "_sequence" else {"sequence": sequence}
        kept = of("postgres", {**properties(database), "topic.prefix": "t"}, tmp_path, mode=mode, metadata=metadata)
        assert kept["public.Order Lines"].key == (sequence,), "it has many rows of a key"
        assert kept["public.Order Lines"].comment == "a line's table"


@pytest.mark.long
def test_sql_server_has_descriptions(sqlserver_source: SqlServerSource, tmp_path: Path) -> None:
    level = "@level0type=N'SCHEMA', @level0name=N'dbo', @level1type=N'TABLE', @level1name=N'parts'"
    add = "EXEC sys.sp_addextendedproperty @name=N'MS_Description',"
    sqlserver_source.run(
        "CREATE TABLE parts (id int PRIMARY KEY, n int)",
        f"{add} @value=N'what there is', {level}",
        f"{add} @value=N'how many', {level}, @level2type=N'COLUMN', @level2name=N'n'",
        ENABLE.format("parts"),
    )
    given = {**sqlserver_source.properties("t"), "topic.prefix": "t"}
    found = of("sqlserver", given, tmp_path)
    table = next(each for name, each in found.items() if name.endswith("dbo.parts"))
    assert table == TableDescription("what there is", {"n": "how many"}, ("id",))
