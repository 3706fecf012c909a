"""A snapshot of a table with partitions or children, read side by side: the same rows as from the table as a whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from tailrace.cli.main import app
from tailrace.errors import SourceError
from tailrace.pipeline.definition import from_content, load
from tailrace.pipeline.reconcile import Reconciler
from tests.behaviour.capture import Capture, capturing, reader, rows
from tests.conftest import Database

FOUR = {"snapshot__max__threads": "4"}
LIST = (
    "CREATE TABLE sales (id int, region text, at date, note text, PRIMARY KEY (id, region, at)) "
    "PARTITION BY LIST (region)",
    "CREATE TABLE north PARTITION OF sales FOR VALUES IN ('n')",
    # Columns in another order, with one that is gone.
    'CREATE TABLE "So uth" (gone int, note text, at date NOT NULL, region text NOT NULL, id int NOT NULL)',
    'ALTER TABLE "So uth" DROP COLUMN gone',
    "ALTER TABLE sales ATTACH PARTITION \"So uth\" FOR VALUES IN ('s')",
    "CREATE TABLE west PARTITION OF sales FOR VALUES IN ('w') PARTITION BY RANGE (at)",
    "CREATE TABLE west_old PARTITION OF west FOR VALUES FROM (MINVALUE) TO ('2020-01-01')",
    "CREATE TABLE west_new PARTITION OF west FOR VALUES FROM ('2020-01-01') TO (MAXVALUE)",
    "CREATE TABLE nobody PARTITION OF sales FOR VALUES IN ('x')",
    "CREATE TABLE other PARTITION OF sales DEFAULT PARTITION BY HASH (id)",
    *(f"CREATE TABLE other{n} PARTITION OF other FOR VALUES WITH (MODULUS 2, REMAINDER {n})" for n in range(2)),
    "INSERT INTO sales SELECT n, (ARRAY['n', 's', 'w', 'e'])[n % 4 + 1], date '2019-01-01' + n, 'note ' || n "
    "FROM generate_series(1, 2000) n",
)


def snapshot(capture: Capture) -> tuple[int, list[dict[str, Any]]]:
    """How many splits the first batch has, and their rows."""
    splits = capture.plan()
    return len(splits), [row for split in splits for row in rows(capture.reader.read(split))]


def same_as(database: Database, table: str, found: list[dict[str, Any]]) -> None:
    """Each row of the table, once, and one first and one last of the whole."""
    with database.connect() as connection:
        expected = connection.execute(f"SELECT count(*), sum(hashtext(t::text)) FROM {table} t".encode()).fetchone()
        images = [tuple(row["after"].values()) for row in found]
        name = f"copy_{uuid4().hex}"
        connection.execute(f"CREATE TABLE {name} (LIKE {table})".encode())
        holders = ", ".join(["%s"] * len(images[0]))
        connection.cursor().executemany(f"INSERT INTO {name} VALUES ({holders})".encode(), images)
        again = connection.execute(f"SELECT count(*), sum(hashtext(t::text)) FROM {name} t".encode()).fetchone()
        connection.execute(f"DROP TABLE {name}".encode())
    assert again == expected
    markers = Counter(row["snapshot"] for row in found)
    assert (markers["first"], markers["last"]) == (1, 1)
    assert (found[0]["snapshot"], found[-1]["snapshot"]) == ("first", "last")


def only(table: str, **more: str) -> dict[str, str]:
    return {**FOUR, "table__include__list": f"public.{table}", "time__precision__mode": "isostring", **more}


def test_partitions_of_every_kind(database: Database) -> None:
    database.execute(*LIST)
    with capturing(database, **only("sales", publish__via__partition__root="true")) as capture:
        count, found = snapshot(capture)
        assert count == 4
        assert {row["table"] for row in found} == {"public.sales"}
        for row in found:
            row["after"]["at"] = row["after"]["at"].removesuffix("Z")
        same_as(database, "sales", found)
        database.execute("UPDATE sales SET note = 'new' WHERE id = 1")
        assert [row["after"]["note"] for row in capture.step()] == ["new"]


def test_children_by_inheritance(database: Database) -> None:
    database.execute(
        "CREATE TABLE parent (id int, v text)",
        "CREATE TABLE child (more int) INHERITS (parent)",
        "CREATE TABLE brother () INHERITS (parent)",
        "CREATE TABLE grandchild (extra int) INHERITS (child, brother)",
        "CREATE TABLE plain (id int, v text)",
        *(
            f"INSERT INTO {name} (id, v) SELECT n, '{name}' FROM generate_series(1, 700) n"
            for name in ("parent", "child", "brother", "grandchild")
        ),
    )
    with capturing(database, **only("parent")) as capture:
        count, found = snapshot(capture)
        assert count == 4
        same_as(database, "parent", found)
        assert Counter(row["after"]["v"] for row in found) == dict.fromkeys(
            ("parent", "child", "brother", "grandchild"), 700
        )


def test_all_partitions_empty(database: Database) -> None:
    database.execute(*LIST[:-1])
    with capturing(database, **only("sales", publish__via__partition__root="true")) as capture:
        assert snapshot(capture)[1] == []


@pytest.mark.parametrize("lack", ["rights", "policy", "nothing"])
def test_a_role_that_may_not_read_the_partitions(database: Database, lack: str) -> None:
    """Rights on the table are enough to read it, and its own policies alone count."""
    role, publication = f"reader_{uuid4().hex[:8]}", f"publication_{database.name}"
    database.server.create_role(role, "secret")
    database.execute(
        *LIST, f"CREATE PUBLICATION {publication} FOR TABLE sales WITH (publish_via_partition_root = true)"
    )
    wide = lack != "rights"
    database.execute(f"GRANT SELECT ON {'ALL TABLES IN SCHEMA public' if wide else 'sales'} TO {role}")
    if lack == "policy":
        database.execute("ALTER TABLE north ENABLE ROW LEVEL SECURITY")
    own = {"database__user": role, "database__password": "secret", "publication__autocreate__mode": "disabled"}
    with capturing(database, **only("sales", **own)) as capture:
        count, found = snapshot(capture)
        assert count == (4 if lack == "nothing" else 1)
        assert len({row["after"]["id"] for row in found}) == len(found) == 2000
    database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_foreign_partition(database: Database) -> None:
    with database.connect() as connection:
        if not connection.execute("SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw'").fetchone():
            pytest.skip("the server has no postgres_fdw")
    server = database.server
    login = f"OPTIONS (user '{server.user}', password '{server.password}')"
    database.execute(
        *LIST[:-1],
        "CREATE EXTENSION postgres_fdw",
        "CREATE TABLE elsewhere (id int, region text, at date, note text)",
        f"CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{server.host}', port '{server.port}', "
        f"dbname '{database.name}')",
        f"CREATE USER MAPPING FOR CURRENT_USER SERVER here {login}",
        "ALTER TABLE sales DROP CONSTRAINT sales_pkey",
        "CREATE FOREIGN TABLE far PARTITION OF sales FOR VALUES IN ('f') SERVER here OPTIONS (table_name 'elsewhere')",
        LIST[-1],
        "INSERT INTO elsewhere SELECT n, 'f', now(), 'far' FROM generate_series(3001, 3010) n",
    )
    with capturing(database, **only("sales")) as capture:
        assert len(snapshot(capture)[1]) == 2010


def restart(capture: Capture) -> None:
    capture.close()
    capture.reader = reader(capture.config)


@pytest.mark.parametrize("change", ["none", "truncated", "attached"])
def test_a_large_table_resumes_by_its_key_after_a_restart(database: Database, change: str) -> None:
    database.execute(*LIST)
    given = {"snapshot__max__threads": "1", "snapshot__max__threads__multiplier": "8"}
    with capturing(database, **only("sales", publish__via__partition__root="true", **given)) as capture:
        found = capture.step() + capture.step() + capture.step()
        assert 0 < len(found) < 1000
        restart(capture)
        if change == "truncated":
            database.execute("TRUNCATE north")
        elif change == "attached":
            database.execute(
                "CREATE TABLE late (LIKE sales INCLUDING ALL)",
                "INSERT INTO late VALUES (1, 'l', '2020-01-01', 'late')",
                "ALTER TABLE sales ATTACH PARTITION late FOR VALUES IN ('l')",
            )
        database.execute("UPDATE sales SET note = 'later' WHERE id IN (3, 1999)")
        first = len(found)
        while capture.offset["phase"] != "stream":
            found += capture.step()
        again = [row["after"]["id"] for row in found[first:] if row["op"] == "r"]
        if change == "none":
            assert 1 not in again[:1]
            assert len(again) < 2000
        elif change == "truncated":
            assert len(again) == 1500
        else:
            assert len(again) == 2001
        state = {row["after"]["id"]: row["after"]["note"] for row in found if row["op"] in "ru"}
        assert len(state) == 2000 or (change == "truncated" and set(again) <= state.keys())
        assert (state[3], state[1999]) == ("later", "later")


def test_init_captures_a_partitioned_table_as_a_whole(database: Database, tmp_path: Path) -> None:
    database.execute(*LIST)
    server, file = database.server, tmp_path / "pipeline.yaml"
    url = f"postgresql://{server.user}@{server.host}:{server.port}/{database.name}"
    done = CliRunner().invoke(app, ["init", url, "-o", str(file)], env={"PGPASSWORD": server.password})
    assert "1 tables found" in done.stdout
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", server.password)
        given = load(file).properties()
    own = {name: given[name] for name in given if name.startswith(("publication", "publish", "table"))}
    with capturing(database, **own) as capture:
        assert len(capture.step()) == 2000
        database.execute("INSERT INTO sales VALUES (5000, 'w', '2021-01-01', 'later')")
        assert [(row["table"], row["after"]["id"]) for row in capture.step()] == [("public.sales", 5000)]


@pytest.mark.parametrize("is_there", [False, True])
def test_changes_that_are_sent_under_other_names_are_an_error(
    database: Database, tmp_path: Path, is_there: bool
) -> None:
    """At the start. Reconcile does not leave the table out."""
    name = f"publication_{database.name}"
    database.execute(*LIST)
    remedy = "set publish.via.partition.root=true"
    if is_there:
        database.execute(f"CREATE PUBLICATION {name} FOR TABLE sales")
        remedy = f'ALTER PUBLICATION "{name}" SET (publish_via_partition_root = true)'
    own = {"table.include.list": r"public\.sales", "publication.autocreate.mode": "filtered"}
    with capturing(database, **own, snapshot__mode="no_data") as capture:
        said = rf"{name} sends changes of public\.sales by the names of its partitions \(public\.So uth, "
        with pytest.raises(SourceError, match=said) as caught:
            capture.step()
        assert remedy in (caught.value.remedy or "")
        if not is_there:
            return
        assert followed(database, tmp_path, **own) == ["public.sales"]
        west = own | {"table.include.list": r"public\.west"}
        assert followed(database, tmp_path, **west) == ["public.west"]
        parts = r"public\.(west_(old|new)|north|nobody|other\d|So uth)"
        both = own | {"table.include.list": parts + r",public\.(sales|west)"}
        of_partitions = ["So uth", "nobody", "north", "other0", "other1", "west_new", "west_old"]
        assert followed(database, tmp_path, **both) == [f"public.{part}" for part in of_partitions]
        database.execute(f"ALTER PUBLICATION {name} SET (publish_via_partition_root = true)")
        assert followed(database, tmp_path, **both) == ["public.sales"]
        assert len(followed(database, tmp_path, **own | {"table.include.list": parts})) == 7


def followed(database: Database, folder: Path, **properties: str) -> list[str]:
    """The tables that reconcile looks at."""
    more = {"topic.prefix": "t", "publication.name": f"publication_{database.name}", **properties}
    content = {"source": {"config": {**database.properties, **more}}, "checkpoint": "state"}
    definition = from_content({**content, "sink": {"replica": {"path": "lake"}}}, base=folder, where="test")
    return [str(table) for table in Reconciler(definition, 1).tables([])]
