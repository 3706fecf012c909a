"""The publication: which tables and operations the server sends, made as `publication.autocreate.mode` says."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres import ddl, identity
from tailrace.connectors.postgres.catalog import Catalog
from tailrace.connectors.postgres.connect import connect, first_line
from tailrace.connectors.postgres.lineages import first_of, lineages, published, unheard
from tailrace.connectors.postgres.modes import SnapshotMode
from tailrace.errors import SourceError
from tailrace.model.table import TableId

log = logging.getLogger(__name__)

# By itself (a partitioned table is listed by its partitions else), or as part of what is published.
_PUBLISHED = """
SELECT p.puballtables OR EXISTS (
  SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = c.oid
) OR EXISTS (
  SELECT FROM pg_publication_tables t
  WHERE t.pubname = p.pubname AND t.schemaname = n.nspname AND t.tablename = c.relname
)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = %s AND c.relname = %s, pg_publication p
WHERE p.pubname = %s
"""
_OPERATIONS = (("c", "insert"), ("u", "update"), ("d", "delete"), ("t", "truncate"))


def ensure(connection: psycopg.Connection, config: Config, tables: Sequence[TableId], *, create: bool = True) -> None:
    """Make or adapt the publication (Debezium's documentation of publication.autocreate.mode). Raises SourceError.

    Before that, replica identities are set where the configuration names them.
    With `create` off a missing one stays missing: made now, it would not cover the log that is still to be read.
    """
    name, mode = config.text("publication.name"), config.text("publication.autocreate.mode")
    row = connection.execute("SELECT puballtables FROM pg_publication WHERE pubname = %s", [name]).fetchone()
    identity.autoset(connection, config, tables)
    try:
        if row is None:
            if create:
                _create(connection, config, name, mode, tables)
        elif mode == "filtered":
            _adapt(connection, config, name, bool(row[0]), tables)
    except psycopg.Error as error:
        raise SourceError(
            f"cannot make the publication: {first_line(error)}",
            where=f"publication {name}",
            remedy="GRANT CREATE ON DATABASE to database.user and make it owner of the tables (FOR ALL TABLES takes a "
            "superuser), or create the publication yourself and set publication.autocreate.mode=disabled",
        ) from error
    if SnapshotMode.of(config).streams:
        _warn(connection, name, {(table.schema, table.table) for table in tables})


def _warn(connection: psycopg.Connection, name: str, captured: set[tuple[str, str]]) -> None:
    """Tell of captured tables whose changes come by names that are not captured. As in Debezium it stops nothing."""
    for finding in unheard(name, lineages(connection), captured, first_of(published(connection, name))):
        log.warning("%s; remedy: %s", finding.what, finding.remedy)


def include(connection: psycopg.Connection, config: Config, tables: Sequence[TableId]) -> list[str]:
    """Add those of the tables that it lacks to a publication that lists tables; returns them. Raises SourceError."""
    name = config.text("publication.name")
    identity.autoset(connection, config, tables)
    added = []
    for finding in _lost_with(connection, config, tables):
        log.warning("%s; remedy: %s", finding.what, finding.remedy)
    for table in tables:
        row = connection.execute(_PUBLISHED, [table.schema, table.table, name]).fetchone()
        if row is None:
            raise _not_there(connection, name, table)
        if not row[0]:
            _alter(connection, name, "ADD", table)
            added.append(str(table))
    return added


def publish(config: Config, tables: Sequence[TableId]) -> list[str]:
    """As `include`, over a connection of its own. Raises SourceError, also where changes of them would be lost."""
    with connect(config) as connection:
        for finding in _lost_with(connection, config, tables):
            raise SourceError(finding.what, remedy=finding.remedy)
        return include(connection, config, tables)


def _lost_with(connection: psycopg.Connection, config: Config, tables: Sequence[TableId]) -> Iterator[Finding]:
    """What would be lost of these tables, by the names that their changes come by once they are published."""
    name, added = config.text("publication.name"), {(table.schema, table.table) for table in tables}
    found = [line for line in lineages(connection) if added.intersection(line)]
    row = connection.execute("SELECT pubviaroot FROM pg_publication WHERE pubname = %s", [name]).fetchone()
    if not found or row is None:
        return
    captured = {(table.schema, table.table) for table in Catalog(connection, config).tables()} | added
    comes_as = first_of(published(connection, name) | added) if row[0] else first_of({line[-1] for line in found})
    yield from unheard(name, found, captured, comes_as)


def _not_there(connection: psycopg.Connection, name: str, table: TableId) -> SourceError:
    """Why a publication and a table were not found together."""
    if connection.execute("SELECT FROM pg_publication WHERE pubname = %s", [name]).fetchone() is not None:
        return SourceError("there is no such table", where=str(table))
    return SourceError("there is none", where=f"publication {name}", remedy=_statement(connection, name, [table]))


def _statement(connection: psycopg.Connection, name: str, tables: Sequence[TableId]) -> str:
    """What somebody may run to make the publication."""
    of = sql.SQL("FOR TABLE {}").format(_listed(tables)) if tables else sql.SQL("")
    return sql.SQL("CREATE PUBLICATION {} {};").format(sql.Identifier(name), of).as_string(connection)


def exclude(connection: psycopg.Connection, config: Config, tables: Sequence[TableId]) -> None:
    """Take the tables out of a filtered publication; one of another mode is not ours to narrow. Raises SourceError."""
    name = config.text("publication.name")
    if config.text("publication.autocreate.mode") != "filtered":
        return
    for table in tables:
        if (table.schema, table.table) in _tables_of(connection, name):
            _alter(connection, name, "DROP", table)


def _alter(connection: psycopg.Connection, name: str, verb: str, table: TableId) -> None:
    statement = sql.SQL("ALTER PUBLICATION {} {} TABLE {}").format(
        sql.Identifier(name), sql.SQL(verb), sql.Identifier(table.schema, table.table)
    )
    try:
        connection.execute(statement)
    except psycopg.Error as error:
        remedy = f"Run it as the owner of publication and table: {statement.as_string(connection)};"
        raise SourceError(
            f"cannot be altered: {first_line(error)}", where=f"publication {name}", remedy=remedy
        ) from error


def _create(connection: psycopg.Connection, config: Config, name: str, mode: str, tables: Sequence[TableId]) -> None:
    if mode == "disabled":
        raise SourceError(
            "Publication autocreation is disabled, please create one and restart the connector.",
            where=f"publication {name}",
            remedy=f"{_statement(connection, name, tables)} or set publication.autocreate.mode=filtered",
        )
    what: sql.Composable = sql.SQL("")
    if mode == "all_tables":
        what = sql.SQL("FOR ALL TABLES")
    elif mode == "filtered":
        if not tables:
            raise _without_tables(name)
        what = sql.SQL("FOR TABLE {}").format(_listed([*tables, *_of_triggers(connection)]))
    options = _options(config, creating=True)
    tail = sql.SQL("WITH ({})").format(options) if options else sql.SQL("")
    with _limited(connection, config):
        connection.execute(sql.SQL("CREATE PUBLICATION {} {} {}").format(sql.Identifier(name), what, tail))
    log.info("created publication %s (%s)", name, mode)


@contextmanager
def _limited(connection: psycopg.Connection, config: Config) -> Iterator[None]:
    """Creation has the limit that the slot's has, if that is shorter than any query's."""
    seconds, usual = config.number("internal.create.slot.command.timeout"), config.number("database.query.timeout.ms")
    limit = seconds * 1000 if seconds > 0 else usual
    connection.execute(f"SET statement_timeout = {min(limit, usual) if usual else limit}")
    try:
        yield
    finally:
        connection.execute(f"SET statement_timeout = {usual}")


def _adapt(
    connection: psycopg.Connection, config: Config, name: str, all_tables: bool, tables: Sequence[TableId]
) -> None:
    if all_tables:
        raise SourceError(
            "the publication is FOR ALL TABLES, which a filtered one cannot be made of",
            where=f"publication {name}",
            remedy=f"DROP PUBLICATION {name}, or set publication.autocreate.mode=all_tables",
        )
    wanted, present = [*tables, *_of_triggers(connection)], _tables_of(connection, name)
    missing = [table for table in wanted if (table.schema, table.table) not in present]
    kept = {(table.schema, table.table) for table in wanted} | {ddl.TABLE}
    surplus = [TableId("", *each) for each in sorted(present - kept)]
    if surplus and not tables:
        raise _without_tables(name)
    # Not SET TABLE: that asks for ownership of each table, and the DDL triggers' table is somebody else's.
    for verb, those in (("ADD", missing), ("DROP", surplus)):
        if those:
            statement = sql.SQL("ALTER PUBLICATION {} {} TABLE {}")
            connection.execute(statement.format(sql.Identifier(name), sql.SQL(verb), _listed(those)))
    options = _options(config, creating=False)
    if options:
        connection.execute(sql.SQL("ALTER PUBLICATION {} SET ({})").format(sql.Identifier(name), options))


def _of_triggers(connection: psycopg.Connection) -> list[TableId]:
    """The table of the DDL triggers where the role may publish it; else somebody who may has to add it."""
    return [TableId("", *ddl.TABLE)] if ddl.may_publish(connection) else []


def _without_tables(name: str) -> SourceError:
    return SourceError(
        f"No table filters found for filtered publication {name}",
        remedy="check table.include.list and schema.include.list: no table of the database matches",
    )


def _tables_of(connection: psycopg.Connection, name: str) -> set[tuple[str, str]]:
    """Schema and name of the tables that the publication lists."""
    return set(
        connection.execute(
            "SELECT n.nspname, c.relname FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid "
            "JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = %s",
            [name],
        )
    )


def _listed(tables: Sequence[TableId]) -> sql.Composable:
    return sql.SQL(", ").join(sql.Identifier(table.schema, table.table) for table in tables)


def _options(config: Config, *, creating: bool) -> sql.Composable | None:
    """Options of the publication: operations only where they are set by hand, the default must not narrow it."""
    options: list[sql.Composable] = []
    if "skipped.operations" in config.given:
        skipped = config.names("skipped.operations")
        sent = ", ".join(word for letter, word in _OPERATIONS if letter not in skipped)
        options.append(sql.SQL("publish = {}").format(sql.Literal(sent)))
    if creating and config.flag("publish.via.partition.root"):
        options.append(sql.SQL("publish_via_partition_root = true"))
    return sql.SQL(", ").join(options) if options else None
