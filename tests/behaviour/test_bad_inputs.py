"""What goes wrong, through the real source on real servers: each time a sentence with its place and its remedy."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
import yaml
from pyspark.sql import SparkSession

from tailrace.cli.terminal import notes, print_error
from tailrace.errors import OffsetError, SourceError, TailraceError
from tailrace.testing.postgres import EmbeddedPostgres, StopMode
from tests.behaviour.streams import Stream, eventually, failure_of, payload, properties
from tests.conftest import Database

SECRET = "not-the-one-8c1f"
COMMAND = [sys.executable, "-c", "from tailrace.cli.main import main; main()"]


@pytest.fixture
def shop(database: Database) -> Database:
    """A database with a table of three rows."""
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, item text)",
        "INSERT INTO orders SELECT n, 'item' FROM generate_series(1, 3) n",
    )
    return database


def sentence(error: TailraceError) -> str:
    """The error as the command line tells it: what, and what mends it."""
    with notes.capture() as captured:
        print_error(error)
    text = captured.get()
    assert text.startswith("Error "), text
    assert "\n  Remedy " in text, text
    assert "Traceback" not in text
    assert SECRET not in text
    return text


def run_command(folder: Path, given: dict[str, str], checkpoint: str = "state") -> str:
    """What `tailrace run` says of a pipeline that fails."""
    pipeline = {
        "source": {"config": given},
        "sink": "null",
        "checkpoint": checkpoint,
        "spark": {"spark.master": "local[1]"},
    }
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline), encoding="utf-8")
    done = subprocess.run(
        [*COMMAND, "run", str(file), "--once"], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) < 12
    assert given["database.password"] not in done.stderr
    return done.stderr


@pytest.mark.long
def test_a_wrong_password(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    given = properties(shop, database__password=SECRET)
    text = sentence(Stream(spark, given, tmp_path).failure())
    assert "password authentication failed for user" in text
    assert f"{shop.server.host}:{shop.server.port}/{shop.name}" in text
    assert "database.password" in text
    said = run_command(tmp_path, given)
    assert "Error" in said
    assert "password authentication failed" in said
    assert "Remedy set database.user and database.password" in said


def test_no_such_database(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    given = properties(shop, database__dbname="nowhere")
    text = sentence(Stream(spark, given, tmp_path).failure())
    assert 'database "nowhere" does not exist' in text
    assert "Remedy check database.dbname" in text


@pytest.mark.long
def test_a_server_out_of_reach_is_tried_again_and_then_named(spark: SparkSession, tmp_path: Path) -> None:
    given = {
        "database.hostname": "127.0.0.1",
        "database.port": "1",
        "database.user": "u",
        "database.password": SECRET,
        "database.dbname": "d",
        "topic.prefix": "t",
        "errors.max.retries": "1",
    }
    text = sentence(Stream(spark, given, tmp_path).failure())
    assert "127.0.0.1:1/d" in text
    assert "Connection refused" in text
    assert "Remedy check database.hostname and database.port" in text
    assert "Connection refused" in run_command(tmp_path, given)


def test_a_server_without_logical_decoding(spark: SparkSession, tmp_path: Path) -> None:
    with EmbeddedPostgres(settings={"wal_level": "replica"}) as server:
        database = Database(server, "postgres")
        database.execute("CREATE TABLE a (id int PRIMARY KEY)")
        for mode in ("initial", "no_data"):
            text = sentence(Stream(spark, properties(database, snapshot__mode=mode), tmp_path / mode).failure())
            assert "slot slot_postgres" in text
            assert "wal_level" in text
            assert "Remedy set wal_level = logical" in text
            assert slots(database) == []


def slots(database: Database) -> list[str]:
    with database.connect() as connection:
        found = connection.execute(
            "SELECT slot_name FROM pg_replication_slots WHERE database = %s", [database.name]
        ).fetchall()
    return [row[0] for row in found]


@pytest.fixture
def role(shop: Database) -> Iterator[str]:
    """A role that may do everything with the tables, but not replicate."""
    name = f"reader_{shop.name}"
    shop.server.create_role(name, SECRET, "LOGIN")
    shop.execute(f"GRANT SELECT ON orders TO {name}", "CREATE PUBLICATION pub FOR TABLE orders")
    yield name
    shop.execute(f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_a_role_that_may_not_replicate(spark: SparkSession, shop: Database, role: str, tmp_path: Path) -> None:
    given = properties(shop, database__user=role, database__password=SECRET)
    text = sentence(Stream(spark, given, tmp_path).failure())
    assert "REPLICATION" in text
    assert "ALTER ROLE" in text
    assert slots(shop) == []


def test_a_role_that_may_not_read_a_table(spark: SparkSession, shop: Database, role: str, tmp_path: Path) -> None:
    shop.execute(f"ALTER ROLE {role} REPLICATION", f"REVOKE SELECT ON orders FROM {role}")
    given = properties(shop, database__user=role, database__password=SECRET)
    text = sentence(Stream(spark, given, tmp_path).failure())
    assert "permission denied for table orders" in text
    assert "GRANT" in text


@contextmanager
def stranger(database: Database) -> Iterator[int]:
    """Another program that reads the slot; gives its process at the server."""
    dsn = database.server.dsn(database.name, application_name="some stranger", replication="database")
    start = f"START_REPLICATION SLOT slot_{database.name} LOGICAL 0/0 (proto_version '1', publication_names 'pub')"
    with psycopg.connect(dsn, autocommit=True) as stream:
        let_go(database)
        answer = stream.pgconn.exec_(start.encode())
        assert answer.status == psycopg.pq.ExecStatus.COPY_BOTH, answer.error_message
        yield stream.info.backend_pid
        stream.close()


@pytest.mark.long
def test_a_slot_that_a_stranger_reads(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    given = properties(shop, slot__max__retries="0")
    stream = Stream(spark, given, tmp_path / "state")
    assert len(stream.run()) == 3
    with stranger(shop) as pid:
        shop.execute("INSERT INTO orders VALUES (4, 'late')")
        text = sentence(stream.failure())
        assert f"slot slot_{shop.name}" in text
        assert f"process {pid}" in text
        assert "some stranger" in text
        new = sentence(Stream(spark, given, tmp_path / "new").failure())
        assert f"process {pid}" in new
    eventually(lambda: not held(shop))
    assert len(stream.run()) == 4


def let_go(database: Database) -> None:
    """End whoever reads the slot: Spark's worker does between two queries, as the next one may be its own."""
    with database.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(active_pid, 60000) FROM pg_replication_slots WHERE database = %s",
            [database.name],
        )


def held(database: Database) -> bool:
    with database.connect() as connection:
        row = connection.execute(
            "SELECT bool_or(active) FROM pg_replication_slots WHERE database = %s", [database.name]
        ).fetchone()
    return bool(row and row[0])


def test_a_slot_that_is_dropped_while_it_is_read(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    stream = Stream(spark, properties(shop), tmp_path)
    query = stream.start()
    shop.execute("INSERT INTO orders VALUES (4, 'x')")
    eventually(lambda: len(stream.rows) == 4, query)
    eventually(lambda: dropped(shop), query)
    shop.execute("INSERT INTO orders VALUES (5, 'lost')")
    text = sentence(failure_of(query))
    assert f"slot slot_{shop.name}" in text
    assert "does not exist" in text
    assert "new checkpoint" in text


def dropped(database: Database) -> bool:
    """Whether a reader could be ended and its slot dropped before it came back."""
    query = "SELECT pg_terminate_backend(active_pid, 60000), pg_drop_replication_slot(slot_name) FROM "
    with database.connect() as connection:
        try:
            connection.execute(f"{query} pg_replication_slots WHERE database = %s".encode(), [database.name])
        except psycopg.errors.ObjectInUse:
            return False
    return True


def test_a_publication_that_does_not_exist(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    given = properties(shop, publication__autocreate__mode="disabled")
    text = sentence(Stream(spark, given, tmp_path).failure())
    assert "publication pub" in text
    assert 'CREATE PUBLICATION "pub"' in text
    assert slots(shop) == []


def test_a_publication_that_is_dropped(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    stream = Stream(spark, properties(shop), tmp_path)
    stream.run()
    shop.execute("DROP PUBLICATION pub", "INSERT INTO orders VALUES (4, 'x')")
    text = sentence(stream.failure())
    assert 'publication "pub" does not exist' in text
    assert "run `tailrace drop`, then set snapshot.mode=when_needed" in text


def test_a_table_whose_old_rows_have_no_identity(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    shop.execute("CREATE TABLE log (line text)")
    stream = Stream(spark, properties(shop), tmp_path)
    stream.run()
    shop.execute("INSERT INTO log VALUES ('a line')")
    assert payload(stream.run()[-1])["after"] == {"line": "a line"}
    # The server itself refuses what could not be told.
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        shop.execute("UPDATE log SET line = 'another'")
    file = tmp_path / "connector.json"
    file.write_text(json.dumps({"name": "x", "config": properties(shop)}), encoding="utf-8")
    done = subprocess.run([*COMMAND, "check", str(file)], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 3, done.stderr
    assert "warning identity: public.log" in done.stdout
    assert re.search(r'Remedy .*ALTER TABLE "public"\."log" REPLICA IDENTITY FULL', done.stdout)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of half a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all space that is left on a disk."""
    file = folder / "filler"
    for size in (65536, 4096):
        with suppress(OSError), file.open("ab", buffering=0) as filler:
            while filler.write(bytes(size)):
                pass
    return file


def test_a_checkpoint_on_a_full_disk(spark: SparkSession, shop: Database, small_disk: Path, tmp_path: Path) -> None:
    checkpoint = small_disk / "state"
    stream = Stream(spark, properties(shop), checkpoint)
    stream.run()
    filler = fill(small_disk)
    shop.execute("INSERT INTO orders VALUES (4, 'x')")
    said = run_command(tmp_path, properties(shop), str(checkpoint))
    assert "No space left on device" in said
    assert "Remedy" in said
    assert str(checkpoint) in said
    filler.unlink()
    assert len(stream.run()) == 4, "what could not be noted is read again"


def edited(checkpoint: Path, change: dict[str, object]) -> None:
    """Write the newest offset of a checkpoint anew."""
    file = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    lines = file.read_text(encoding="utf-8").splitlines()
    lines[2] = json.dumps({**json.loads(lines[2]), **change})
    file.write_text("\n".join(lines), encoding="utf-8")
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("change", "what", "remedy"),
    [
        (
            {"source": "7000000000000000000/other/slot"},
            "belongs to postgresql '7000000000000000000/other",
            "checkpoint of its own",
        ),
        ({"version": 3}, "offsets of version 3, this release reads version 2", "new folder"),
    ],
)
def test_a_checkpoint_that_is_not_ours(
    spark: SparkSession, shop: Database, tmp_path: Path, change: dict[str, object], what: str, remedy: str
) -> None:
    stream = Stream(spark, properties(shop), tmp_path)
    stream.run()
    edited(tmp_path, change)
    error = stream.failure()
    assert isinstance(error, OffsetError)
    text = sentence(error)
    assert what in text
    assert remedy in text


def test_a_slot_beyond_the_checkpoint(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    stream = Stream(spark, properties(shop), tmp_path)
    stream.run()
    shop.execute("INSERT INTO orders VALUES (4, 'read')")
    assert len(stream.run()) == 4
    shop.execute("INSERT INTO orders VALUES (5, 'lost')")
    let_go(shop)
    shop.execute(f"SELECT pg_replication_slot_advance('slot_{shop.name}', pg_current_wal_lsn())")
    shop.execute("INSERT INTO orders VALUES (6, 'x')")
    error = stream.failure()
    assert isinstance(error, OffsetError)
    text = sentence(error)
    assert re.search(r"the slot was moved; changes from \S+ \(.* UTC\) up to \S+, [\d.]+ k?B of log, are lost", text)
    assert "snapshot.mode=when_needed" in text


def test_a_server_that_restarts_is_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    with EmbeddedPostgres() as server:
        database = Database(server, "postgres")
        database.execute("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
        stream = Stream(spark, properties(database, retriable__restart__connector__wait__ms="1000"), tmp_path)
        with stream.running() as query:
            eventually(lambda: len(stream.rows) == 1, query)
            modes: tuple[StopMode, ...] = ("fast", "immediate")
            for number, mode in enumerate(modes):
                database.execute(f"INSERT INTO a VALUES ({2 + 2 * number})")
                server.restart(mode)
                database.execute(f"INSERT INTO a VALUES ({3 + 2 * number})")
                eventually(lambda number=number: len(stream.rows) == 3 + 2 * number, query)  # type: ignore[misc]
    assert [payload(row)["after"]["id"] for row in stream.rows] == [1, 2, 3, 4, 5]


def test_errors_are_named_by_their_kind(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    """A SourceError stays one on its way through Spark, so that programs can tell it from another."""
    error = Stream(spark, properties(shop, database__dbname="nowhere"), tmp_path).failure()
    assert isinstance(error, SourceError)
