"""What a comparison cannot decide is reported as undecided."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tailrace.errors import ConfigError
from tailrace.pipeline import reconcile
from tailrace.pipeline.definition import from_content
from tailrace.pipeline.reconcile import Reconciler
from tailrace.pipeline.sides import Sides
from tailrace.pipeline.signaling import send
from tests.behaviour.following import following
from tests.behaviour.test_reconcile import ITEMS, compared, lake
from tests.conftest import Database


def test_a_stopped_pipeline_is_compared_as_far_as_it_goes(database: Database, tmp_path: Path) -> None:
    database.execute(*ITEMS)
    with following(database, tmp_path) as pipeline:
        compared(pipeline, "public.items")
    # Nothing that counts has changed since: that is told, wherever the log ends.
    database.execute("CREATE TABLE something ()")
    assert compared(pipeline, "public.items", 0).outcome == "equal"
    database.execute("UPDATE items SET name = 'new' WHERE id < 4")
    found = compared(pipeline, "public.items", 0, mend=True)
    assert (found.outcome, found.undecided, found.damaged) == ("undecided", 3, 0)
    assert found.reason is not None
    assert "does not run" in found.reason
    assert "takes a pipeline that runs" in found.reason


def test_a_row_that_changes_all_the_time_is_undecided(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("CREATE TABLE hot (id int PRIMARY KEY, n int)", "INSERT INTO hot VALUES (1, 0), (2, 0)")
    with following(database, tmp_path) as pipeline:
        compared(pipeline, "public.hot")
        with monkeypatch.context() as patch:
            patch.setattr(reconcile, "ROUNDS", 3)
            for read in ("totals", "source", "seen"):
                _change_around(patch, read, database)
            found = compared(pipeline, "public.hot")
        assert (found.damaged, found.outcome, found.keys) == (0, "undecided", {"undecided": [{"id": 1}]})
        assert compared(pipeline, "public.hot").outcome == "equal"


def _change_around(patch: pytest.MonkeyPatch, name: str, database: Database) -> None:
    """Let row 1 change before and after each such read of the source: the replica never has what was read, however fast
    it follows. A position that is returned with the rows is later than both changes."""
    read = getattr(Sides, name)

    def change() -> None:
        database.execute("UPDATE hot SET n = n + 1 WHERE id = 1")

    def changed(self: Sides, *arguments: Any) -> Any:
        change()
        if name == "source":
            return read(self, *arguments)
        rows, _ = read(self, *arguments)
        change()
        return rows, read(self, *arguments)[1]

    patch.setattr(Sides, name, changed)


def test_surplus_keys_that_the_source_cannot_have(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (a varchar(3) PRIMARY KEY, b int)", "INSERT INTO t VALUES ('abc', 1)")
    with following(database, tmp_path) as pipeline:
        assert compared(pipeline, "public.t").outcome == "equal"
        extra = pa.table({"a": ["abcd", "a\0b"], "b": pa.array([1, 1], pa.int32())})
        write_deltalake(lake(pipeline, "public.t"), extra, mode="append")
        found = compared(pipeline, "public.t", mend=True)
        assert (found.outcome, found.undecided) == ("undecided", 2)
        assert sorted(str(key["a"]) for key in found.keys["undecided"]) == ["a\0b", "abcd"]
        # Two rows of one key are not the source's one, which a read does not mend; a new snapshot does.
        lake(pipeline, "public.t").delete("a <> 'abc'")
        write_deltalake(lake(pipeline, "public.t"), pa.table({"a": ["abc"]}), mode="append", schema_mode="merge")
        found = compared(pipeline, "public.t", mend=True)
        assert (found.outcome, found.different) == ("different", 1)


def test_more_rows_differ_than_are_compared_one_by_one(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "MOST_KEYS", 50)
    database.execute(*ITEMS)
    with following(database, tmp_path) as pipeline:
        compared(pipeline, "public.items")
        lake(pipeline, "public.items").delete()
        found = compared(pipeline, "public.items")
        assert (found.outcome, found.missing, found.unread, found.target_rows) == ("different", 50, 1950, 0)
        mended = compared(pipeline, "public.items", mend=True)
        assert (mended.missing, mended.repaired, mended.outcome) == (0, 50, "undecided")


def test_a_column_that_only_the_source_has(database: Database, tmp_path: Path) -> None:
    database.execute(*ITEMS)
    with following(database, tmp_path) as pipeline:
        compared(pipeline, "public.items")
        database.execute("ALTER TABLE items ADD empty text")
        found = compared(pipeline, "public.items")
        assert (found.outcome, found.reason) == ("equal", "the replica has no column empty yet")
        database.execute("ALTER TABLE items ADD filled int DEFAULT 5")
        assert compared(pipeline, "public.items").different == 2000
        assert compared(pipeline, "public.items", mend=True).outcome == "equal"
        database.execute("TRUNCATE items", "INSERT INTO items (id) VALUES (1)", "ALTER TABLE items DROP empty")
        found = compared(pipeline, "public.items")
        assert (found.outcome, found.source_rows, found.target_rows) == ("equal in part", 1, 1)
        assert found.not_compared == {"empty": "only the replica has it"}


def test_partitions_masks_and_columns_left_out(database: Database, tmp_path: Path) -> None:
    database.execute(
        "CREATE TABLE p (id int PRIMARY KEY, secret text, code text) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)",
        "INSERT INTO p SELECT n, 's' || n, 'c' || n FROM generate_series(0, 19) n",
    )
    options = {
        "publish__via__partition__root": "true",
        "column__exclude__list": "public.p.secret",
        "column__mask__with__5__chars": "public.p.code",
    }
    with following(database, tmp_path, **options) as pipeline:  # type: ignore[arg-type]
        found = compared(pipeline, "public.p")
        assert found.outcome == "equal"
        assert [*found.configured] == ["secret", "code"]
        assert "masked" in found.configured["code"]
        assert [str(table) for table in Reconciler(pipeline.definition, 10).tables([])] == ["public.p"]
        lake(pipeline, "public.p").delete("id IN (3, 13)")
        database.execute("UPDATE p SET code = 'other', secret = 'x' WHERE id = 4")
        mended = compared(pipeline, "public.p", mend=True)
        assert (mended.outcome, mended.repaired) == ("equal", 2)


@pytest.mark.parametrize(
    ("properties", "steps", "reason"),
    [
        ({"snapshot.include.collection.list": "public.other"}, [], "snapshot.include.collection.list"),
        (
            {
                "snapshot.select.statement.overrides": "public.t",
                "snapshot.select.statement.overrides.public.t": "SELECT * FROM t WHERE id < 5",
            },
            [],
            "snapshot.select.statement.overrides",
        ),
        ({"message.key.columns": "public.t:kind"}, [], "message.key.columns"),
        ({"skipped.operations": "d"}, [], "its deletes do not reach"),
        ({}, [{"filter": {"operations": ["create", "read"]}}], "its updates, deletes, truncates do not reach"),
    ],
    ids=lambda value: "",
)
def test_what_keeps_a_table_from_being_compared(
    database: Database, tmp_path: Path, properties: dict[str, str], steps: list[dict[str, Any]], reason: str
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, kind int NOT NULL)", "ALTER TABLE t REPLICA IDENTITY FULL")
    with following(database, tmp_path, steps, **properties) as pipeline:
        found = compared(pipeline, "public.t")
    assert found.outcome == "not compared"
    assert found.reason is not None
    assert reason in found.reason


def test_publications_that_send_less(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
    database.execute("CREATE PUBLICATION dbz_publication FOR TABLE a WHERE (id < 5)")
    with following(database, tmp_path, publication__autocreate__mode="disabled") as pipeline:
        assert "sends only rows WHERE" in str(compared(pipeline, "public.a").reason)
        assert "does not have it" in str(compared(pipeline, "public.b").reason)
        pipeline.stop()  # such a publication is an error to one that runs
        database.execute(
            "ALTER PUBLICATION dbz_publication SET TABLE a",
            "ALTER PUBLICATION dbz_publication SET (publish = 'insert')",
        )
        assert "does not send updates, deletes, truncates" in str(compared(pipeline, "public.a").reason)


def test_a_table_that_a_snapshot_reads(database: Database, tmp_path: Path) -> None:
    database.execute(*ITEMS)
    with following(database, tmp_path, incremental__snapshot__chunk__size="10") as pipeline:
        compared(pipeline, "public.items")
        asked = pipeline.signal("execute-snapshot", {"data-collections": ["public.items"]})
        found = compared(pipeline, "public.items")
        assert f"a snapshot is to read it (signal {asked})" in str(found.reason)


@pytest.mark.long
def test_a_blocking_snapshot_that_empties_the_replica_meanwhile(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, note text)",
        "INSERT INTO t SELECT n, repeat('x', 5000) FROM generate_series(1, 3000) n",
    )
    with following(database, tmp_path) as pipeline:
        assert compared(pipeline, "public.t").outcome == "equal"
        pipeline.rows, pipeline.pause = 1, 2.0
        send(pipeline.definition, "execute-snapshot", {"data-collections": ["public.t"], "type": "blocking"})
        while lake(pipeline, "public.t").count() == 3000:
            time.sleep(0.01)
        # As if the comparison had begun before the signal came, and the server had written no log since.
        monkeypatch.setattr(Reconciler, "_unready", lambda *_: None)
        monkeypatch.setattr(reconcile.Follower, "reaches", lambda *_: True)  # type: ignore[attr-defined]
        found = compared(pipeline, "public.t", 60)
        assert found.target_rows is not None
        assert found.target_rows < 3000
        assert (found.damaged, found.outcome) == (0, "equal"), found


def test_wrong_usage(database: Database, tmp_path: Path) -> None:
    database.execute(*ITEMS)
    source = {"config": {**database.properties, "topic.prefix": "t"}}
    content = {"source": source, "sink": "console", "checkpoint": "checkpoint"}
    with pytest.raises(ConfigError, match="the sink console holds events or nothing"):
        Reconciler(from_content(content, base=tmp_path, where="test"), 1)
    content["sink"] = {"replica": {"path": "lake"}}
    with pytest.raises(ConfigError, match=r"public.itms: .*\n.*Did you mean public.items"):
        Reconciler(from_content(content, base=tmp_path, where="test"), 1).tables(["public.itms"])
