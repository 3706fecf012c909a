"""Sends notifications about the progress of snapshots (`notification.enabled.channels`)."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.options.snapshot import (
    NOTIFICATION_CALLBACK,
    NOTIFICATION_ENABLED_CHANNELS,
    NOTIFICATION_FILE,
    NOTIFICATION_SINK_TOPIC_NAME,
)
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.connectors import notification_http
from tailrace.model.change import ControlBatch
from tailrace.model.schema import INT64, STRING, ConnectSchema, Field
from tailrace.model.text.json import dump

log = logging.getLogger(__name__)

Payload = dict[str, Any]

INITIAL, INCREMENTAL, REPLICA = "Initial Snapshot", "Incremental Snapshot", "Replica"
STARTED, IN_PROGRESS, COMPLETED, SCANNED = "STARTED", "IN_PROGRESS", "COMPLETED", "TABLE_SCAN_COMPLETED"
CHUNK_IN_PROGRESS, CHUNK_COMPLETED = "TABLE_CHUNK_IN_PROGRESS", "TABLE_CHUNK_COMPLETED"
PAUSED, RESUMED, ABORTED, SKIPPED = "PAUSED", "RESUMED", "ABORTED", "SKIPPED"
SET_ASIDE = "SET_ASIDE"
# The status of a table that a signal names and the lists exclude: it is never read.
NOT_CAPTURED = "NOT_CAPTURED"
# Why a table was given up. The reference engine has the status alone, and so have the events of the sink channel.
ERROR = "error"

_COMMON = "io.debezium.connector.common."
KEY = ConnectSchema("struct", name=_COMMON + "NotificationKey", version=1, fields=(Field("id", STRING),))
VALUE = ConnectSchema(
    "struct",
    name=_COMMON + "Notification",
    version=1,
    fields=(
        Field("id", STRING),
        Field("type", STRING),
        Field("aggregate_type", STRING),
        Field("additional_data", ConnectSchema("map", optional=True, keys=STRING, values=STRING)),
        Field("timestamp", INT64),
    ),
)


@dataclass(frozen=True, slots=True)
class Notice:
    """One notification; `data` are its additional data, `id` a signal's (None: one is drawn).

    If `data` lacks `total_rows_scanned` although the type has it, the task that reads the rows adds it.
    """

    aggregate: str
    type: str
    data: tuple[tuple[str, str], ...] = ()
    id: str | None = None

    def with_rows(self, rows: int) -> Notice:
        """The notice with the number of rows where it is to have one."""
        if self.type != SCANNED or any(name == "total_rows_scanned" for name, _ in self.data):
            return self
        return Notice(self.aggregate, self.type, (*self.data, ("total_rows_scanned", str(rows))), self.id)


WITHOUT_ROWS: tuple[Notice, ...] = (Notice(INITIAL, STARTED), Notice(INITIAL, COMPLETED))
"""The notices of a snapshot that reads no table."""


def is_wanted(config: Config) -> bool:
    """Whether anybody listens."""
    return bool(config[NOTIFICATION_ENABLED_CHANNELS])


def notify(config: Config, notices: Iterable[Notice]) -> tuple[ControlBatch, ...]:
    """Tell log, file, callback and http, where they are channels, and make the records of the sink channel's topic.

    A task does it, for the rows it reads; if a channel fails, this is logged, and nothing stops.
    """
    channels = config[NOTIFICATION_ENABLED_CHANNELS]
    payloads = [_payload(notice, config[TOPIC_PREFIX]) for notice in notices]
    if "log" in channels:
        for payload in payloads:
            log.info("[Notification Service]  %s", json.dumps(payload))
    if "file" in channels and payloads:
        _append(Path(config.need(NOTIFICATION_FILE)), payloads)
    if "callback" in channels:
        for payload in payloads:
            _call(config.need(NOTIFICATION_CALLBACK), payload)
    if "http" in channels and payloads:
        notification_http.channel(notification_http.Endpoint.of(config)).post(payloads)
    if "sink" not in channels or not payloads:
        return ()
    events = [_as_event(payload) for payload in payloads]
    columns = [
        pa.array([dump({"id": event["id"]}) for event in events], pa.string()),
        pa.array([dump(event) for event in events], pa.string()),
        pa.nulls(len(payloads), pa.int32()),
    ]
    rows = pa.record_batch(columns, names=["key", "value", "partition"])
    return (ControlBatch(config.need(NOTIFICATION_SINK_TOPIC_NAME), KEY, VALUE, rows),)


def _append(file: Path, payloads: list[Payload]) -> None:
    lines = "".join(json.dumps(payload) + "\n" for payload in payloads)
    try:
        # One write: other tasks append to the same file at the same time.
        with file.open("a", encoding="utf-8") as stream:
            stream.write(lines)
    except OSError as error:
        log.error("notification.file %s cannot be written: %s", file, error.strerror)


def _call(name: str, payload: dict[str, object]) -> None:
    try:
        EntryPoint("callback", name, "").load()(dict(payload))
    except Exception:
        log.exception("notification.callback %s failed of %s", name, payload)


def _as_event(payload: Payload) -> Payload:
    """The notification as the reference engine has it."""
    data = {name: value for name, value in payload["additional_data"].items() if name != ERROR}
    return {**payload, "additional_data": data}


def _payload(notice: Notice, connector: str) -> Payload:
    return {
        "id": notice.id or str(uuid.uuid4()),
        "type": notice.type,
        "aggregate_type": notice.aggregate,
        "additional_data": {**dict(notice.data), "connector_name": connector},
        "timestamp": time.time_ns() // 1_000_000,
    }


def scanned(aggregate: str, table: str, tables: str, status: str = "SUCCEEDED", id_: str | None = None) -> Notice:
    """A table's rows are read; their number is filled in later."""
    data = (("scanned_collection", table), *_listed(tables), ("status", status))
    return Notice(aggregate, SCANNED, data, id_)


def in_progress(aggregate: str, table: str, tables: str, *more: tuple[str, str], id_: str | None = None) -> Notice:
    """A table is being read."""
    data = (("current_collection_in_progress", table), *_listed(tables), *more)
    return Notice(aggregate, IN_PROGRESS, data, id_)


def _listed(tables: str) -> tuple[tuple[str, str], ...]:
    """The tables of the whole snapshot, for databases whose notices have them."""
    return (("data_collections", tables),) if tables else ()


def chunk_begins(table: str, index: int, of: int, rows: int = 0) -> Notice:
    """A part of a table is being read by a first snapshot, after so many rows of it."""
    place = (("chunk_index", str(index)), ("total_chunks", str(of)), ("total_rows_scanned", str(rows)))
    return Notice(INITIAL, CHUNK_IN_PROGRESS, (("current_collection_in_progress", table), *place))


def chunk_ends(table: str, index: int, of: int, tables: str) -> Notice:
    """A part of a table is read."""
    place = (("chunk_index", str(index)), ("total_chunks", str(of)), ("status", "SUCCEEDED"))
    return Notice(INITIAL, CHUNK_COMPLETED, (("scanned_collection", table), *_listed(tables), *place))
