"""Implements the port Admin for MongoDB: checks, collections, status, comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pymongo.errors import OperationFailure

from tailrace.config import Config
from tailrace.connectors.debezium_offset import OffsetEntry
from tailrace.connectors.finding import Finding
from tailrace.connectors.mongodb import takeover
from tailrace.connectors.mongodb.catalog import Collections
from tailrace.connectors.mongodb.client import FAILURES, RAW, UNAUTHORIZED, Client, Server, addresses
from tailrace.connectors.mongodb.config import is_for_replica
from tailrace.connectors.mongodb.connector import MongoConnector
from tailrace.connectors.mongodb.log.oplog import gap_of_oplog
from tailrace.connectors.mongodb.log.pipeline import stages
from tailrace.connectors.mongodb.log.stream import opening_of, target
from tailrace.connectors.mongodb.options import (
    CAPTURE_MODE,
    CAPTURE_MODE_FULL_UPDATE_TYPE,
    CAPTURE_MODE_PRE_IMAGE,
    CAPTURE_SCOPE,
    OPLOG,
    POST_IMAGE_REQUIRED,
    REQUIRED,
)
from tailrace.connectors.mongodb.position import end_of, start_options
from tailrace.connectors.mongodb.replica_checks import keeping_images, keeps_images, replica_findings
from tailrace.connectors.mongodb.snapshot.reads import cluster_time, oldest_time
from tailrace.connectors.mongodb.snapshot.splits import size_of
from tailrace.connectors.mongodb.source_now import MongoNow
from tailrace.connectors.offset import position_of
from tailrace.connectors.ports import Detail, Position, SourceNow, SourceState, TableOverview
from tailrace.connectors.retry import at_once
from tailrace.connectors.shared_log import SharedLogAdmin
from tailrace.errors import SourceError
from tailrace.model.table import TableId
from tailrace.override import override


@dataclass(frozen=True, order=True)
class LogPosition:
    """Implements Position."""

    text: str

    def to_text(self) -> str:
        """As it is printed."""
        return self.text

    def distance(self, other: Any) -> int | None:
        """None, as there is no measure in bytes."""
        return None


class MongoAdmin(SharedLogAdmin):
    """Implements Admin. Each method makes a client of its own."""

    connector = MongoConnector

    @override
    def server_findings(self) -> list[Finding]:
        with self._server() as server:
            findings: list[Finding] = server.ask(self._findings)
            return findings

    def _findings(self, client: Client) -> list[Finding]:
        cluster_time(client)
        version = client.server_info()["version"]
        findings = [Finding("server", True, f"MongoDB {version} at {addresses(self.config)}")]
        findings.append(self._stream(client))
        tables = Collections(client, self.config).captured()
        if tables:
            findings.append(Finding("collections", True, f"{len(tables)} collections are captured"))
        else:
            remedy = "change collection.include.list and database.include.list, unless the collections come later"
            findings.append(Finding("collections", None, "no collection is captured", remedy))
        if "pre_image" in self.config[CAPTURE_MODE] or _required_images(self.config):
            without = [table for table in tables if not keeps_images(client, table)]
            findings += [_without_images(self.config, table) for table in without]
        if is_for_replica(self.config):
            findings += replica_findings(client, self.config, tables)
        window = _window(client)
        return [*findings, *([] if window is None else [window])]

    def _stream(self, client: Client) -> Finding:
        """Whether the log can be read: the oplog, or a change stream with the pipeline's stages."""
        if self.config[CAPTURE_MODE] == OPLOG:
            return _oplog(client, self.config)
        database, collection = target(self.config)
        start = start_options(end_of(cluster_time(client)))
        try:
            answer = client[database].command(
                {
                    "aggregate": opening_of(collection),
                    "pipeline": stages(self.config, start),
                    "cursor": {"batchSize": 1},
                },
                codec_options=RAW,
            )
            client[database].command({"killCursors": collection, "cursors": [answer["cursor"]["id"]]})
        except OperationFailure as error:
            remedy = "see cursor.pipeline"
            if error.code == UNAUTHORIZED:
                remedy = _right_to_watch(client, database)
            return Finding(
                "change stream", False, f"the change stream cannot be opened: {FAILURES.line(error)}", remedy
            )
        return Finding("change stream", True, f"the change stream of the {self.config[CAPTURE_SCOPE]} opens")

    @override
    def overview(self) -> list[TableOverview]:
        def tables(client: Client) -> list[TableOverview]:
            tables = Collections(client, self.config).all()
            return [_overview(client, table) for table in sorted(tables)]

        with self._server() as server:
            return server.ask(tables)

    @override
    def unreadable(self, tables: Sequence[TableId]) -> Finding:
        names = ", ".join(map(str, tables))
        return Finding("find", False, f"the user may not read {names}", "grant the role read on the database")

    @override
    def taken_position(self) -> str | None:
        return takeover.position_of(self.config)

    @override
    def as_debezium(self, position: Position) -> list[OffsetEntry]:
        with self._server() as server:
            entries: list[OffsetEntry] = server.ask(
                lambda client: takeover.entries_of(client, self.config, position.to_text())
            )
            return entries

    @override
    def position(self, offset: Mapping[str, Any]) -> LogPosition | None:
        text = position_of(offset)
        return None if text is None else LogPosition(text)

    @override
    def state(self, pipeline: str | None = None) -> SourceState:
        def state(client: Client) -> SourceState:
            window = _window(client)
            details = () if window is None else (Detail("oplog", window.what, is_fine=window.ok is True),)
            return SourceState(LogPosition(end_of(cluster_time(client))), details=details)

        with self._server() as server:
            return server.ask(state)

    @override
    def extended(self) -> str:
        return "the change stream"

    @contextmanager
    @override
    def now(self) -> Iterator[SourceNow]:
        with self._server() as server:
            yield MongoNow(server.client, self.config, LogPosition(end_of(server.ask(cluster_time))))

    @contextmanager
    def _server(self) -> Iterator[Server]:
        server = Server(at_once(self.config), "tailrace admin")
        try:
            yield server
        finally:
            server.close()


_READERS = ("read", "readWrite", "dbOwner")


def _right_to_watch(client: Client, database: str) -> str:
    """What lets the user open the change stream of a database; of `admin` it is that of the deployment."""
    if database != "admin":
        return f"grant the user the role read on {database}"
    roles = client.admin.command("connectionStatus")["authInfo"]["authenticatedUserRoles"]
    databases = sorted({each["db"] for each in roles if each["role"] in _READERS} - {"admin"})
    remedy = "grant the user the role readAnyDatabase, which capture.scope=deployment needs"
    if not databases:
        return f"{remedy}; for one database: the role read on it, capture.scope=database and capture.target=<database>"
    return (
        f"set capture.scope=database and capture.target={' or '.join(databases)}, which the user may read; or {remedy}"
    )


def _oplog(client: Client, config: Config) -> Finding:
    try:
        gap_of_oplog(client, config, end_of(cluster_time(client)))
    except SourceError as error:
        return Finding("oplog", False, error.what, error.remedy)
    return Finding("oplog", True, "the oplog can be read")


def _overview(client: Client, table: TableId) -> TableOverview:
    collection = client[table.database][table.table]
    try:
        return TableOverview(table, collection.estimated_document_count(), size_of(client, table), has_key=True)
    except OperationFailure as error:
        if error.code != UNAUTHORIZED:
            raise
        return TableOverview(table, 0, 0, has_key=True, is_readable=False)


def _required_images(config: Config) -> list[str]:
    """Which images a change has to have."""
    pre, post = config[CAPTURE_MODE_PRE_IMAGE] == REQUIRED, config[CAPTURE_MODE_FULL_UPDATE_TYPE] == POST_IMAGE_REQUIRED
    return [name for name, is_required in (("pre-images", pre), ("post-images", post)) if is_required]


def _without_images(config: Config, table: TableId) -> Finding:
    """Of a collection that does not keep images: a problem where they are required, else a warning."""
    required = _required_images(config)
    if required:
        what = f"{table} keeps no {' or '.join(required)}, which are required: its next change ends the pipeline"
        return Finding("images", False, what, keeping_images(table))
    return Finding("pre-images", None, f"{table} keeps no pre-images, so `before` is null", keeping_images(table))


def _window(client: Client) -> Finding | None:
    """How far back the log goes; None where the user may not see it, or through mongos."""
    first = oldest_time(client)
    if first is None:
        return None
    hours = ((cluster_time(client) >> 32) - (first >> 32)) / 3600
    return Finding("oplog", True, f"the log goes back {hours:,.1f} hours")
