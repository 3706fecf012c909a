"""Values of a real server: the snapshot's COPY and the log give the same values for the same rows."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.connectors.postgres.log import reader, stream
from tailrace.connectors.postgres.position import SOURCE
from tailrace.connectors.postgres.snapshot import transfer
from tailrace.events.record import RecordEncoder
from tests.behaviour.capture import Capture, capturing, lasting, rows
from tests.conftest import Database

Row = dict[str, Any]

# A column of each type and literals for it, one row each; NULL where there are fewer.
TYPES: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    "smallint": ("-32768", "32767"),
    "integer": ("-2147483648", "2147483647"),
    "bigint": ("-9223372036854775808", "9223372036854775807"),
    "oid": ("4294967295",),
    "real": ("3.4028235e38", "'NaN'", "'-Infinity'", "1e-45", "0.1"),
    "double precision": ("1.7976931348623157e308", "'NaN'", "'Infinity'", "5e-324", "0.1"),
    "numeric(10,2)": ("-12345678.9", "0.01", "0"),
    "numeric(60,30)": ("-123456789012345678901234567890.123456789012345678901234567890",),
    "numeric(200,5)": ("1e190", "-0.00001"),
    "numeric": ("10.1111", "10.00", "-1e50", "0.000001", "0"),
    "money": ("'$1,234,567.89'", "'-$0.01'"),
    "text": (
        "''",
        "E'tab\\tnewline\\nback\\\\slash \\\\N \\r\\b\\f\\v'",
        "'\\N'",
        "'grün \U0001f600'",
        "repeat('z', 9000)",
    ),
    "varchar(20)": ("'a b'", "E'\\\\'"),
    "char(5)": ("'ab'", "''"),
    '"char"': ("'x'", "''"),
    "name": ("'n'",),
    "bytea": ("'\\x'", "'\\x00ff5c0a09'", "decode(repeat('ab', 5000), 'hex')"),
    "json": ("""'{"a": [1, "\\n", null]}'""", "'null'"),
    "jsonb": ("""'{"b": 1.50, "a": "\\t"}'""",),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",),
    "mood": ("'sad'", """'it''s, ok'"""),
    "date": ("'2018-06-20'", "'0044-03-15 BC'", "'infinity'", "'-infinity'", "'5874897-12-31'"),
    "time": ("'15:13:16.945104'", "'24:00'", "'00:00:00.1'"),
    "time(3)": ("'15:13:16.945'",),
    "timetz": ("'13:51:30.123789+02'", "'24:00:00+00'", "'00:00:00.5-15:59'"),
    "timestamp": (
        "'2018-06-20 15:13:16.945104'",
        "'0044-03-15 12:00 BC'",
        "'infinity'",
        "'-infinity'",
        "'294246-12-31 23:59:59.999999'",
    ),
    "timestamp(3)": ("'1969-12-31 23:59:59.999'",),
    "timestamptz": (
        "'2018-06-20 15:13:16.9+02'",
        "'0044-03-15 12:00+00 BC'",
        "'infinity'",
        "'21016-11-04 06:51:30+00'",
    ),
    "timestamptz(0)": ("'2018-06-20 15:13:16+02'",),
    "interval": ("'1 year 2 months 3 days 04:05:06.789'", "'-1 day +02:03'", "'0'"),
    "bit(1)": ("B'1'", "B'0'"),
    "bit(9)": ("B'100000001'",),
    "inet": ("'10.0.0.1/8'",),
    "cidr": ("'10.0.0.0/8'",),
    "macaddr": ("'08:00:2b:01:02:03'",),
    "int4range": ("'[1,6)'", "'empty'"),
    "tstzrange": ("'[2020-01-01 00:00+02,)'",),
    "numrange": ("'(1.5,2]'",),
    "tsvector": ("'fat cat'",),
    "amount": ("17.50",),
    "point": ("'(1,2)'",),
    "integer[]": ("'{1,NULL,3}'", "'{}'"),
    "text[]": ("""ARRAY['a,b', NULL, 'NULL', '"', E'\\\\']""",),
}
NEW_TYPES = ("CREATE TYPE mood AS ENUM ('sad', 'it''s, ok')", "CREATE DOMAIN amount AS numeric(6,2)")


@pytest.fixture
def capture(database: Database) -> Iterator[Capture]:
    """A pipeline over a database that is still empty but for one table, so that there is a slot."""
    database.execute("CREATE TABLE first (id int PRIMARY KEY)")
    with capturing(database) as capture:
        assert capture.step() == []
        yield capture


def after(found: list[Row], table: str) -> list[Row]:
    return [row["after"] for row in found if row["table"] == table]


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"decimal__handling__mode": "string", "time__precision__mode": "isostring", "binary__handling__mode": "hex"},
        {"decimal__handling__mode": "double", "time__precision__mode": "connect", "binary__handling__mode": "base64"},
    ],
    ids=["default", "texts", "approximate"],
)
def test_both_roads_agree(any_database: Database, properties: dict[str, str]) -> None:
    database = any_database
    columns = ", ".join(f"c{place} {name}" for place, name in enumerate(TYPES))
    database.execute(*NEW_TYPES, f"CREATE TABLE everything (id int PRIMARY KEY, {columns})")
    most = max(len(literals) for literals in TYPES.values())
    for number in range(most + 1):
        values = [literals[number] if number < len(literals) else "NULL" for literals in TYPES.values()]
        database.execute(f"INSERT INTO everything VALUES ({number}, {', '.join(values)})")
    with capturing(database, **properties) as capture:
        snapshot = after(capture.step(), "public.everything")
        names = ", ".join(f"c{place}" for place in range(len(TYPES)))
        database.execute(f"INSERT INTO everything SELECT id + 1000, {names} FROM everything ORDER BY id")
        streamed = after(capture.step(), "public.everything")
    assert [row["id"] for row in snapshot] == list(range(most + 1))
    moved = [{**row, "id": row["id"] - 1000} for row in streamed]
    # As text, for NaN is not equal to itself.
    assert [repr(row) for row in moved] == [repr(row) for row in snapshot]
    for place, (name, literals) in enumerate(TYPES.items()):
        read = [row[f"c{place}"] for row in snapshot]
        special = sum(literal in ("'NaN'", "'Infinity'") for literal in literals) * name.startswith("numeric")
        assert sum(value is not None for value in read) == len(literals) - special, f"values of {name} are lost"


# Large values

# Values of more than 4 kB on average, and arrays of such.
LONG = {
    "bytea": "decode(repeat('00ff', 5000), 'hex')",
    "text": "repeat('\u00e9\"', 9000)",
    "vector": "array_fill(1.5::real, ARRAY[3000])::vector",
    "json": "to_json(repeat('j', 9000))",
    "jsonb": "to_jsonb(repeat('j', 9000))",
    "varbit": "repeat('10', 9000)::varbit",
    "numeric": "repeat('9', 9000)::numeric",
    "tsvector": "to_tsvector('simple', repeat('t', 2000))",
}
NO_ARRAY = ("varbit",)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("mode", ["bytes", "base64", "base64-url-safe", "hex"])
def test_long_values_and_arrays_of_such(
    database: Database, mode: str, binary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if binary:
        monkeypatch.setattr(transfer, "BINARY_BYTES", 1)
    columns = {f"one_{name}": (name, value) for name, value in LONG.items()}
    columns |= {
        f"many_{name}": (f"{name}[]", f"ARRAY[{value}, NULL, {value}]")
        for name, value in LONG.items()
        if name not in NO_ARRAY
    }
    kinds = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
    names, values = ", ".join(columns), ", ".join(value for _, value in columns.values())
    database.execute(
        "CREATE EXTENSION vector",
        f"CREATE TABLE long (id int PRIMARY KEY, {kinds})",
        f"INSERT INTO long SELECT n, {values} FROM generate_series(1, 3) n",
        "INSERT INTO long VALUES (4)",
    )
    with capturing(database, binary__handling__mode=mode) as capture:
        snapshot = events(capture)
        database.execute(f"INSERT INTO long SELECT id + 10, {names} FROM long ORDER BY id")
        streamed = events(capture)
    assert [row["id"] for row in snapshot] == [1, 2, 3, 4]
    assert [{**row, "id": row["id"] - 10} for row in streamed] == snapshot
    raw = {"bytes": "AP8A", "base64": "AP8A", "base64-url-safe": "AP8A", "hex": "00ff00"}[mode]
    for row in snapshot[:3]:
        assert row["many_bytea"] == [row["one_bytea"], None, row["one_bytea"]]
        assert row["one_bytea"].startswith(raw)
        assert row["many_text"] == ['\u00e9"' * 9000, None, '\u00e9"' * 9000]
        assert set(columns) <= {name for name, value in row.items() if value is not None}
    assert {value for name, value in snapshot[3].items() if name != "id"} == {None}


def events(capture: Capture) -> list[Row]:
    """The new images of the next step's records, as they are in JSON."""
    encoder = RecordEncoder(capture.config, SOURCE, "run")
    found = [chunk for split in capture.plan() for chunk in capture.reader.read(split)]
    records = [
        row for chunk in found for batch in chunk.batches for part in encoder.encode(batch) for row in part.to_pylist()
    ]
    return [json.loads(record["value"])["payload"]["after"] for record in records]


def test_large_values_the_log_does_not_repeat(database: Database, capture: Capture) -> None:
    database.execute(
        "CREATE TABLE big (id int PRIMARY KEY, body text, note text)",
        "ALTER TABLE big ALTER body SET STORAGE EXTERNAL",
        "INSERT INTO big VALUES (1, repeat('x', 9000), 'a')",
        "UPDATE big SET note = 'b'",
        "UPDATE big SET body = 'short'",
        "UPDATE big SET body = repeat('y', 9000)",
        "ALTER TABLE big REPLICA IDENTITY FULL",
        "UPDATE big SET note = 'c'",
        "DELETE FROM big",
    )
    created, untouched, shortened, lengthened, full, deleted = capture.step()
    assert created["after"]["body"] == "x" * 9000
    assert untouched["after"] == {"id": 1, "body": None, "note": "b"}
    assert untouched["unchanged"]["body"] is True
    assert shortened["after"]["body"] == "short"
    assert not (shortened["unchanged"] or {}).get("body")
    assert lengthened["after"]["body"] == "y" * 9000
    assert full["after"] == {"id": 1, "body": "y" * 9000, "note": "c"}
    assert full["before"] == {"id": 1, "body": "y" * 9000, "note": "b"}
    assert not (full.get("unchanged") or {}).get("body")
    assert deleted["before"] == full["after"]


def test_a_large_key_is_known_although_the_log_does_not_repeat_it(database: Database, capture: Capture) -> None:
    code = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=2500))
    database.execute(
        "CREATE TABLE coded (code text PRIMARY KEY, note text)",
        "ALTER TABLE coded ALTER code SET STORAGE EXTERNAL",
        f"INSERT INTO coded VALUES ('{code}', 'a')",
        "UPDATE coded SET note = 'b'",
    )
    _, changed = capture.step()
    assert changed["after"] == {"code": code, "note": "b"}
    assert not (changed.get("unchanged") or {}).get("code")


# Tables that change, come and go


def test_each_row_has_the_schema_of_its_moment(database: Database, capture: Capture) -> None:
    database.execute(
        "CREATE TABLE shifting (id int PRIMARY KEY, a int)",
        "INSERT INTO shifting VALUES (1, 10)",
        "ALTER TABLE shifting ADD b text DEFAULT 'x'",
        "INSERT INTO shifting VALUES (2, 20)",
        "ALTER TABLE shifting RENAME a TO c",
        "INSERT INTO shifting VALUES (3, 30)",
        "ALTER TABLE shifting ALTER c TYPE text",
        "INSERT INTO shifting VALUES (4, 'forty')",
        "ALTER TABLE shifting DROP b",
        "INSERT INTO shifting VALUES (5, 'fifty')",
    )
    database.execute(
        "BEGIN; INSERT INTO shifting VALUES (6, 'six'); ALTER TABLE shifting ADD d int;"
        "INSERT INTO shifting VALUES (7, 'seven', 7); COMMIT"
    )
    found = capture.step()
    assert [row["after"] for row in found] == [
        {"id": 1, "a": 10},
        {"id": 2, "a": 20, "b": "x"},
        {"id": 3, "c": 30, "b": "x"},
        {"id": 4, "c": "forty", "b": "x"},
        {"id": 5, "c": "fifty"},
        {"id": 6, "c": "six"},
        {"id": 7, "c": "seven", "d": 7},
    ]
    assert [row["schema"].column("c").schema.type for row in found[2:4]] == ["int32", "string"]
    assert all(row["schema"].key == ("id",) for row in found)


def test_a_change_of_schema_between_two_steps(database: Database, capture: Capture) -> None:
    database.execute("CREATE TABLE shifting (id int PRIMARY KEY)", "INSERT INTO shifting VALUES (1)")
    assert after(capture.step(), "public.shifting") == [{"id": 1}]
    database.execute("ALTER TABLE shifting ADD a int", "INSERT INTO shifting VALUES (2, 2)")
    assert after(capture.step(), "public.shifting") == [{"id": 2, "a": 2}]


def test_one_name_in_two_schemas(database: Database, capture: Capture) -> None:
    database.execute(
        "CREATE SCHEMA other",
        "CREATE TABLE things (id int PRIMARY KEY, a int)",
        "CREATE TABLE other.things (id text PRIMARY KEY)",
        "INSERT INTO things VALUES (1, 2)",
        "INSERT INTO other.things VALUES ('x')",
    )
    found = capture.step()
    assert after(found, "public.things") == [{"id": 1, "a": 2}]
    assert after(found, "other.things") == [{"id": "x"}]


def test_rows_of_a_table_that_was_dropped_before_they_were_read(database: Database, capture: Capture) -> None:
    database.execute(
        *NEW_TYPES[:1],
        "CREATE TABLE gone (id int PRIMARY KEY, feeling mood)",
        "INSERT INTO gone VALUES (1, 'sad')",
        "DELETE FROM gone",
        "DROP TABLE gone",
        "DROP TYPE mood",
    )
    created, deleted = capture.step()
    assert created["after"] == {"id": 1, "feeling": "sad"}
    assert created["schema"].key == ("id",)
    assert deleted["before"] == {"id": 1, "feeling": None}


def test_empty_tables_have_no_rows(database: Database) -> None:
    database.execute(*(f"CREATE TABLE t{number} (id int PRIMARY KEY)" for number in range(4)))
    database.execute("INSERT INTO t1 VALUES (1), (2)", "INSERT INTO t2 VALUES (3)")
    with capturing(database) as capture:
        found = capture.step()
    assert [row["after"]["id"] for row in found] == [1, 2, 3]
    assert [row["snapshot"] for row in found] == ["first_in_data_collection", "last_in_data_collection", "last"]


def test_as_many_columns_as_a_table_may_have(database: Database, capture: Capture) -> None:
    columns = ", ".join(f"c{number} bool" for number in range(1599))
    values = ", ".join("true" if number % 3 else "NULL" for number in range(1599))
    database.execute(f"CREATE TABLE wide (id int PRIMARY KEY, {columns})", f"INSERT INTO wide VALUES (1, {values})")
    (row,) = capture.step()
    expected = {"id": 1, **{f"c{number}": True if number % 3 else None for number in range(1599)}}
    assert row["after"] == expected
    with capturing(database, slot__name=f"second_{database.name}") as second:
        assert after(second.step(), "public.wide") == [expected]


def test_a_table_without_columns_stops_nothing(database: Database, capture: Capture) -> None:
    database.execute("CREATE TABLE bare ()", "INSERT INTO bare DEFAULT VALUES", "INSERT INTO first VALUES (1)")
    assert after(capture.step(), "public.first") == [{"id": 1}]
    with capturing(database, slot__name=f"second_{database.name}") as second:
        assert after(second.step(), "public.first") == [{"id": 1}]


def test_a_large_transaction_is_the_same_in_many_chunks(
    database: Database, capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute(
        "CREATE TABLE many (id int PRIMARY KEY, note text)",
        "CREATE TABLE others (id int PRIMARY KEY)",
        """DO $$ BEGIN
        FOR n IN 1..5000 LOOP
            INSERT INTO many VALUES (n, repeat('n', n % 50));
            IF n % 7 = 0 THEN INSERT INTO others VALUES (n); END IF;
            IF n % 5 = 0 THEN UPDATE many SET note = 'changed' WHERE id = n; END IF;
            IF n % 11 = 0 THEN DELETE FROM many WHERE id = n - 1; END IF;
        END LOOP; TRUNCATE others; END $$""",
    )
    (split,) = capture.plan()
    (whole,) = list(capture.reader.read(split))
    monkeypatch.setattr(stream, "CHUNK_BYTES", 4_000)
    monkeypatch.setattr(reader, "_BLOCK_BYTES", 4_000)
    monkeypatch.setattr(reader, "_MOST_BYTES", 16_000)
    parts = list(capture.reader.read(split))
    assert len(parts) > 10
    together, apart = rows([whole]), rows(parts)
    assert lasting(apart) == lasting(together)
    orders = [row["order"] for row in apart]
    assert orders == sorted(set(orders))
    assert len({row["source"]["txId"] for row in apart}) == len({row["ts_us"] for row in apart}) == 1


def test_defaults_of_domains_are_not_shown(database: Database) -> None:
    database.execute(
        "CREATE DOMAIN amount AS integer DEFAULT 7",
        "CREATE TABLE t (id int PRIMARY KEY, own int DEFAULT 5, a amount DEFAULT 5, b amount)",
        "INSERT INTO t VALUES (1, NULL, NULL, NULL)",
    )
    with capturing(database) as capture:
        encoder = RecordEncoder(capture.config, SOURCE, "run")
        batches = [batch for split in capture.plan() for chunk in capture.reader.read(split) for batch in chunk.batches]
        (row,) = [row for batch in batches for rows in encoder.encode(batch) for row in rows.to_pylist()]
    value = json.loads(row["value"])
    fields = next(field for field in value["schema"]["fields"] if field["field"] == "after")["fields"]
    assert {field["field"]: field.get("default") for field in fields} == {
        "id": None, "own": 5, "a": None, "b": None
    }  # fmt: skip
    assert value["payload"]["after"] == {"id": 1, "own": 5, "a": None, "b": None}


def test_geometric_types_are_structs_with_the_newer_version(database: Database) -> None:
    box, line = "'(1,1),(0,0)'", "'{1,-1,0.5}'"
    shapes = (
        f"{box}, '[(0,0),(1,0)]', '((0,0),(1,0),(0,1))', '((0,0),(1,0),(0,1))', '<(0,0),2>', {line}, '{{(1,1),(0,0)}}'"
    )
    database.execute(
        "CREATE TABLE shapes (id int PRIMARY KEY, b box, s lseg, p path, a polygon, c circle, l line, bs box[])",
        f"INSERT INTO shapes VALUES (1, {shapes})",
    )
    with capturing(database, compat__version="3.7") as capture:
        (read,) = capture.step()
        database.execute(f"INSERT INTO shapes VALUES (2, {shapes})")
        (created,) = capture.step()
    assert {**created["after"], "id": 1} == read["after"]
    shown = read["after"]
    kinds = [dict(shown[name]["extensions"]) for name in ("b", "s", "p", "a")]
    assert kinds == [{"type": "box"}, {"type": "lseg"}, {"type": "path", "closed": "true"}, {"type": "polygon"}]
    # The head, and the number of points: five around a box, four in a triangle's ring.
    assert [len(shown[name]["wkb"]) for name in ("b", "s", "p", "a")] == [13 + 80, 9 + 32, 9 + 48, 13 + 64]
    assert (shown["c"]["radius"], shown["l"]) == (2.0, {"a": 1.0, "b": -1.0, "c": 0.5})
    assert shown["bs"] == [shown["b"]]
