"""Compares what a publication sends with what the configuration captures.

`check` predicts by it, a start and a running pipeline verify by it, `status` shows it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.config.options.filters import SCHEMAS, SKIPPED_OPERATIONS, TABLES
from tailrace.config.overrides import overrides
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres.options import (
    PUBLICATION_AUTOCREATE_MODE,
    PUBLICATION_NAME,
    ROWS_FOR_REPLICA,
    SLOT_NAME,
)
from tailrace.connectors.postgres.server.lost_log import WITHOUT_PUBLICATION
from tailrace.connectors.postgres.server.partition_names import ComesAs, Name, first_of, left_out, lineages, unheard
from tailrace.errors import SourceError
from tailrace.model.table import TableId
from tailrace.override import override

log = logging.getLogger(__name__)

OPERATIONS = {"c": "insert", "u": "update", "d": "delete", "t": "truncate"}
_SHOWN = 5  # guessed

LOCKED = Finding(
    "publication",
    None,
    "a session locks a published table, so that the publication cannot be checked",
    "wait, or find the session: SELECT pid, relation::regclass FROM pg_locks WHERE mode = 'AccessExclusiveLock'",
)

_TABLES = """
SELECT n.nspname::text, c.relname::text, c.relkind = 'p', c.relpersistence = 'u', pg_has_role(c.relowner, 'USAGE')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' ORDER BY 1, 2
"""
_PUBLICATION = """
SELECT puballtables, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot, pg_has_role(pubowner, 'USAGE'),
  coalesce(to_jsonb(p) ->> 'pubgencols' = 's', false)
FROM pg_publication p WHERE pubname = %s
"""
_LISTED = """
SELECT n.nspname::text, c.relname::text FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = %s
"""
_SENT = "SELECT schemaname::text, tablename::text, NULL, NULL FROM pg_publication_tables WHERE pubname = %s"
# Row filters and column lists are known to PostgreSQL 15 and newer.
_HAS_DETAILS = """
SELECT FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
WHERE p.pubname = %s AND (r.prqual IS NOT NULL OR r.prattrs IS NOT NULL) LIMIT 1
"""
_SENT_IN_DETAIL = """
SELECT t.schemaname::text, t.tablename::text, t.rowfilter,
  ARRAY(SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = t.schemaname AND c.relname = t.tablename AND a.attnum > 0 AND NOT a.attisdropped
          AND a.attgenerated = '' AND a.attname <> ALL (t.attnames) ORDER BY a.attnum)
FROM pg_publication_tables t WHERE t.pubname = %s
"""


@dataclass(frozen=True)
class PublishedTable:
    """A captured table; an unlogged one cannot be published."""

    schema: str
    table: str
    is_partitioned: bool
    unlogged: bool
    owned: bool

    @property
    def name(self) -> Name:
        """Schema and table."""
        return self.schema, self.table

    @property
    def quoted(self) -> str:
        """The name as SQL takes it."""
        return sql.Identifier(self.schema, self.table).as_string()

    @override
    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True)
class Publication:
    """A publication: the operations that it sends, the tables that it lists by themselves, and the names that come.

    `filters` are its row filters, `hidden` the columns that its column lists leave out, both by table.
    `sends_generated`: stored generated columns are sent as well (PostgreSQL 18 and newer).
    """

    name: str
    all_tables: bool
    operations: frozenset[str]
    via_root: bool
    is_owned: bool
    listed: frozenset[Name]
    sent: frozenset[Name]
    filters: Mapping[Name, str]
    hidden: Mapping[Name, Sequence[str]]
    sends_generated: bool = False


def find(connection: psycopg.Connection[Any], name: str) -> Publication | None:
    """The publication of that name, None where there is none."""
    cursor = connection.cursor(row_factory=tuple_row)
    row = cursor.execute(_PUBLICATION, [name]).fetchone()
    if row is None:
        return None
    all_tables, *flags, via_root, owned, sends_generated = row
    operations = frozenset(word for word, is_sent in zip(OPERATIONS.values(), flags, strict=True) if is_sent)
    listed = frozenset(cursor.execute(_LISTED, [name]).fetchall())
    knows_details = connection.info.server_version >= 150_000
    has_details = knows_details and cursor.execute(_HAS_DETAILS, [name]).fetchone() is not None
    sent = cursor.execute((_SENT_IN_DETAIL if has_details else _SENT).encode(), [name]).fetchall()
    filters = {(schema, table): condition for schema, table, condition, _ in sent if condition is not None}
    hidden = {(schema, table): columns for schema, table, _, columns in sent if columns}
    names = frozenset((schema, table) for schema, table, *_ in sent)
    return Publication(name, all_tables, operations, via_root, owned, listed, names, filters, hidden, sends_generated)


def captured(connection: psycopg.Connection[Any], config: Config) -> list[PublishedTable]:
    """The captured tables of the connection's database, by name."""
    wanted = TableFilter.from_config(config)
    database = config[DATABASE_DBNAME]
    tables = every_table(connection)
    return [table for table in tables if wanted.captures(TableId(database, table.schema, table.table))]


def every_table(connection: psycopg.Connection[Any]) -> list[PublishedTable]:
    """The tables of the connection's database, by name."""
    return [PublishedTable(*row) for row in connection.cursor(row_factory=tuple_row).execute(_TABLES)]


def tell_left_out(connection: psycopg.Connection[Any], config: Config) -> None:
    """Log which captured tables have no replica of their own, see `left_out`."""
    others = left_out(connection, config, [table.name for table in captured(connection, config)])
    if others:
        names = shown([".".join(name) for name in sorted(others)])
        log.info("%s: left out, as their changes come under the names of other captured tables", names)


@contextmanager
def at_once(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Queries that do not wait for locks: the server locks each published table, even to name its publication.

    A table may be locked for hours (ALTER TABLE, VACUUM FULL). Raises psycopg's LockNotAvailable.
    """
    with connection.transaction():
        connection.execute("SET LOCAL lock_timeout = 200")
        yield


def verify(
    connection: psycopg.Connection[Any], config: Config, seen: frozenset[str] = frozenset(), *, is_made: bool = False
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Lines of warning about the publication of a pipeline that has begun, and its operations.

    `seen` are the operations that it had before; `is_made`: it was just made, or taken over at a first start. Raises
    SourceError where changes are lost that are demanded. Of a replica the tables that lose changes are incomplete, and
    the others go on.
    """
    publication = find(connection, config[PUBLICATION_NAME])
    if publication is None:
        return tuple(map(warning, _absent(connection, config))), seen
    findings = publication_findings(connection, config, publication, begun=True, seen=seen)
    errors = [finding for finding in findings if finding.ok is False]
    if errors and (is_made or not config[ROWS_FOR_REPLICA]):
        what = "; ".join(finding.what for finding in errors)
        raise SourceError(what, remedy="; ".join(finding.remedy for finding in errors if finding.remedy))
    return tuple(map(warning, findings)), publication.operations


def _absent(connection: psycopg.Connection[Any], config: Config) -> Iterator[Finding]:
    """A warning if the slot exists without the publication, which is made before it: the first change ends the run."""
    name, query = config[PUBLICATION_NAME], "SELECT FROM pg_replication_slots WHERE slot_name = %s"
    if connection.execute(query, [config[SLOT_NAME]]).fetchone() is None:
        return
    query = "SELECT pubname FROM pg_publication ORDER BY pubname LIMIT 20"
    named = ", ".join(row[0] for row in connection.cursor(row_factory=tuple_row).execute(query)) or "none"
    what = f"there is no publication {name}, so the next change cannot be read; publications of the database: {named}"
    yield Finding("publication", None, what, WITHOUT_PUBLICATION)


def warning(finding: Finding) -> str:
    """A line of warning."""
    return f"{finding.what}; remedy: {finding.remedy}"


def publication_findings(
    connection: psycopg.Connection[Any],
    config: Config,
    publication: Publication,
    *,
    begun: bool,
    seen: frozenset[str] = frozenset(),
) -> list[Finding]:
    tables = captured(connection, config)
    lost = unlogged(tables) if SnapshotMode.of(config).streams else ()
    return [*differences(connection, config, publication, tables, begun=begun, seen=seen), *lost]


def differences(
    connection: psycopg.Connection[Any],
    config: Config,
    publication: Publication,
    tables: Sequence[PublishedTable],
    *,
    begun: bool,
    comes_as: ComesAs | None = None,
    seen: frozenset[str] = frozenset(),
) -> Iterator[Finding]:
    """What of the captured tables does not come: an error where the configuration names it, else a warning.

    `begun`: the pipeline has begun, so that tables may have been made since. `comes_as` is by which names partitions
    will come, if the start is to change that. `seen`: the operations that were published before.
    """
    if not SnapshotMode.of(config).streams:
        return
    demands = _Demands(config, begun)
    yield from _operations(config, publication, seen)
    names = {table.name for table in tables}
    lines = lineages(connection)
    yield from unheard(publication.name, lines, names, comes_as or first_of(publication.sent), demands.level)
    yield from _missing(publication, tables, lines, demands)
    yield from _hidden(config, publication, tables)


class _Demands:
    """Tells the tables that the configuration demands from those that merely pass its filters."""

    def __init__(self, config: Config, begun: bool) -> None:
        self.begun = begun
        self._filter = TableFilter.from_config(config)
        self._database = config[DATABASE_DBNAME]
        self._is_filled = config[PUBLICATION_AUTOCREATE_MODE] != "no_tables"
        self._has_lists = bool(config[TABLES.include] or config[SCHEMAS.include])

    def level(self, name: Name) -> bool | None:
        """False, an error, for a table that is named, or at a first start in any include list; else None, a warning.

        Of a publication that is left to somebody to fill nothing is demanded.
        """
        is_demanded = self._filter.names(TableId(self._database, *name)) or (self._has_lists and not self.begun)
        return False if is_demanded and self._is_filled else None


def _operations(config: Config, publication: Publication, seen: frozenset[str]) -> Iterator[Finding]:
    """Operations that are not published: an error, unless an operator made the publication, and made it like that."""
    skipped = config[SKIPPED_OPERATIONS]
    wanted = [word for letter, word in OPERATIONS.items() if letter not in skipped]
    lacking = [word for word in wanted if word not in publication.operations]
    if lacking:
        letters = ",".join(letter for letter, word in OPERATIONS.items() if letter in skipped or word in lacking)
        statement = _altering(publication.name, f"SET (publish = '{', '.join(wanted)}')")
        what = f"{publication.name} does not publish {', '.join(lacking)}: these changes are lost"
        remedy = f"{statement}; or set skipped.operations={letters} if nobody wants them"
        is_meant = config[PUBLICATION_AUTOCREATE_MODE] == "disabled" and not seen.intersection(lacking)
        yield Finding("publication", None if is_meant else False, what, remedy)


def _missing(
    publication: Publication, tables: Sequence[PublishedTable], lines: Sequence[Sequence[Name]], demands: _Demands
) -> Iterator[Finding]:
    sent = publication.sent | {part for line in lines if publication.sent.intersection(line) for part in line}
    # Of a partitioned table that has no partitions yet nothing could be sent.
    silent = {table.name for table in tables if table.is_partitioned}.difference(*lines)
    expected = sent | silent
    missing = [table for table in tables if table.name not in expected and not table.unlogged]
    for level in (False, None):
        lacking = [table for table in missing if demands.level(table.name) is level]
        if not lacking:
            continue
        remedy = _altering(publication.name, f"ADD TABLE {', '.join(table.quoted for table in lacking)}")
        if demands.begun:
            names = " ".join(f"-t {table}" for table in lacking)
            remedy = f"{remedy}; then read what was written meanwhile: tailrace signal FILE execute-snapshot {names}"
        what = f"{publication.name} lacks {shown(lacking)}: no changes of these come"
        yield Finding("publication", level, what, remedy)


def _hidden(config: Config, publication: Publication, tables: Sequence[PublishedTable]) -> Iterator[Finding]:
    """Row filters and column lists; the configuration may say that they are meant."""
    wanted, meant, database = TableFilter.from_config(config), overrides(config), config[DATABASE_DBNAME]
    for table in tables:
        condition = publication.filters.get(table.name)
        if condition is not None and str(table) not in meant:
            what = f"{publication.name} sends only rows of {table} WHERE {condition}, and a snapshot reads all"
            remedy = f"remove the filter from the publication, or read the same rows: {_OVERRIDES}"
            yield Finding("publication", None, what, remedy)
        columns = wanted.columns(TableId(database, table.schema, table.table), publication.hidden.get(table.name, ()))
        if columns:
            names = ", ".join(f"{table}.{column}" for column in columns)
            what = f"{publication.name} does not send {names}, which a snapshot reads"
            yield Finding("publication", None, what, "add them to the publication, or set column.exclude.list")


_OVERRIDES = "snapshot.select.statement.overrides"


def unlogged(tables: Sequence[PublishedTable]) -> Iterator[Finding]:
    """Tables that no publication can hold."""
    without_log = [table for table in tables if table.unlogged]
    if without_log:
        remedy = "; ".join(f"ALTER TABLE {table.quoted} SET LOGGED" for table in without_log)
        yield Finding("tables", None, f"{shown(without_log)}: unlogged, so changes are never in the log", remedy)


def shown(tables: Sequence[object]) -> str:
    """The first few names, and how many more there are."""
    names = ", ".join(map(str, tables[:_SHOWN]))
    return names if len(tables) <= _SHOWN else f"{names} and {len(tables) - _SHOWN} more"


def _altering(name: str, what: str) -> str:
    return f"ALTER PUBLICATION {sql.Identifier(name).as_string()} {what}"
