"""Whether two recordings of events agree once everything that differs from run to run is replaced by a marker.

A recording is a list of `{"topic", "partition", "key", "value", "headers"}`. Key, value and headers are what Connect's
JSON converter writes, parsed: `{"schema", "payload"}`, or a bare payload. `run` is how many stops of the connector were
before the event; 0 if it is not there. Clocks, log positions and random ids become markers, null stays null; ids that
must repeat where they repeated before (transactions, SQL Server's log positions) are numbered by first appearance in
their topic. All else, schemas included, has to be equal, topic by topic and in order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Rules = Mapping[str, Any]

VOLATILE = "<volatile>"
ABSENT = "<absent>"

_CLOCKS = ("ts_ms", "ts_us", "ts_ns")
_OF_SOURCE = (*_CLOCKS, "version", "lsn", "origin_lsn", "xmin", "sequence", "ord", "wallTime", "lsid", "txnNumber")
_OF_INCREMENTAL_READS = ("commit_lsn", "change_lsn", "event_serial_no")
_SNAPSHOT_PLACES = ("true", "first", "first_in_data_collection", "last_in_data_collection", "last")
_RUN_ID = "__debezium.context.runId"
HEARTBEATS = r"^__debezium-heartbeat(?![a-z])"
# SQL Server's log sequence numbers have 10 bytes, Db2's 16.
_SERVER_LSN = re.compile(r"^[0-9a-f]{8}:[0-9a-f]{8}:[0-9a-f]{4}(?:[0-9a-f]{12})?$")
_XID_AND_LSN = re.compile(r"^(\d+):\d+$")
_TRANSACTION_ID = re.compile(rf"{_XID_AND_LSN.pattern}|^\{{.*\}}:\d+$|{_SERVER_LSN.pattern}")
_JAVA_IDENTITY = re.compile(r"@[0-9a-f]+$")
_WINDOW_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-(open|close)\b")
_WINDOW_TIME = re.compile(r'("(?:open|close)WindowTimestamp": )"[^"]*"')


@dataclass(frozen=True)
class Difference:
    """One place where recordings differ; `index` counts the topic's events, None where their number differs."""

    topic: str
    index: int | None
    event: str
    path: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        where = self.topic if self.index is None else f"{self.topic}[{self.index}] {self.event}: {self.path}"
        expected, found = (json.dumps(side, ensure_ascii=False) for side in (self.expected, self.found))
        return f"{where}: expected {expected}, found {found}"


def compare(expected: Iterable[Event], found: Iterable[Event], rules: Rules | None = None) -> Iterator[Difference]:
    """Every difference, topics by name. `rules` is what a scenario.json holds, see the README beside this file."""
    rules = rules or {}
    expected = list(expected)
    last_run = max((event.get("run", 0) for event in expected), default=0)
    wanted, got = _topics(expected, rules), _topics(found, rules)
    for topic in sorted({*wanted, *got}):
        left, right = (_prepared(side[topic].events if topic in side else [], rules) for side in (wanted, got))
        if topic in wanted:
            right = _without_lost_ends(right, wanted[topic].left_open(last_run, at_stops=bool(rules.get("lost_ends"))))
        if len(left) != len(right):
            yield Difference(topic, None, "", "", f"{len(left)} events", f"{len(right)} events")
        for index, (one, other) in enumerate(zip(left, right, strict=False)):
            for path, ours, theirs in _differences(one, other, ""):
                yield Difference(topic, index, _title(one), path, ours, theirs)


def load(path: Path) -> list[Event]:
    """The events of a `.jsonl` file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def payload_of(document: Any) -> Any:
    """The payload of a key or a value, with or without a schema around it."""
    return document["payload"] if _has_schema(document) else document


class _Topic:
    """The events of one topic, masked; equal neighbours count once in a collapsed one."""

    def __init__(self, collapsed: bool) -> None:
        self.collapsed = collapsed
        self.events: list[Event] = []
        self._runs: list[int] = []
        self._numbers: dict[str, dict[Any, int]] = {}

    def add(self, event: Event) -> None:
        masked = {
            "topic": event["topic"],
            "partition": event.get("partition"),
            "key": self._document(event["key"]),
            "value": self._document(event["value"]),
            "headers": {name: _header(name, value) for name, value in sorted((event.get("headers") or {}).items())},
            "added": event.get("added") or None,
        }
        notice = payload_of(masked["value"])
        if isinstance(notice, dict) and "aggregate_type" in notice:
            for part in ("key", "value"):
                payload_of(masked[part])["id"] = VOLATILE
        if not (self.collapsed and self.events and self.events[-1] == masked):
            self.events.append(masked)
            self._runs.append(event.get("run", 0))

    def left_open(self, last_run: int, *, at_stops: bool) -> set[Any]:
        """The last transaction, if it has no end: the reference sends it when the next change comes.

        With `at_stops` also those that were open when the connector was stopped, and have no end later.
        """
        begun = [_marked(event, "BEGIN") for event in self.events]
        following = [*self._runs[1:], last_run] if at_stops else self._runs
        runs = zip(begun, self._runs, following, strict=True)
        latest = [transaction for transaction, run, next_run in runs if run < next_run]
        last = [transaction for transaction in begun if transaction is not None][-1:]
        return {*latest, *last} - {_marked(event, "END") for event in self.events} - {None}

    def _numbered(self, kind: str, value: Any) -> Any:
        if not isinstance(value, (str, int)):  # null, or malformed
            return value
        if self.collapsed:
            return VOLATILE
        seen = self._numbers.setdefault(kind, {})
        return f"<{kind} {seen.setdefault(value, len(seen) + 1)}>"

    def _transaction(self, text: Any) -> Any:
        """PostgreSQL's id is "xid:lsn", whose lsn differs between the events of one transaction."""
        return self._numbered("transaction", _XID_AND_LSN.sub(r"\1", text) if isinstance(text, str) else text)

    def _document(self, document: Any) -> Any:
        if _has_schema(document):
            return {**document, "payload": self._payload(document["payload"])}
        return self._payload(document)

    def _payload(self, payload: Any) -> Any:
        if not isinstance(payload, dict):
            return payload
        if payload.get("status") in ("BEGIN", "END"):
            return self._transaction_marker(payload)
        if "op" in payload and "source" in payload:
            return self._envelope(payload)
        if "aggregate_type" in payload:
            details = self._server_lsns(payload.get("additional_data"))
            return {**_masked(payload, ("timestamp",)), "additional_data": details}
        if 0 < len(payload) <= 2 and all(isinstance(text, str) for text in payload.values()):
            return {name: self._id(name, text) for name, text in payload.items()}
        if "tableChanges" in payload:
            return {**_masked(payload, _CLOCKS), "source": self._source(payload["source"])}
        if set(payload) <= set(_CLOCKS):
            return _masked(payload, _CLOCKS)
        return {name: self._added(name, value) for name, value in payload.items()}

    def _added(self, name: str, value: Any) -> Any:
        """A field of a row without envelope; `add.fields` may have added a clock or the transaction's id to it."""
        if name.endswith(_CLOCKS) and isinstance(value, int):
            return VOLATILE
        is_transaction = name.endswith("transaction_id") and isinstance(value, str) and _TRANSACTION_ID.match(value)
        return self._transaction(value) if is_transaction else value

    def _id(self, name: str, text: str) -> Any:
        """A key's text: of a transaction, of a signal's row, perhaps beside its table's name, or of a row."""
        is_transaction = name == "id" and _TRANSACTION_ID.match(text)
        return _window_text(self._transaction(text) if is_transaction else text)

    def _transaction_marker(self, payload: Event) -> Event:
        marker = {**_masked(payload, _CLOCKS), "id": self._transaction(payload["id"])}
        if marker.get("data_collections"):
            named = [
                {**entry, "data_collection": _JAVA_IDENTITY.sub("@<identity>", entry["data_collection"])}
                for entry in marker["data_collections"]
            ]
            marker["data_collections"] = sorted(named, key=lambda entry: str(entry["data_collection"]))
        return marker

    def _envelope(self, payload: Event) -> Event:
        envelope = {**_masked(payload, _CLOCKS), "source": self._source(payload["source"])}
        block = payload.get("transaction")
        if isinstance(block, dict):
            envelope["transaction"] = {**block, "id": self._transaction(block.get("id"))}
        for image in ("before", "after"):
            envelope[image] = _row(payload.get(image))
        return envelope

    def _source(self, source: Any) -> Any:
        if not isinstance(source, dict):
            return source
        masked = _masked(source, _OF_SOURCE)
        if source.get("ord") == -1:  # MongoDB's snapshot reads
            masked["ord"] = -1
        if "txId" in source:
            masked["txId"] = self._numbered("txId", source["txId"])
        if source.get("snapshot") == "incremental":
            masked = _masked(masked, _OF_INCREMENTAL_READS)
        return self._server_lsns(masked)

    def _server_lsns(self, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        return {
            name: self._numbered("lsn", value) if isinstance(value, str) and _SERVER_LSN.match(value) else value
            for name, value in fields.items()
        }


def _topics(events: Iterable[Event], rules: Rules) -> dict[str, _Topic]:
    ignored, collapsed = rules.get("ignore_topics", ()), (HEARTBEATS, *rules.get("collapse_topics", ()))
    topics: dict[str, _Topic] = {}
    for event in _without_repetitions(events):
        name = event["topic"]
        if any(re.search(pattern, name) for pattern in ignored):
            continue
        if name not in topics:
            topics[name] = _Topic(any(re.search(pattern, name) for pattern in collapsed))
        topics[name].add(event)
    return topics


def _without_repetitions(events: Iterable[Event]) -> Iterator[Event]:
    """The events without changes of structure that tell what is known: Db2's engine sends one with most changes."""
    known: dict[str, Any] = {}
    for event in events:
        payload = payload_of(event["value"])
        if isinstance(payload, dict) and "tableChanges" in payload and _connector(payload) == "db2":
            told = {change["id"]: change["table"] for change in payload["tableChanges"]}
            if all(known.get(name) == table for name, table in told.items()):
                continue
            known.update(told)
        yield event


def _connector(payload: Event) -> Any:
    """None where a transform has taken the source apart."""
    return (payload.get("source") or {}).get("connector")


def _prepared(events: list[Event], rules: Rules) -> list[Event]:
    if not rules.get("partitions"):
        events = [{**event, "partition": None} for event in events]
    if rules.get("unordered_reads"):
        runs = [(is_read, list(run)) for is_read, run in groupby(events, _is_incremental_read)]
        events = [event for is_read, run in runs for event in (sorted(run, key=_key_text) if is_read else run)]
    if rules.get("any_snapshot_order"):
        events = [_without_place(event) for event in events]
    return _final_state(events) if rules.get("final_state") else events


def _without_lost_ends(found: list[Event], lost: set[Any]) -> list[Event]:
    """Without the ends of these transactions."""
    return [event for event in found if _marked(event, "END") not in lost]


def _marked(event: Event, status: str) -> Any:
    """The transaction that the event begins or ends, as `status` says; None for other events."""
    payload = payload_of(event["value"])
    return payload["id"] if isinstance(payload, dict) and payload.get("status") == status else None


def _final_state(events: list[Event]) -> list[Event]:
    """The last row image of every key: what a reader that upserts ends up with."""
    state: dict[str, Event] = {}
    for event in events:
        key, value = payload_of(event["key"]), payload_of(event["value"])
        if isinstance(value, dict) and "after" in value:
            state[json.dumps(key, sort_keys=True)] = {"topic": event["topic"], "key": key, "value": value["after"]}
    return [state[key] for key in sorted(state)]


def _without_place(event: Event) -> Event:
    """Forget whether the row was the first, the last or any other of its snapshot."""
    payload = payload_of(event["value"])
    if _snapshot(payload) not in _SNAPSHOT_PLACES:
        return event
    masked = {**payload, "source": {**payload["source"], "snapshot": "<read>"}}
    return {**event, "value": {**event["value"], "payload": masked} if _has_schema(event["value"]) else masked}


def _is_incremental_read(event: Event) -> bool:
    return bool(_snapshot(payload_of(event["value"])) == "incremental")


def _snapshot(payload: Any) -> Any:
    source = payload.get("source") if isinstance(payload, dict) else None
    return source.get("snapshot") if isinstance(source, dict) else None


def _key_text(event: Event) -> str:
    return json.dumps(payload_of(event["key"]))


def _has_schema(document: Any) -> bool:
    return isinstance(document, dict) and set(document) == {"schema", "payload"}


def _masked(fields: dict[str, Any], names: Iterable[str]) -> Event:
    return {**fields, **{name: VOLATILE for name in names if fields.get(name) is not None}}


def _header(name: str, header: Any) -> Any:
    if name != _RUN_ID or header is None:
        return header
    return {**header, "payload": VOLATILE} if _has_schema(header) else VOLATILE


def _row(row: Any) -> Any:
    """A row image; the rows that a connector writes to its signal table lose their random ids and times."""
    if not isinstance(row, dict):
        return _window_text(row)
    if any(isinstance(value, str) and _WINDOW_ID.search(value) for value in row.values()):
        return {name: _window_text(value) for name, value in row.items()}
    return row


def _window_text(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return _WINDOW_TIME.sub(r'\1"<time>"', _WINDOW_ID.sub(r"<uuid>-\1", value))


def _differences(expected: Any, found: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in [*expected, *(name for name in found if name not in expected)]:
            inner = f"{path}.{name}" if path else name
            yield from _differences(expected.get(name, ABSENT), found.get(name, ABSENT), inner)
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{path} (length)", _names(expected), _names(found)
        for index, (one, other) in enumerate(zip(expected, found, strict=False)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif expected != found or isinstance(expected, bool) != isinstance(found, bool):  # 1 == True in Python
        yield path, expected, found


def _names(values: list[Any]) -> list[Any]:
    """Schema fields by their names, anything else as it is."""
    return [value.get("field", value) if isinstance(value, dict) else value for value in values]


def _title(event: Event) -> str:
    """Which event is meant, for a person."""
    payload = payload_of(event.get("value"))
    what = payload.get("op", payload.get("status")) if isinstance(payload, dict) else None
    key = json.dumps(payload_of(event.get("key")), ensure_ascii=False)
    return f"op={what if payload is not None else 'tombstone'} key={key}"
