"""A replica is compared with its source while both change: only damaged rows are reported, and they are repaired."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date, datetime, timezone
from decimal import Decimal
from operator import itemgetter
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from tailrace.pipeline.comparing import ComparisonProgress, compare_all
from tailrace.pipeline.reconcile import Reconciler, ReconcileReport
from tailrace.pipeline.repair import repair
from tailrace.pipeline.table_states import FILE
from tailrace.sinks.replica.states import TableState, to_text
from tailrace.sinks.replica.target import read_table
from tests.behaviour.following import Following, following
from tests.conftest import Database

ITEMS = (
    "CREATE TABLE items (id int PRIMARY KEY, name text, at timestamptz, price numeric(10,2))",
    "INSERT INTO items SELECT n, 'item ' || n, now() + n * interval '1 s', n / 7.0 FROM generate_series(1, 2000) n",
)


def compared(pipeline: Following, name: str, timeout: float = 120, *, mend: bool = False) -> ReconcileReport:
    """The report on one table."""
    reconciler = Reconciler(pipeline.definition, timeout)
    (table,) = reconciler.tables([name])
    found = reconciler.compare(table)
    return (repair(reconciler, found) if mend else found).report


def lake(pipeline: Following, table: str) -> DeltaTable:
    """A table of the replica."""
    return DeltaTable(str(pipeline.folder / "lake" / table))


def test_what_is_damaged_is_found_and_repaired(database: Database, tmp_path: Path) -> None:
    database.execute(*ITEMS)
    with following(database, tmp_path) as pipeline:
        first = compared(pipeline, "public.items")
        assert (first.outcome, first.source_rows, first.target_rows, first.ranges_different) == ("equal", 2000, 2000, 0)
        table = lake(pipeline, "public.items")
        table.delete("id IN (5, 6)")
        table.update(updates={"name": "'damaged'"}, predicate="id = 7")
        table.update(updates={"id": "99999"}, predicate="id = 8")
        found = compared(pipeline, "public.items")
        assert found.outcome == "different"
        assert (found.missing, found.surplus, found.different, found.undecided) == (3, 1, 1, 0)
        assert found.keys["surplus"] == [{"id": 99999}]
        assert sorted(int(str(key["id"])) for key in found.keys["missing"]) == [5, 6, 8]
        mended = compared(pipeline, "public.items", mend=True)
        assert (mended.outcome, mended.repaired) == ("equal", 5)
        assert compared(pipeline, "public.items").outcome == "equal"


@pytest.mark.long  # the next test has a replica that lags, and damage
def test_nothing_is_reported_of_a_replica_that_only_lags(database: Database, tmp_path: Path) -> None:
    database.execute(*ITEMS, "ALTER TABLE items ADD toast text", "UPDATE items SET toast = repeat(md5(id::text), 200)")
    with following(database, tmp_path) as pipeline, traffic(database, 40), traffic(database, 2000):
        for _ in range(4):
            found = compared(pipeline, "public.items")
            assert (found.damaged, found.reason) == (0, None), found
            assert found.outcome in ("equal", "undecided")
            assert found.source_rows is not None
            assert found.source_rows > 1500
    with following(database, tmp_path) as pipeline:
        assert compared(pipeline, "public.items").outcome == "equal"


def test_damage_is_found_and_repaired_under_traffic_on_those_very_keys(database: Database, tmp_path: Path) -> None:
    database.execute(*ITEMS)
    with following(database, tmp_path) as pipeline:
        compared(pipeline, "public.items")
        with traffic(database, 40), traffic(database, 400):
            damage(pipeline, "public.items", lambda table: table.delete("id % 10 = 5"))
            damage(pipeline, "public.items", lambda table: table.update({"name": "'damaged'"}, predicate="id % 10 = 3"))
            extra = pa.table({"id": pa.array([3_000_000, 3_000_001], pa.int32()), "name": ["surplus", None]})
            damage(
                pipeline,
                "public.items",
                lambda table: write_deltalake(table, extra, mode="append", schema_mode="merge"),
            )
            found = compared(pipeline, "public.items")
            assert found.outcome == "different"
            # Of those that the traffic goes on with some have healed.
            assert 150 <= found.missing <= 200
            assert 150 <= found.different <= 200
            assert found.surplus == 2
            mended = compared(pipeline, "public.items", mend=True)
            assert mended.damaged == 0, mended
            assert mended.repaired >= 300
            assert compared(pipeline, "public.items").damaged == 0
        assert compared(pipeline, "public.items").outcome == "equal"


def change_one(connection: psycopg.Connection, id_: int, chance: random.Random) -> None:
    """Some transactions about one item."""
    connection.execute("UPDATE items SET name = name || '.', price = %s WHERE id = %s", [id_, id_])
    if chance.random() < 0.2:
        with connection.transaction():
            connection.execute("DELETE FROM items WHERE id = %s", [id_])
            if chance.random() < 0.9:
                connection.execute("INSERT INTO items (id, name) VALUES (%s, 'again')", [id_])
    if chance.random() < 0.1:
        other = id_ + 1_000_000
        connection.execute("DELETE FROM items WHERE id = %s", [other])
        connection.execute("UPDATE items SET id = %s WHERE id = %s", [other, id_])
        connection.execute("UPDATE items SET id = %s WHERE id = %s", [id_, other])


@contextmanager
def traffic(database: Database, most: int) -> Iterator[None]:
    """Changes of every kind to the items up to a number, as fast as one connection makes them."""
    ended = threading.Event()
    chance = random.Random(most)

    def change() -> None:
        with database.connect() as connection:
            while not ended.is_set():
                # Somebody else may have put a row of that key there.
                with suppress(psycopg.errors.UniqueViolation):
                    change_one(connection, chance.randrange(1, most + 1), chance)
                time.sleep(0.002)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def damage(pipeline: Following, table: str, change: Callable[[DeltaTable], object]) -> None:
    """Change a table of the replica behind the pipeline's back, between two of its commits."""
    is_done = False
    while not is_done:
        with suppress(CommitFailedError):
            change(lake(pipeline, table))
            is_done = True


KEYS = {
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "timestamptz": ("'2024-02-29 12:34:56.789012+02'", datetime(1999, 1, 1, 1, 2, 3, 4, timezone.utc)),
    "timestamp": ("'2024-02-29 12:34:56.789012'", datetime(1999, 1, 1, 1, 2, 3, 4)),
    "date": ("'2024-02-29'", date(1999, 1, 1)),
    "numeric(20,4)": ("1.25", Decimal("-1234567890.0001")),
    "numeric": ("1.25", None),
    "bytea": ("'\\x00ff'", b"\x01\\\x02"),
    "text": ("'it''s \\ {\"x\"}'", "{},\"'\\ \u00e4\n"),
    "varchar(5)": ("'abc'", "abcde"),
    "char(5)": ("'abc'", "xyz  "),
    "boolean": ("true", False),
    "float8": ("1.1", 1e300),
    "bigint": ("9007199254740993", -1),
    "color": ("'red'", "blue"),
}


@pytest.mark.long
def test_keys_of_many_types_are_queried_and_repaired(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TYPE color AS ENUM ('red', 'blue')")
    tables = {kind: f"k{place}" for place, kind in enumerate(KEYS)}
    for kind, (value, _) in KEYS.items():
        database.execute(
            f"CREATE TABLE {tables[kind]} (a {kind}, b int, c text, PRIMARY KEY (a, b))",
            f"INSERT INTO {tables[kind]} SELECT {value}, n, 'c' || n FROM generate_series(1, 5) n",
        )
    with following(database, tmp_path, decimal__handling__mode="precise") as pipeline:
        for kind, (_, surplus) in KEYS.items():
            name = f"public.{tables[kind]}"
            assert compared(pipeline, name).outcome == "equal", kind
            table = lake(pipeline, name)
            if surplus is not None:
                schema = pa.schema(table.schema().to_arrow())
                extra = pa.table({"a": pa.array([surplus], schema.field("a").type), "b": pa.array([77], pa.int32())})
                write_deltalake(table, extra, mode="append", schema_mode="merge")
            lake(pipeline, name).delete("b = 2")
            lake(pipeline, name).update({"c": "'other'"}, predicate="b = 3")
            mended = compared(pipeline, name, mend=True)
            assert (mended.outcome, mended.repaired) == ("equal", 2 + (surplus is not None)), (kind, mended)


def test_a_table_of_all_types_is_equal(database: Database, tmp_path: Path) -> None:
    database.execute(
        "CREATE TYPE color AS ENUM ('red', 'blue')",
        """CREATE TABLE t (id int PRIMARY KEY, a smallint, b bigint, c numeric(12,3), d numeric, e real, f float8,
        g bool, h text,
        i varchar(9), j char(5), k bytea, l date, m time, n timetz, o timestamp(3), p timestamptz, q interval,
        r uuid, s json, t jsonb, u inet, v int[], w text[], x tstzrange, y bit(3), z color, aa point, ab money,
        ac numeric[], ad timestamptz[], ae numeric(60,5))""",
        "INSERT INTO t (id) VALUES (1)",
        """INSERT INTO t SELECT 2, 1, 2, 1.5, '1e20', 'NaN', '-0', true, '', 'v', 'c', '\\x00', '2024-01-01', '24:00',
        '10:00+02', '2024-01-01 10:00:00.123', now(), '1 day 2 seconds', gen_random_uuid(), '{ "a": 1}', '{"b": 2}',
        '10.0.0.1/8', '{1,NULL}', '{"",NULL}', '[2024-01-01,2024-02-01)', '101', 'blue', '(1,2)', 12.5,
        '{1.1,NULL}', ARRAY[now()], 12345678901234567890123456789012345678901234567890.12345""",
    )
    with following(database, tmp_path) as pipeline:
        compared(pipeline, "public.t")
        database.execute("INSERT INTO t SELECT 3, a, b, c, d, e, f FROM t WHERE id = 2", "UPDATE t SET h = 'x'")
        found = compared(pipeline, "public.t")
        assert (found.outcome, found.ranges_different, found.source_rows) == ("equal in part", 0, 3), found
        assert found.not_compared == {
            "n": "compared without its zone",
            "q": "compared without its months and days",
        }


def test_values_that_no_column_of_their_type_holds(database: Database, tmp_path: Path) -> None:
    """They are kept as text, are seen by a comparison, and those that come later make the column one of texts."""
    database.execute(
        "CREATE TABLE early (id int PRIMARY KEY, v int[][], n numeric(12,3))",
        "INSERT INTO early VALUES (1, '{{1,2},{3,4}}', 1.5), (2, '{5}', 'NaN'), (3, NULL, NULL)",
        "CREATE TABLE late (id int PRIMARY KEY, v text[], n numeric(12,3), w numeric)",
        """INSERT INTO late VALUES (1, '{a,"b c"}', 1.5, 'NaN'), (2, '{}', 2, 1e20)""",
    )
    with following(database, tmp_path) as pipeline:
        for name in ("public.early", "public.late"):
            assert compared(pipeline, name).outcome == "equal"
        database.execute(
            """UPDATE late SET v = '{{x,"y,z"}}' WHERE id = 2""",
            "UPDATE late SET n = 'NaN' WHERE id = 1",
            "INSERT INTO late VALUES (3, '[0:1]={p,q}', 7, '-Infinity'), (4, '{r}', 8.25, 0)",
        )
        assert compared(pipeline, "public.late").outcome == "equal"
        database.execute("UPDATE late SET n = 9 WHERE id = 4", "UPDATE early SET v = '{{1,2},{3,5}}' WHERE id = 1")
        for name in ("public.early", "public.late"):
            assert compared(pipeline, name).outcome == "equal"
        rows = sorted(read_table(str(tmp_path / "lake"), "public.late").to_pylist(), key=itemgetter("id"))
        assert [(row["v"], row["n"], row["w"]) for row in rows] == [
            ('["a","b c"]', "NaN", "NaN"),
            ('[["x","y,z"]]', "2", "100000000000000000000"),
            ("[0:1]={p,q}", "7", "-Infinity"),
            ('["r"]', "9", "0"),
        ]
        damage(
            pipeline, "public.early", lambda table: table.update(updates={"v": "'[[1,2],[3,4]]'"}, predicate="id = 1")
        )
        assert compared(pipeline, "public.early").outcome == "different"


@pytest.mark.long
def test_a_table_without_a_key_is_decided_while_it_changes(database: Database, tmp_path: Path) -> None:
    database.execute(
        "CREATE TABLE log (at int, what text)",
        "ALTER TABLE log REPLICA IDENTITY FULL",
        "INSERT INTO log SELECT n, 'w' FROM generate_series(1, 100) n",
        *ITEMS,
    )
    ended = threading.Event()

    def write() -> None:
        with database.connect() as connection:
            while not ended.wait(0.01):
                connection.execute("UPDATE log SET what = what || 'x' WHERE at = 1")

    with following(database, tmp_path) as pipeline:
        assert compared(pipeline, "public.log").outcome == "equal"
        writer = threading.Thread(target=write)
        writer.start()
        try:
            assert compared(pipeline, "public.log").damaged == 0
            damage(pipeline, "public.log", lambda table: table.delete("at = 30"))
            found = compared(pipeline, "public.log")
        finally:
            ended.set()
            writer.join()
        assert found.outcome == "different", found


def test_all_tables_are_told_the_equal_ones_first(database: Database, tmp_path: Path) -> None:
    """And those that are incomplete, that the source no longer has, and of which there is no replica."""
    database.execute(*ITEMS, "CREATE TABLE brief (id int PRIMARY KEY)", "CREATE TABLE other (id int PRIMARY KEY)")
    database.execute("INSERT INTO other VALUES (1)", "INSERT INTO brief VALUES (1)")
    with following(database, tmp_path) as pipeline:
        for name in ("items", "brief", "other"):
            assert compared(pipeline, f"public.{name}").outcome == "equal"
        damage(pipeline, "public.items", lambda table: table.delete("id = 5"))
        database.execute("DROP TABLE brief", "INSERT INTO other VALUES (2)")
        states = {"public.other": TableState("incomplete", 0.0, ("a partition was attached",))}
        (tmp_path / "checkpoint" / FILE).write_text(to_text(states))
        assert compared(pipeline, "public.other").outcome == "equal"
        progress = ComparisonProgress()
        found = [*compare_all(pipeline.definition, [], 20, progress)]
        outcomes = [(report.table, report.outcome, report.state) for report in found]
        assert outcomes == [
            ("public.other", "equal", "incomplete"),
            ("public.items", "different", None),
            ("public.brief", "no table of the source", "gone"),
        ]
        assert (progress.done, progress.total, str(progress)) == (2, 2, "2 of 2 tables are compared")
        mended = {
            each.table: each for each in compare_all(pipeline.definition, [], 20, ComparisonProgress(), repairs=True)
        }
        assert (mended["public.items"].outcome, mended["public.items"].repaired) == ("equal", 1)
        assert mended["public.other"].outcome == "equal"


def test_a_table_without_a_key_is_compared_as_a_whole(database: Database, tmp_path: Path) -> None:
    database.execute(
        "CREATE TABLE log (at int, what text)",
        "ALTER TABLE log REPLICA IDENTITY FULL",
        "INSERT INTO log SELECT n % 10, 'w' FROM generate_series(1, 100) n",
    )
    with following(database, tmp_path) as pipeline:
        assert compared(pipeline, "public.log").outcome == "equal"
        lake(pipeline, "public.log").delete("at = 3")
        found = compared(pipeline, "public.log")
        assert (found.outcome, found.source_rows, found.target_rows) == ("different", 100, 90)
        mended = compared(pipeline, "public.log", mend=True)
        assert (mended.outcome, mended.target_rows) == ("equal", 100)
