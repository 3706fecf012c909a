"""Reads offsets that a Debezium connector has stored, for a pipeline that continues there, and writes such offsets.

The form is that of Kafka Connect's REST interface: GET and PATCH of /connectors/NAME/offsets have
`{"offsets": [{"partition": {...}, "offset": {...}}]}`. The fields of an offset are Debezium's, each connector's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailrace.config import Config
from tailrace.config.options.snapshot import OFFSET_TAKEOVER
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.finding import Finding
from tailrace.errors import ConfigError, OffsetError, TailraceError

PROPERTY = OFFSET_TAKEOVER.name
# What names the connector in a partition: one of Debezium's connectors has a name of its own for it.
_NAMES = ("server", "server_id")
# What Debezium stores while it reads tables at first, with one connector's word for it, and by a signal.
_SNAPSHOT, _COMPLETED, _INITIAL_SYNC = "snapshot", "snapshot_completed", "initsync"
_INCREMENTAL, _TABLES = "incremental_snapshot_primary_key", "incremental_snapshot_collections"
_FORM = f"{PROPERTY} is a file, or the text itself, as GET /connectors/NAME/offsets of Kafka Connect gives it"


@dataclass(frozen=True)
class OffsetEntry:
    """One offset, and what it is the offset of."""

    partition: Mapping[str, Any]
    offset: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As Kafka Connect has it."""
        return {"partition": dict(self.partition), "offset": dict(self.offset)}


def taken_over(config: Config) -> list[OffsetEntry]:
    """The offsets of `offset.takeover`, none if it is not set.

    Raises ConfigError for what is none of this connector's, and where the tables would be read all the same;
    OffsetError where Debezium's own snapshot is not finished: what it has not read would never come.
    """
    given = config[OFFSET_TAKEOVER]
    if given is None:
        return []
    if SnapshotMode.of(config).at_first:
        what = "the tables would be read again, as snapshot.mode says"
        raise ConfigError(what, where=PROPERTY, remedy=f"set snapshot.mode=no_data, or remove {PROPERTY}")
    entries = _entries(given)
    for entry in entries:
        _check(config, entry)
    return entries


def findings(config: Config, has_begun: bool, position: Callable[[], str | None]) -> list[Finding]:
    """What `check` says of `offset.takeover` before the first start; `position` is where that begins."""
    if has_begun or config[OFFSET_TAKEOVER] is None:
        return []
    try:
        return [Finding(PROPERTY, True, f"the pipeline begins where Debezium stopped: {position()}")]
    except TailraceError as error:
        return [Finding(PROPERTY, False, error.what, error.remedy)]


def connect_json(entries: Sequence[OffsetEntry]) -> dict[str, Any]:
    """The offsets in the form that Kafka Connect takes."""
    return {"offsets": [entry.to_json() for entry in entries]}


def number(entry: OffsetEntry, *names: str) -> int | None:
    """The first of some fields that an offset has, a whole number. Raises ConfigError for another value."""
    for name in names:
        value = entry.offset.get(name)
        if value is not None:
            try:
                return int(value)
            except (TypeError, ValueError) as error:
                raise ConfigError(f"{name} should be a number", where=PROPERTY, remedy=_FORM) from error
    return None


def lacking(name: str) -> ConfigError:
    """The error of an offset without a field."""
    return ConfigError(f"the offset has no {name}: Debezium has read nothing", where=PROPERTY, remedy=_FORM)


def _entries(given: str) -> list[OffsetEntry]:
    text = given if given.lstrip().startswith("{") else _file(given)
    try:
        content = json.loads(text)
        offsets = content.get("offsets", [content])
        return [OffsetEntry(dict(each.get("partition", {})), dict(each.get("offset", each))) for each in offsets]
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError("is no JSON of offsets", where=PROPERTY, remedy=_FORM) from error


def _file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{path} cannot be read: {reason}", where=PROPERTY, remedy=_FORM) from error


def _check(config: Config, entry: OffsetEntry) -> None:
    prefix = config[TOPIC_PREFIX]
    name = next((entry.partition[each] for each in _NAMES if each in entry.partition), prefix)
    if name != prefix:
        what = f"the offset is that of the connector with topic.prefix={name}, and this one has {prefix}"
        raise ConfigError(what, where=PROPERTY, remedy="take the offset of the connector that this pipeline replaces")
    reads = entry.offset.get(_SNAPSHOT) not in (None, False, "false")
    if (reads and not _is_true(entry.offset.get(_COMPLETED))) or _is_true(entry.offset.get(_INITIAL_SYNC)):
        raise OffsetError(
            "Debezium's snapshot is not finished: rows that it has not read would never come",
            where=PROPERTY,
            remedy="start the connector again and stop it when the snapshot is finished; or remove offset.takeover and "
            "set snapshot.mode=initial, which reads all tables",
        )
    tables = entry.offset.get(_TABLES)
    if tables and (tables != "[]" or entry.offset.get(_INCREMENTAL)):
        raise OffsetError(
            f"Debezium's incremental snapshot is not finished, of {_shown(tables)}",
            where=PROPERTY,
            remedy="start the connector again and let it finish, or send it the signal stop-snapshot and then stop it; "
            "here `tailrace signal PIPELINE execute-snapshot` reads these tables",
        )


def _is_true(value: object) -> bool:
    return value in (True, "true")


def _shown(tables: object) -> str:
    """The tables of an incremental snapshot, of which Debezium stores a text of JSON."""
    try:
        return ", ".join(str(each["incremental_snapshot_collections_id"]) for each in json.loads(str(tables)))
    except (ValueError, TypeError, KeyError):
        return str(tables)
