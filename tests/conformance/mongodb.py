"""MongoDB in the conformance suite."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_TABLE
from tailrace.override import override
from tests.conformance.subject import (
    DECIDED_ONCE,
    KEY,
    NO_PRIVILEGE,
    OF_BLOCKING_SIGNALS,
    SECRET,
    UNREACHABLE,
    WRONG_PASSWORD,
    Change,
    Delete,
    Insert,
    Row,
    Source,
    Subject,
    Update,
)
from tests.servers.mongodb.server import ReplicaSet

PASSWORD = f"{SECRET}-right"
USER, POOR = "conformance", "poor"
ID = "_id"


def create_users(servers: ReplicaSet) -> None:
    """One that may read and write everything, and one that may do nothing."""
    servers.create_user(USER, PASSWORD, ["root"])
    servers.create_user(POOR, PASSWORD, [])


class MongoSource(Source):
    """A database. A row is a document whose `_id` is KEY; without a key KEY is a field like others.

    Collections keep documents as they were before and after changes, so that events have the exact images.
    """

    signals = "signals"

    def __init__(self, servers: ReplicaSet, name: str) -> None:
        self.servers, self.name = servers, name
        self.client = servers.client()
        self.database = self.client[name]
        self._keyless: set[str] = set()
        self.database.create_collection(self.signals)

    @override
    def properties(self, pipeline: str) -> dict[str, str]:
        return {
            "mongodb.connection.string": f"mongodb://{self.servers.hosts}/?replicaSet=rs0",
            "mongodb.user": USER,
            "mongodb.password": PASSWORD,
            "capture.scope": "database",
            "capture.target": self.name,
            "capture.mode": "change_streams_update_full_with_pre_image",
            "capture.mode.full.update.type": "post_image",
        }

    @override
    def id(self, table: str) -> TableId:
        return TableId(self.name, "", table, DATABASE_TABLE)

    @override
    def create(self, *tables: str, has_key: bool = True) -> None:
        for table in tables:
            self.database.create_collection(table, changeStreamPreAndPostImages={"enabled": True})
        self._keyless.update(() if has_key else tables)

    @override
    def commit(self, *changes: Change) -> None:
        with self.client.start_session() as session:
            session.with_transaction(lambda session: self._changes(changes, session))

    def _changes(self, changes: Sequence[Change], session: Any) -> None:
        for change in changes:
            self._change(change, session)

    @override
    def roll_back(self, *changes: Change) -> None:
        with self.client.start_session() as session:
            session.start_transaction()
            for change in changes:
                self._change(change, session)
            session.abort_transaction()

    @override
    def truncate(self, table: str) -> None:
        self.database[table].delete_many({})

    @override
    def add_column(self, table: str, name: str) -> None:
        """Documents have no columns."""

    @override
    def move_key(self, table: str) -> None:
        raise NotImplementedError

    @override
    def signal(self, id_: str, kind: str, data: str) -> None:
        self.database[self.signals].insert_one({ID: id_, "type": kind, "data": json.loads(data)})

    @override
    def clear_signals(self) -> None:
        self.database[self.signals].delete_many({})

    @override
    def hostile(self, kind: str, table: str, victim: str) -> list[str]:
        code = f"function() {{ db.{victim}.drop(); return true }}"
        run = f'{{$function: {{body: "{code}", args: [], lang: "js"}}}}'
        count = '{$accumulator: {init: "x", accumulate: "x", accumulateArgs: [], merge: "x", lang: "js"}}'
        return [
            f'{{"$where": "{code}"}}',
            f"{{$where: '{code}'}}",
            f"{{$expr: {run}}}",
            f"{{$and: [{{$or: [{{$expr: {{$eq: [1, {run}]}}}}]}}]}}",
            f"{{v: {{$not: {{$elemMatch: {{$where: '{code}'}}}}}}}}",
            f"{{$expr: {count}}}",
            f"{{$where: {{$code: '{code}'}}}}",
            f'{{"\\u0024where": "{code}"}}',
            '{"a":' * 300 + "1" + "}" * 300,
            "[" * 2000 + "]" * 2000,
            "[]",
            "{$unknown: 1}",
            "{} ; {}",
            "{a: 'x",
            '{"a": "\\ud800"}',
        ]

    @override
    def harmless(self, kind: str, table: str, key: int) -> str:
        return f"{{{ID}: {key}}}"

    @override
    def rows(self, table: str) -> list[Row]:
        return [_row(document) for document in self.database[table].find()]

    @override
    def lose_position(self, pipeline: str) -> None:
        """The documents are restored on a new server, whose log begins now."""
        documents = {name: list(self.database[name].find()) for name in self.database.list_collection_names()}
        self.client.close()
        self.servers.recreate()
        create_users(self.servers)
        self.client = self.servers.client()
        self.database = self.client[self.name]
        for name, found in documents.items():
            self.database.create_collection(name, changeStreamPreAndPostImages={"enabled": True})
            if found:
                self.database[name].insert_many(found)

    @contextmanager
    @override
    def fault(self, kind: str) -> Iterator[dict[str, str]]:
        if kind == WRONG_PASSWORD:
            yield {"mongodb.password": f"{SECRET}-wrong"}
        elif kind == UNREACHABLE:
            address = "mongodb://127.0.0.1:1/?replicaSet=rs0"
            yield {"mongodb.connection.string": address, "mongodb.server.selection.timeout.ms": "300"}
        else:
            assert kind == NO_PRIVILEGE
            yield {"mongodb.user": POOR}

    @override
    def url(self) -> tuple[str, dict[str, str]]:
        address = f"mongodb://{USER}@{self.servers.hosts}/{self.name}?replicaSet=rs0&authSource=admin"
        return address, {"MONGODB_PASSWORD": PASSWORD}

    @override
    def image(self, written: Any) -> Row | None:
        if isinstance(written, dict) and "_key" in written:
            return _row({name: value for name, value in written.items() if name not in ("_key", "_rest")})
        text = written["document"] if isinstance(written, dict) else written
        return None if text is None else _row(json.loads(text))

    @override
    def key(self, written: Any) -> int:
        """Beside columns its name is another."""
        return int(json.loads(written["_key" if "_key" in written else "id"]))

    @override
    def excluding(self, table: str, column: str) -> dict[str, str]:
        return {"field.exclude.list": f"{self.name}.{table}.{column}"}

    @override
    def masking(self, table: str, column: str) -> dict[str, str]:
        """There is none."""
        return {}

    def _change(self, change: Change, session: Any) -> None:
        collection, key = self.database[change.table], KEY if change.table in self._keyless else ID
        if isinstance(change, Insert):
            collection.insert_one(_document(change.row, key), session=session)
        elif isinstance(change, Delete):
            collection.delete_many({key: change.key}, session=session)
        else:
            assert isinstance(change, Update)
            self._update(change, key, session)

    def _update(self, change: Update, key: str, session: Any) -> None:
        """An update; a new `_id` is a new document."""
        collection = self.database[change.table]
        if KEY not in change.values or key == KEY:
            collection.update_many({key: change.key}, {"$set": _document(change.values, key)}, session=session)
            return
        old = collection.find_one_and_delete({key: change.key}, session=session)
        if old is not None:
            collection.insert_one({**old, **_document(change.values, key)}, session=session)


def _document(row: Row, key: str) -> Row:
    return {key if name == KEY else name: value for name, value in row.items()}


def _row(document: Row) -> Row:
    """A document as a row; the `_id` of one without a key is nobody's."""
    if KEY in document:
        return {name: value for name, value in document.items() if name != ID}
    return {KEY if name == ID else name: value for name, value in document.items()}


class MongoSubject(Subject):
    """A replica set of one member with authentication."""

    connector = "mongodb"
    is_killed = False  # make crash kills its pipelines
    cannot: ClassVar[Mapping[str, str]] = {
        "a_new_key_is_a_delete_and_a_create": "the _id of a document cannot be changed",
        "rows_that_share_an_event_key_are_reported": "the _id of a document is the key of its events",
        "events_of_a_new_key_have_the_other_key_in_a_header": "the _id of a document cannot be changed",
        "a_table_without_a_key_has_events_without_keys": "every document has an _id",
        "masked_columns_have_asterisks": "the reference connector has no masks, but field.exclude.list",
        "status_and_drop_know_what_a_pipeline_has_created": "a change stream creates nothing on the server",
        "a_truncate_is_an_event": "there is no such command: all documents are deleted, one by one",
        "a_key_is_made_over_another_column": "the _id of a document is its key",
        "a_replica_is_equal_though_the_log_is_older_than_the_key": "the _id of a document is its key",
    }

    long = (
        DECIDED_ONCE
        | OF_BLOCKING_SIGNALS
        | {
            "a_plug_in_that_is_not_there_is_named",
            *("a_table_is_added_under_load", "a_snapshot_under_load_leaves_a_replica_equal"),
            *("a_pipeline_begins_with_more_signals_than_are_read", "more_signals_than_are_read_never_stop_a_pipeline"),
            *("a_snapshot_of_several_batches_resumes_where_it_was", "a_replica_that_was_deleted_is_read_again"),
            *("a_pipeline_continues_where_another_program_stopped", "kafka_has_each_event_once"),
            *("reconcile_finds_and_repairs_wrong_rows", "the_checkpoint_of_another_source_is_an_error"),
        }
    )

    @override
    def start(self, request: pytest.FixtureRequest) -> None:
        self.servers: ReplicaSet = request.getfixturevalue("mongodb")

    @contextmanager
    @override
    def source(self) -> Iterator[Source]:
        source = MongoSource(self.servers, f"c{uuid4().hex[:8]}")
        try:
            yield source
        finally:
            source.client.drop_database(source.name)
            source.client.close()
