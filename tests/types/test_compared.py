"""A comparison tells any two values of a type apart, or says what of its values is not compared."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tailrace.connectors import registry
from tailrace.connectors.ports import Admin
from tailrace.model.table import TableId
from tailrace.sinks.replica.compare import ComparedColumns
from tailrace.testing.postgres import PostgresServer
from tests.conftest import Database
from tests.types.cases import CASES
from tests.types.roads import fill

# More types, and the values that are hard to hold in a column.
MORE = {
    "int[][]": (
        "[0:1]={1,2}",
        "{{1,2},{3,4}}",
        "{{1,2},{3,5}}",
        "{{1},{2}}",
        "{1,2}",
        "{}",
        "{{{1}},{{2}}}",
        "{NULL,1}",
        "{{NULL,1}}",
    ),
    "text[]": ("{a}", '{"{a}"}', "{{a}}", '{{"a,b"}}', "{{a,b}}", '{{"NULL"}}', "{{NULL}}", '{{"q\\"u"}}'),
    "numeric(12,3)": ("NaN", "1.500", "1.501"),
    "numeric": ("NaN", "Infinity", "-Infinity", "1e130000", "1e-16000", "0", "-1"),
    "numeric(12,3)[]": ("{NaN,1}", "{NULL,1}", "{NaN,NaN}", "{1.5,1}", "{{NaN,1}}"),
    "numeric[]": ("{NaN}", "{Infinity}", "{NULL}", "{{NaN}}", "{{1}}"),
    "money[]": ("{$1.00}", "{$2.00,NULL}"),
    "varbit(1)": ("", "0", "1"),
    "real": ("0", "-0"),
    "double precision": ("0", "-0"),
    "double precision[]": ("{0}", "{-0}"),
    "float8[]": ("{NaN}", "{NULL}", "{Infinity}", "{{1}}", "{{2}}"),
    "date": ("infinity", "-infinity", "4713-01-01 BC", "5874897-12-31", "0001-01-01", "9999-12-31"),
    "timestamp": ("infinity", "-infinity", "4713-01-01 BC", "294276-12-31 23:59:59.999999"),
    "timestamptz": ("infinity", "-infinity", "4713-01-01 BC", "294276-12-31 23:59:59.999999"),
    "date[]": ("{2020-01-01}", "{{2020-01-01}}", "{{2020-01-02}}"),
    "interval": ("0", "178000000 years", "-178000000 years", "1 us", "-1 us", "1 month", "1 day"),
    "interval[]": ("{1 day}", "{2 days}"),
    "timetz": ("10:00+02", "10:00+03", "24:00:00-15:59"),
    "int4multirange": ("{[1,2)}", "{[1,2),[3,4)}", "{}"),
    "complex": ("(1,a)", "(2,a)", '(1,"a,b")', "(,)"),
    "complex[]": ('{"(1,a)"}', '{"(2,a)"}'),
    "tags": ("{1,2}", "{1,3}", "{{1,2}}"),
    "box": ("(1,1),(0,0)", "(2,1),(0,0)"),
    "box[]": ("{(1,1),(0,0)}", "{(1,1),(0,0);(2,2),(0,0)}"),
    "path": ("[(0,0),(1,1)]", "((0,0),(1,1))"),
    "line": ("{1,2,3}", "{1,2,4}"),
    "lseg": ("[(0,0),(1,1)]", "[(0,0),(1,2)]"),
    "polygon": ("((0,0),(1,1))", "((0,0),(1,2))"),
    "tsquery": ("a & b", "a | b"),
    "jsonpath": ("$.a", "$.b"),
    "pg_snapshot": ("1:2:", "1:3:"),
    "oidvector": ("1 2", "1 3"),
    "bytea[]": ('{"\\\\x01"}', '{"\\\\x02"}', '{{"\\\\x01"}}'),
    "bool[]": ("{t}", "{f}", "{{t}}"),
    "jsonb[]": ('{"{\\"a\\": 1}"}', '{"{\\"a\\": 2}"}', '{{"{\\"a\\": 1}"}}'),
    "point[]": ('{"(1,2)"}', '{"(1,3)"}'),
    "mood[]": ("{sad}", '{{"NULL"}}', "{NULL}"),
}
TYPES = (
    "CREATE TYPE complex AS (n int, t text)",
    "CREATE DOMAIN tags AS int[]",
)


# What is equal and printed otherwise: zeros at the end of decimals, and of floats the sign of zero.
NUMBERS = ("numeric", "short", "float")


def same(kind: str, text: str | None) -> str | None:
    """The text of a value as all equal ones have it."""
    if text is None or not kind.startswith(NUMBERS):
        return text
    shown = re.sub(r"(\.\d*?)0+(?![\d])", r"\1", text)
    return re.sub(r"(?<![\d.])-0(?![\d.])", "0", re.sub(r"\.(?![\d])", "", shown))


@pytest.fixture(scope="module")
def filled(postgres18: PostgresServer) -> Iterator[tuple[Database, Admin]]:
    database = Database(postgres18, "compared")
    postgres18.create_database(database.name)
    try:
        fill(database, 40)
        database.execute(*TYPES)
        with database.connect() as connection:
            for number, (kind, values) in enumerate(MORE.items()):
                connection.execute(f"CREATE TABLE filled.more{number} (id serial PRIMARY KEY, c {kind})".encode())
                for value in values:
                    connection.execute(f"INSERT INTO filled.more{number} (c) VALUES (%s::{kind})".encode(), [value])
        package = registry.named("postgres").load()
        given = {**database.properties, "topic.prefix": "t", "slot.name": "compared", **package.replica_properties}
        given["column.out.of.range.text"] = ".*"
        yield database, package.admin(package.resolve(given))
    finally:
        postgres18.drop_database(database.name)


TABLES = [(case.type, case.table) for case in CASES] + [(kind, f"more{place}") for place, kind in enumerate(MORE)]


@pytest.mark.parametrize(("kind", "table"), TABLES, ids=[f"{kind}-{table}" for kind, table in TABLES])
def test_values_of_a_type_are_told_apart(filled: tuple[Database, Admin], kind: str, table: str) -> None:
    database, admin = filled
    said: dict[int, str | None] = {}
    with database.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        said.update(connection.execute(f"SELECT id, c::text FROM filled.{table}".encode()).fetchall())
    texts = defaultdict(set)
    with admin.now() as now:
        id_ = TableId(database.name, "filled", table)
        schema = now.table(id_)
        layout = ComparedColumns.of(schema, None)
        only = ComparedColumns(pa.schema([layout.schema.field("c")]), (), ())
        for rows in now.rows(schema):
            for number, each in zip(rows.column("id").to_pylist(), only.digests(rows.select(["c"])).whole, strict=True):
                texts[int(each)].add(same(kind, said[number]))
    alike = [found for found in texts.values() if len(found) > 1]
    assert not alike or schema.column("c").loses, alike[:5]
