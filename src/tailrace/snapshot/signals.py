"""Parses signals, as Debezium's signal table and topics contain them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.base import Key
from tailrace.connectors.signal import DATA_BYTES, Signal
from tailrace.errors import SignalError
from tailrace.model.table_id import TableId
from tailrace.model.text import json_reader as json_text
from tailrace.snapshot.matching import matching

log = logging.getLogger(__name__)

EXECUTE, STOP, PAUSE, RESUME, LOG = "execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot", "log"
ABOUT_SNAPSHOTS = (EXECUTE, STOP, PAUSE, RESUME)
ADD, REMOVE = "add-tables", "remove-tables"
INCREMENTAL, BLOCKING = "incremental", "blocking"

# Keys that one chunk reads, and that one signal may name: they are part of every offset until they are read.
KEYS_AT_ONCE, MOST_KEYS = 1000, 10_000

_CONDITIONS = 'list of {"data-collection": ..., "filter": ...}, both texts'


def check_size(signal: Signal) -> None:
    """Raise SignalError for a signal that is too large."""
    if len(signal.data or "") > DATA_BYTES:
        raise SignalError(f"its data is longer than {DATA_BYTES:,} characters", remedy="ask for less at a time")
    keys = _content(signal).get("keys")
    if isinstance(keys, list) and len(keys) > MOST_KEYS:
        parts = -(-len(keys) // MOST_KEYS)
        what = f"it names {len(keys):,} keys, and a signal may name {MOST_KEYS:,}"
        raise SignalError(what, remedy=f"send {parts} signals, each when the one before it is done")


def check_no_surrogate(signal: Signal) -> None:
    """Raise SignalError for a signal with a key that this database's tables cannot be read by."""
    content = _content(signal)
    if content.get("surrogate-key") and str(content.get("type")).lower() != BLOCKING:
        what = f"surrogate-key is not supported here, and it names {content['surrogate-key']}"
        raise SignalError(what, remedy="send the signal without it: rows are read in the order of their own key")


def _content(signal: Signal) -> dict[str, Any]:
    """What a signal that reads tables has in its data; nothing also where that cannot be read, which others log."""
    if signal.type not in (EXECUTE, ADD):
        return {}
    try:
        content = json_text.read(signal.data or "{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def parsed(text: str, name: str | None) -> Signal | None:
    """The signal in a line of a file or a message; `name` is its id where it has none of its own.

    None, with a warning that holds the text, when it is no signal.
    """
    try:
        node = json_text.read(text)
        data = node.get("data")
        text_of_data = data if data is None or isinstance(data, str) else json.dumps(data)
        own = node.get("id")
        if own is None and name is None:
            raise KeyError("id")
        return Signal(str(name if own is None else own), str(node["type"]), text_of_data)
    except (ValueError, KeyError, AttributeError, TypeError):
        log.warning("no signal, so it is ignored: %s", text)
        return None


@dataclass(frozen=True, slots=True)
class TableRequest:
    """A table that is to be read: by which signal, in which way, which of its rows, by which key.

    Or the rows of some keys (texts) alone, those that are there no more included. `table` is the table's shown name;
    `leading` are its parts before the last one, given where one of them has a dot. `is_again`: a replica asks for a
    table that it has but that may differ, so it is read at the configured rate, and as a whole if not in chunks.
    """

    signal: str
    kind: str
    table: str
    condition: str | None = None
    _: KW_ONLY
    surrogate: str | None = None
    keys: tuple[Key, ...] | None = None
    leading: tuple[str, ...] = ()
    is_again: bool = False

    @property
    def whole(self) -> str | None:
        """The signal, if it asks for every row of the table."""
        return None if self.condition is not None or self.keys is not None else self.signal

    def id(self, config: Config) -> TableId:
        """The table's identity under the names that the configured connector gives to tables."""
        return table_of(config, self.table, self.leading)

    def to_json(self) -> dict[str, Any]:
        """For an offset."""
        return {
            "signal": self.signal,
            "kind": self.kind,
            "table": self.table,
            **({} if self.condition is None else {"condition": self.condition}),
            **({} if self.surrogate is None else {"surrogate": self.surrogate}),
            **({} if self.keys is None else {"keys": [list(key) for key in self.keys]}),
            **({"leading": list(self.leading)} if self.leading else {}),
            **({"again": True} if self.is_again else {}),
        }

    @staticmethod
    def from_json(node: dict[str, Any]) -> TableRequest:
        """The inverse of `to_json`."""
        keys = node.get("keys")
        return TableRequest(
            node["signal"],
            node["kind"],
            node["table"],
            node.get("condition"),
            surrogate=node.get("surrogate"),
            keys=None if keys is None else tuple(tuple(key) for key in keys),
            leading=tuple(node.get("leading", ())),
            is_again=node.get("again", False),
        )


def table_of(config: Config, name: str, leading: tuple[str, ...] = ()) -> TableId:
    """The identity of a table by its shown name; `leading` are the parts before the last one, where they have dots."""
    shown, database = config.naming.shown, config.get(DATABASE_DBNAME, "")
    leading = leading or tuple(name.split(".")[: len(shown) - 1])
    parts = (*leading, name[len(".".join(leading)) + 1 :])
    part_by_name = {"database": database, "schema": ""} | dict(zip(shown, parts, strict=False))
    return TableId(part_by_name["database"], part_by_name["schema"], part_by_name.get("table", ""), shown)


def requests(signal: Signal, tables: Iterable[TableId]) -> list[TableRequest]:
    """What an execute-snapshot signal asks for, table by table. Malformed parts are logged and ignored.

    Raises SignalError for expressions that take too long.
    """
    captured = list(tables)
    # Two tables may have one name: "a.b".c and a."b.c". Both are read.
    leading: dict[str, list[tuple[str, ...]]] = {}
    for table in captured:
        has_dots = any("." in part for part in table.parts[:-1])
        leading.setdefault(str(table), []).append(table.parts[:-1] if has_dots else ())
    return [
        replace(request, leading=each)
        for request in _requests(signal, captured)
        for each in leading.get(request.table, [()])
    ]


def _requests(signal: Signal, tables: list[TableId]) -> list[TableRequest]:
    content = signal.content()
    if content is None:
        return []
    kind = str(content.get("type") or INCREMENTAL).lower()
    if kind not in (INCREMENTAL, BLOCKING):
        log.warning("signal %s is ignored: %r is no type of snapshot (incremental, blocking)", signal.id, kind)
        return []
    captured = list(dict.fromkeys(map(str, tables)))
    listed = _expanded(signal, content, captured)
    tables_listed = [name for name in listed if name in captured]
    if not tables_listed:
        log.warning("signal %s names no table to read: %s", signal.id, signal.shown)
    surrogate = content.get("surrogate-key") or None
    if surrogate is not None and not isinstance(surrogate, str):
        log.warning("signal %s is ignored: its surrogate-key is no text: %s", signal.id, signal.shown)
        return []
    if content.get("keys") is not None:
        return _of_keys(signal, kind, tables_listed, content["keys"])
    conditions = _conditions(content)
    if conditions is None:
        log.warning("signal %s is ignored, its conditions are no %s: %s", signal.id, _CONDITIONS, signal.shown)
        return []
    # Of a table that is none an incremental snapshot tells when it comes to it; a blocking one goes without.
    by_table = _by_table(signal, conditions, listed)
    is_again = content.get("again") is True
    return [
        TableRequest(signal.id, kind, name, by_table.get(name), surrogate=surrogate, is_again=is_again)
        for name in listed
    ]


def _of_keys(signal: Signal, kind: str, tables: list[str], listed: Any) -> list[TableRequest]:
    """Requests for keys of one table, as many as a chunk reads each."""
    is_keys = isinstance(listed, list) and all(
        isinstance(key, list) and all(isinstance(part, str) for part in key) for key in listed
    )
    if not is_keys or kind != INCREMENTAL or len(tables) != 1:
        log.warning("signal %s is ignored: keys takes lists of texts, one table, and type incremental", signal.id)
        return []
    keys = [tuple(key) for key in listed]
    chunks = (keys[start : start + KEYS_AT_ONCE] for start in range(0, len(keys), KEYS_AT_ONCE))
    return [TableRequest(signal.id, kind, tables[0], keys=tuple(chunk)) for chunk in chunks]


def collections(signal: Signal, content: dict[str, Any], tables: Iterable[str]) -> list[str]:
    """Those of the tables that `data-collections` names, by regular expressions or literally."""
    names = list(dict.fromkeys(tables))
    return [name for name in _expanded(signal, content, names) if name in names]


def _expanded(signal: Signal, content: dict[str, Any], names: list[str]) -> list[str]:
    """The items of `data-collections`, each replaced by the names that it means, if any, as Debezium does it."""
    listed = content.get("data-collections")
    expanded: list[str] = []
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        log.warning("signal %s: data-collections is no list of texts: %s", signal.id, signal.shown)
        return []
    items = [item.strip() for item in listed]
    # Debezium takes case to matter here, though not in additional-conditions.
    for item, meant in zip(items, _meant(signal, items, names, ignore_case=False), strict=True):
        if not meant:
            log.warning("signal %s: no captured table matches %s", signal.id, item)
        expanded += meant or [item.replace('"', "").strip()]
    return list(dict.fromkeys(expanded))


def _meant(signal: Signal, items: list[str], names: list[str], *, ignore_case: bool) -> list[list[str]]:
    """For each item the tables that it means: a name, with or without quotes, or a regular expression."""
    tables = []
    for item, matched in zip(items, matching(items, names, ignore_case=ignore_case), strict=True):
        if isinstance(matched, str):
            log.warning("signal %s: %s is no regular expression: %s", signal.id, item, matched)
        name = item.replace('"', "")
        meant = {name, *(matched if isinstance(matched, list) else ())}
        tables.append([each for each in names if each in meant])
    return tables


def _conditions(content: dict[str, Any]) -> list[tuple[str, str]] | None:
    """Tables (names or expressions) and their conditions, the older form, one for all, last; None if malformed.

    No condition is left out: its table's rows would all be read instead.
    """
    listed, older = content.get("additional-conditions") or [], content.get("additional-condition") or ""
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        return None
    conditions = [(item.get("data-collection"), item.get("filter") or "") for item in listed]
    conditions += [(".*", older)] if older else []
    are_texts = all(isinstance(table, str) and isinstance(condition, str) for table, condition in conditions)
    return conditions if are_texts else None


def _by_table(signal: Signal, conditions: list[tuple[str, str]], tables: list[str]) -> dict[str, str | None]:
    """The first condition for each table that has one."""
    by_table: dict[str, str | None] = {}
    items = [item for item, _ in conditions]
    for (_, condition), meant in zip(conditions, _meant(signal, items, tables, ignore_case=True), strict=True):
        for table in meant:
            by_table.setdefault(table, condition or None)
    return by_table
