"""A replica of a MongoDB database that a pipeline keeps, and what it has to be equal to."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from bson import json_util
from pymongo.database import Database
from pyspark.sql import SparkSession

from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_TABLE
from tailrace.pipeline.definition import Definition, from_content
from tailrace.pipeline.replica_states import stored_states
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.sinks.replica.states import GONE
from tailrace.sinks.replica.target import read_table, row_counts
from tests.behaviour.streams import eventually
from tests.servers.mongodb.server import ReplicaSet

Documents = Counter[str]
Shop = Database[dict[str, Any]]


@dataclass
class Replica:
    """A pipeline that keeps a replica of a database, and what it has to be equal to."""

    spark: SparkSession
    shop: Shop
    definition: Definition
    root: Path
    log: pytest.LogCaptureFixture
    names: str = ".*"
    content: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def running(self) -> Iterator[Run]:
        """The pipeline, until the block ends."""
        run = Pipeline(self.definition, session=self.spark).start()
        try:
            yield run
        finally:
            run.stop()

    def source(self) -> dict[str, Documents]:
        """The documents of each captured collection."""
        found = {}
        for name in self.shop.list_collection_names(filter={"type": "collection"}):
            if not name.startswith("system.") and self.is_listed(name):
                found[name] = Counter(map(canonical, self.shop[name].find()))
        return found

    def is_listed(self, name: str) -> bool:
        """Whether the lists have a collection."""
        return re.fullmatch(self.names, name) is not None

    def kept(self) -> dict[str, Documents]:
        """The documents of each of the replica's tables that has some."""
        found = {}
        for name, count in row_counts(str(self.root), {}).items():
            collection = name.removeprefix(f"{self.shop.name}.")
            if count:
                rows = read_table(str(self.root), TableId(self.shop.name, "", collection, DATABASE_TABLE)).to_pylist()
                found[collection] = Counter(document(row) for row in rows)
        return found

    def is_same(self) -> bool:
        """Whether all documents are there, and no others, and no table is incomplete."""
        wanted = {name: documents for name, documents in self.source().items() if documents}
        return self.kept() == wanted and not self.lacking()

    def lacking(self) -> list[str]:
        """The tables that are not complete, which nobody would know of otherwise."""
        states = stored_states(self.definition.checkpoint)
        return [name for name, state in states.items() if state.is_lacking]

    def gone(self) -> set[str]:
        """The collections that are gone."""
        states = stored_states(self.definition.checkpoint)
        return {name.removeprefix(f"{self.shop.name}.") for name, state in states.items() if state.state == GONE}

    def until_same(self, run: Run, gone: set[str] | None = None) -> None:
        """Wait until all is the same, and so are the collections that are gone."""
        try:
            eventually(lambda: run.await_(0.2) or (self.is_same() and gone in (None, self.gone())))
        except AssertionError as error:
            error.add_note(f"lacking {self.lacking()}, gone {self.gone()}")
            source, kept = self.source(), self.kept()
            for name in {*source, *kept}:
                here, there = source.get(name, Counter()), kept.get(name, Counter())
                error.add_note(f"{name}: only in the source {here - there}, only in the replica {there - here}")
            raise

    def marked(self) -> set[str]:
        """The collections that were told to be incomplete since the last call."""
        said = [each.getMessage() for each in self.log.records if " is incomplete: " in each.getMessage()]
        self.log.clear()
        return {each.partition(" is incomplete")[0].removeprefix(f"{self.shop.name}.") for each in said}


def canonical(found: dict[str, Any]) -> str:
    return json.dumps(json.loads(json_util.dumps(found, json_options=json_util.RELAXED_JSON_OPTIONS)), sort_keys=True)


def document(row: dict[str, Any]) -> str:
    if row.get("_key") is not None and "_rest" in row:
        columns = {name: value for name, value in row.items() if name not in ("_rest", "_key") and value is not None}
        return canonical({"_id": json_util.loads(row["_key"]), **columns, **json_util.loads(row["_rest"] or "{}")})
    assert row["document"] is not None, f"a row without its document: {row}"
    return canonical(json_util.loads(row["document"]))


@pytest.fixture
def shop(mongodb: ReplicaSet) -> Iterator[Shop]:
    """A database of the test's own."""
    with mongodb.client() as client:
        database: Shop = client[f"r{uuid4().hex[:8]}"]
        yield database
        client.drop_database(database.name)


@pytest.fixture
def replica(
    spark: SparkSession,
    mongodb: ReplicaSet,
    shop: Shop,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> Replica:
    """A replica; the parameter has properties of the source, and of the sink beside them."""
    given = dict(getattr(request, "param", {}))
    sink, names = {"read_again": {"at_most_every": "0s"}, **given.pop("sink", {})}, given.pop("names", ".*")
    config = {
        "mongodb.connection.string": mongodb.url(),
        "collection.include.list": rf"{shop.name}\.(?:{names})",
        "topic.prefix": "t",
        "signal.poll.interval.ms": "100",
        "table.watch.interval.ms": "500",
        **{name: value.replace("SHOP", shop.name) for name, value in given.items()},
    }
    content = {
        "source": {"connector": "mongodb", "config": config},
        "sink": {"replica": {"path": "lake", **sink}},
        "checkpoint": "state",
        "trigger": "100ms",
    }
    caplog.set_level(logging.WARNING)
    definition = from_content(content, base=tmp_path, where="test")
    return Replica(spark, shop, definition, tmp_path / "lake", caplog, names, content)
