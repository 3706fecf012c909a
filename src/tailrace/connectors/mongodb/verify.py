"""Probes of `verify` for MongoDB, in a database of its own: topology, change streams, transactions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from pymongo.change_stream import ChangeStream
from pymongo.errors import OperationFailure, PyMongoError

from tailrace.config import Config
from tailrace.connectors.finding import Finding
from tailrace.connectors.mongodb.client import FAILURES, Client, connect, parts_of
from tailrace.connectors.mongodb.options import MONGODB_CONNECTION_STRING, MONGODB_PASSWORD, MONGODB_USER
from tailrace.connectors.mongodb.snapshot.reads import cluster_time, oldest_time
from tailrace.connectors.mongodb.verify_types import KEYS, TYPES
from tailrace.connectors.probe import (
    BUSY,
    KEY,
    KEYED,
    LARGE,
    NOTE,
    QUIET,
    ROWS,
    VALUE,
    Answer,
    Bench,
    Change,
    Delete,
    Expectation,
    Insert,
    Probe,
    ProbeObject,
    Update,
    Wrong,
)
from tailrace.connectors.probe import TYPES as TYPED
from tailrace.connectors.retry import driver_error_of
from tailrace.errors import SourceError
from tailrace.override import override

_ID, _WATCHED = "_id", "vwatched"
_IMAGES = {"enabled": True}
_OPERATIONS = ["insert", "update", "replace", "delete", "drop"]
_ROLES = ("read", "readWrite", "readAnyDatabase", "readWriteAnyDatabase", "dbAdmin", "clusterMonitor", "backup", "root")
_LOSS = "A pipeline relies on this, and would be wrong here: please send the report."
_UNAUTHORIZED = "grant the user the role readWrite on a database of its own, or take --read-only"


class MongoBench(Bench):
    """Implements Bench. A table is a collection."""

    failures = FAILURES
    types, keys = TYPES, KEYS
    own_tables = (_WATCHED,)
    has_moves, moves_as = False, ()
    deadline_s = 60.0

    def __init__(self, config: Config, schema: str) -> None:
        self.config, self.schema = config, schema
        self.refused: Mapping[str, str] = {}
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The client of most requests."""
        if self._client is None:
            self._client = connect(self.config, "tailrace verify")
        return self._client

    @property
    def _database(self) -> Any:
        return self.client[self.schema]

    @override
    def private(self) -> Iterable[str]:
        text = self.config[MONGODB_CONNECTION_STRING]
        parts = parts_of(text)
        hosts = [each for host, port in parts["nodelist"] for each in (host, f"{host}:{port}")]
        given = [self.config[option] or "" for option in (MONGODB_USER, MONGODB_PASSWORD)]
        words = [text, *hosts, *given, parts["username"], parts["password"], parts["options"].get("replicaset")]
        own = [self.schema] if self.schema != "tailrace_verify" else []
        return {str(each) for each in (*words, *own) if each}

    @override
    def drivers(self) -> Mapping[str, str]:
        return {"pymongo": version("pymongo")}

    @override
    def code(self, error: BaseException) -> str:
        """The server's code, or the class of the driver's error."""
        cause = driver_error_of(error)
        code = cause.code if isinstance(cause, OperationFailure) else None
        return type(cause).__name__ if code is None else str(code)

    @override
    def connect(self, config: Config) -> None:
        client = connect(config, "tailrace verify")
        try:
            client.admin.command("ping")
            # `ping` needs no right, but whoever has given a user is logged in before it.
        finally:
            client.close()

    @override
    def wrong(self) -> Sequence[Wrong]:
        options = self.config[MONGODB_CONNECTION_STRING].partition("?")[2]
        closed = {
            "mongodb.connection.string": f"mongodb://127.0.0.1:1/?{options}",
            "mongodb.server.selection.timeout.ms": "500",
        }
        nobody = {"mongodb.user": "tailrace_verify_nobody", "mongodb.password": "none"}
        return (
            Wrong("closed_port", closed, ("ServerSelectionTimeoutError",), is_retried=True),
            Wrong("unknown_user", nobody, ("18",), is_retried=False),
        )

    @override
    def obstacle(self) -> Finding | None:
        hello = self.client.admin.command("hello")
        if "setName" in hello or hello.get("msg") == "isdbgrid":
            return None
        return Finding("topology", False, "the server is no replica set, so it has no log", "start it with --replSet")

    @override
    def exists(self) -> bool:
        return bool(self._database.list_collection_names())

    @override
    def prepare(self) -> None:
        for table in (ROWS, LARGE, QUIET, BUSY):
            self._database.create_collection(table, changeStreamPreAndPostImages=_IMAGES)
        for group, cases in self.types.items():
            collection = self._database.create_collection(f"{TYPED}_{group}", changeStreamPreAndPostImages=_IMAGES)
            collection.insert_one({_ID: 1, **{case.name: case.literal for case in cases}})
        for place, case in enumerate(self.keys):
            options = {"collation": {"locale": case.declared}} if case.declared else {}
            collection = self._database.create_collection(f"{KEYED}{place}", **options)
            collection.insert_many([{_ID: key} for key in case.keys])

    @override
    def commit(self, *changes: Change) -> None:
        with self.client.start_session() as session:
            session.with_transaction(lambda session: self._change(changes, session))

    def _change(self, changes: Sequence[Change], session: Any) -> None:
        for change in changes:
            collection = self._database[change.table]
            if isinstance(change, Insert):
                document = {_ID: change.key, VALUE: change.value, NOTE: change.note}
                collection.insert_one(document, session=session)
            elif isinstance(change, Update):
                collection.update_one({_ID: change.key}, {"$set": {VALUE: change.value}}, session=session)
            else:
                assert isinstance(change, Delete)
                collection.delete_one({_ID: change.key}, session=session)

    @override
    def fill(self, table: str, first: int, count: int) -> None:
        documents = [{_ID: key} for key in range(first, first + count)]
        with self.client.start_session() as session:
            session.with_transaction(lambda session: self._database[table].insert_many(documents, session=session))

    @override
    def properties(self, *tables: str) -> Mapping[str, str]:
        return {
            **self.config.given,
            "capture.scope": "database",
            "capture.target": self.schema,
            "capture.mode": "change_streams_update_full_with_pre_image",
            "capture.mode.full.update.type": "post_image",
            "collection.include.list": ",".join(f"{self.schema}\\.{table}" for table in tables),
        }

    @override
    def signalled(self, table: str) -> str:
        return f"{self.schema}.{table}"

    @override
    def image(self, written: Any) -> dict[str, Any] | None:
        if written is None:
            return None
        document = json.loads(written, parse_constant=str)  # NaN and Infinity, which no report could have
        return {KEY if name == _ID else name: value for name, value in document.items()}

    @override
    def release(self, *tables: str) -> None:
        """A change stream makes nothing."""

    @override
    def copy_types(self, group: str) -> None:
        collection = self._database[f"{TYPED}_{group}"]
        collection.insert_one({_ID: 2, **{case.name: case.literal for case in self.types[group]}})

    @override
    def undo(self) -> Sequence[ProbeObject]:
        """By collection, so that of a database of that name nothing else goes."""
        return [
            ProbeObject(f"db.getSiblingDB('{self.schema}').{table}.drop()", self._database[table].drop)
            for table in self.tables
        ]

    @override
    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    @override
    def probes(self) -> Sequence[Probe]:
        server, roles = "Which server is this, and how is it set?", "Which roles has the user?"
        has_log = (Expectation("has_log", (True,), "Without a replica set there is no log to read."),)
        stream = (
            Expectation("operations", (_OPERATIONS,), _LOSS),
            Expectation("resumes", (True,), _LOSS),
            Expectation("has_wall_time", (True,), "Events have the time of the cluster's clock, to the second."),
            Expectation(
                "has_pre_images", (True,), "Updates and deletes have no `before` (MongoDB 6 and newer have it)."
            ),
        )
        together = (Expectation("is_one", (True,), "Changes of one transaction may be read apart."),)
        return [
            Probe("identity.server", server, "Behaviour depends on it.", self._identity, has_log, writes=False),
            Probe("rights.roles", roles, "A pipeline needs `read`.", self._roles, writes=False),
            Probe("capture.stream", "What has a change stream?", "Events are right.", self._stream, stream),
            Probe("capture.transaction", _TOGETHER, "A transaction is read as one.", self._transaction, together),
        ]

    def _identity(self) -> Answer:
        admin = self.client.admin
        hello, build = admin.command("hello"), self.client.server_info()
        about = {
            "version": build["version"],
            "modules": build.get("modules", []),
            "is_sharded": hello.get("msg") == "isdbgrid",
            "members": len(hello.get("hosts", ())),
            "max_document_bytes": hello["maxBsonObjectSize"],
            "compatibility": self._answer_or_code(lambda: self._parameter("featureCompatibilityVersion")["version"]),
            "storage": self._answer_or_code(lambda: admin.command("serverStatus")["storageEngine"]["name"]),
            "log_hours": self._answer_or_code(self._window),
        }
        return Answer({"has_log": "setName" in hello or about["is_sharded"]}, about)

    def _parameter(self, name: str) -> Any:
        return self.client.admin.command({"getParameter": 1, name: 1})[name]

    def _window(self) -> float | None:
        first = oldest_time(self.client)
        return None if first is None else round(((cluster_time(self.client) >> 32) - (first >> 32)) / 3600, 1)

    def _answer_or_code(self, ask: Any) -> Any:
        """What a server says, or the code with which it refuses it."""
        try:
            return ask()
        except PyMongoError as error:
            return f"code {self.code(error)}"

    def _roles(self) -> Answer:
        """Roles that every server has: others are names."""
        info = self.client.admin.command("connectionStatus")["authInfo"]
        names = {role["role"] for role in info["authenticatedUserRoles"]}
        about = {
            "roles": sorted(names & {*_ROLES}),
            "others": len(names - {*_ROLES}),
            "logged_in": bool(info["authenticatedUsers"]),
        }
        return Answer(about=about)

    def _stream(self) -> Answer:
        collection = self._database.create_collection(_WATCHED, changeStreamPreAndPostImages=_IMAGES)
        with self._watch() as stream:
            collection.insert_one({_ID: 1, VALUE: 1})
            collection.update_one({_ID: 1}, {"$set": {VALUE: 2}})
            collection.replace_one({_ID: 1}, {VALUE: 3})
            collection.delete_one({_ID: 1})
            collection.drop()
            events = self._events(stream, len(_OPERATIONS))
        with self._watch(resume_after=events[1][_ID]) as stream:
            again = self._events(stream, len(_OPERATIONS) - 2)
        facts = {
            "operations": [event["operationType"] for event in events],
            "fields": sorted({name for event in events for name in event}),
            "resumes": [event[_ID] for event in again] == [event[_ID] for event in events[2:]],
            "has_wall_time": all("wallTime" in event for event in events),
            "has_pre_images": all("fullDocumentBeforeChange" in event for event in events[1:4]),
        }
        return Answer(facts)

    def _watch(self, **options: Any) -> ChangeStream[dict[str, Any]]:
        mine = [{"$match": {"ns.coll": _WATCHED}}]
        images = {"full_document": "updateLookup", "full_document_before_change": "whenAvailable"}
        stream: ChangeStream[dict[str, Any]] = self._database.watch(mine, **images, **options)
        return stream

    def _events(self, stream: ChangeStream[dict[str, Any]], count: int) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        deadline = time.monotonic() + self.deadline_s
        while len(events) < count:
            if time.monotonic() > deadline:
                raise SourceError(f"{len(events)} of {count} events have arrived")
            event = stream.try_next()
            events += [] if event is None else [event]
        return events

    def _transaction(self) -> Answer:
        self._database.create_collection(_WATCHED)
        with self._watch() as stream:
            self.commit(Insert(_WATCHED, 1), Insert(_WATCHED, 2))
            events = self._events(stream, 2)
        marks = [(event.get("txnNumber"), str(event.get("lsid")), event["clusterTime"]) for event in events]
        return Answer({"is_one": marks[0] == marks[1] and marks[0][0] is not None})


_TOGETHER = "Can the events of one transaction be told from others?"
