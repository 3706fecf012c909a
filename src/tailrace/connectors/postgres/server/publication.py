"""Creates and alters the publication as `publication.autocreate.mode` says."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.options import (
    DATABASE_QUERY_TIMEOUT_MS,
    INTERNAL_CREATE_SLOT_COMMAND_TIMEOUT,
    PUBLICATION_AUTOCREATE_MODE,
    PUBLICATION_NAME,
)
from tailrace.connectors.postgres.server import replica_identity
from tailrace.connectors.postgres.server.connect import connect, first_line, server_errors
from tailrace.connectors.postgres.server.partition_names import Name, first_of, lineages, published, unheard
from tailrace.connectors.postgres.server.publication_plan import (
    Action,
    addition,
    after,
    breaking,
    by_hand_alone,
    plan,
    will_come_as,
)
from tailrace.connectors.postgres.server.published import captured, differences, find, verify
from tailrace.connectors.postgres.server.published_identity import refused
from tailrace.errors import ConfigError, SourceError
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


ADDED_LATE = "was not in the publication before this start: what was written until then does not come by itself"


def ensure(
    connection: psycopg.Connection, config: Config, tables: Sequence[TableId], *, create: bool = True
) -> tuple[Name, ...]:
    """Make or adapt the publication, and verify what it sends; returns the tables that an existing one gets.

    Before that, replica identities are set where the configuration names them. With `create` off a missing publication
    stays missing. Raises SourceError.
    """
    name = config[PUBLICATION_NAME]
    actions = plan(connection, config, create=create)
    lacks = [lack for action in actions for lack in action.lacks]
    wished = _wished(connection, config, tables)
    # A publication that has long been there is not made worse by another start, so that one is not refused.
    changed = None if create else {*wished, *(table for action in actions for table in action.adds)}
    lacks += breaking(connection, config, actions, wished, changed)
    if lacks:
        what, remedy = (
            "; ".join(texts) for texts in zip(*((finding.what, str(finding.remedy)) for finding in lacks), strict=True)
        )
        raise SourceError(what, where=f"publication {name}", remedy=remedy)
    replica_identity.autoset(connection, config, tables)
    try:
        if actions:
            with _limited(connection, config), connection.transaction():
                for action in actions:
                    connection.execute(action.statement)
                    log.info("%s", action.statement.as_string())
    except psycopg.Error as error:
        remedy = "create the publication yourself, and set publication.autocreate.mode=disabled"
        what = f"cannot make the publication: {first_line(error)}"
        raise SourceError(what, where=f"publication {name}", remedy=remedy) from error
    warnings, _ = verify(connection, config, is_made=create)
    for warning in warnings:
        log.warning("%s", warning)
    return tuple(table for action in actions for table in action.adds)


def _wished(connection: psycopg.Connection[Any], config: Config, tables: Sequence[TableId]) -> dict[Name, str]:
    """The replica identities that a start sets. Raises ConfigError."""
    settings = replica_identity.plan(connection, config, tables)
    return {(setting.table.schema, setting.table.table): setting.after for setting in settings}


def _broken(connection: psycopg.Connection[Any], config: Config, actions: Sequence[Action]) -> list[Finding]:
    """The findings of `breaking`; entries that contradict each other are reported where they are checked."""
    database = config[DATABASE_DBNAME]
    tables = [TableId(database, *table.name) for table in captured(connection, config)]
    try:
        wished = _wished(connection, config, tables)
    except ConfigError:
        wished = {}
    return breaking(connection, config, actions, wished)


def predicted(connection: psycopg.Connection[Any], config: Config, *, begun: bool) -> Iterator[Finding]:
    """What a start finds, does and lacks, for `check` and for the first start itself, which so fails before it acts."""
    name, mode = config[PUBLICATION_NAME], config[PUBLICATION_AUTOCREATE_MODE]
    publication = find(connection, name)
    try:
        actions = plan(connection, config)
    except SourceError as error:
        yield Finding("publication", False, f"{name}: {error.what}", error.remedy)
        return
    if publication is not None:
        yield Finding("publication", True, f"{name} exists")
    for action in actions:
        yield from action.lacks or [Finding("publication", True, action.does)]
    yield from _broken(connection, config, actions)
    if publication is not None:
        tables = captured(connection, config)
        names = {table.name for table in tables}
        comes_as = will_come_as(mode, names, via_root=publication.via_root) if mode == "filtered" else None
        yield from differences(connection, config, after(publication, actions), tables, begun=begun, comes_as=comes_as)


def by_hand(config: Config) -> list[str] | None:
    """The statements of `by_hand_alone`, over a connection of its own. Raises SourceError."""
    with server_errors("the privileges cannot be looked at"), connect(config) as connection:
        return by_hand_alone(connection, config)


def demand(connection: psycopg.Connection, config: Config, rights: Callable[[], Sequence[str]]) -> None:
    """Raise SourceError where a first start would fail, or would begin with less than the include lists name.

    `rights` are the statements that grant what the start needs besides: they are named at once, not after another try.
    """
    errors = [finding for finding in predicted(connection, config, begun=False) if finding.ok is False]
    if errors:
        name = config[PUBLICATION_NAME]
        what = "; ".join(finding.what.removeprefix(f"{name}: ") for finding in errors)
        remedies = [*rights(), *(finding.remedy for finding in errors if finding.remedy)]
        raise SourceError(what, where=f"publication {name}", remedy="; ".join(remedies) or None)


def include(connection: psycopg.Connection, config: Config, tables: Sequence[TableId]) -> list[str]:
    """Add those of the tables that it lacks to a publication that lists tables; returns them. Raises SourceError."""
    name = config[PUBLICATION_NAME]
    replica_identity.autoset(connection, config, tables)
    added = []
    for finding in _lost_with(connection, config, tables):
        log.warning("%s; remedy: %s", finding.what, finding.remedy)
    for table in tables:
        row = connection.execute(_PUBLISHED, [table.schema, table.table, name]).fetchone()
        if row is None:
            raise _not_there(connection, name, table)
        if not row[0]:
            _check_added(connection, config, tables)
            _alter(connection, name, "ADD", table)
            added.append(str(table))
    return added


def _check_added(connection: psycopg.Connection, config: Config, tables: Sequence[TableId]) -> None:
    """Raise SourceError where the server would refuse changes of these tables once they are published."""
    publication = find(connection, config[PUBLICATION_NAME])
    if publication is not None:
        names = {(table.schema, table.table) for table in tables}
        for finding in refused(connection, publication, names, {}):
            raise SourceError(finding.what, remedy=finding.remedy)


def publish(config: Config, tables: Sequence[TableId]) -> list[str]:
    """As `include`, over a connection of its own. Raises SourceError, also where changes of them would be lost."""
    with server_errors("the publication cannot be altered"), connect(config) as connection:
        for finding in _lost_with(connection, config, tables):
            raise SourceError(finding.what, remedy=finding.remedy)
        return include(connection, config, tables)


def obstacles(config: Config, tables: Sequence[TableId]) -> list[Finding]:
    """What keeps `publish` from adding these tables, all of it. Raises SourceError."""
    with server_errors("the publication cannot be read"), connect(config) as connection:
        names = [(table.schema, table.table) for table in tables]
        return [*_lost_with(connection, config, tables), *addition(connection, config, names)]


def _lost_with(connection: psycopg.Connection, config: Config, tables: Sequence[TableId]) -> Iterator[Finding]:
    """What would be lost of these tables, by the names that their changes come by once they are published."""
    name, added = config[PUBLICATION_NAME], {(table.schema, table.table) for table in tables}
    lines = [line for line in lineages(connection) if added.intersection(line)]
    row = connection.execute("SELECT pubviaroot FROM pg_publication WHERE pubname = %s", [name]).fetchone()
    if not lines or row is None:
        return
    taken = {(table.schema, table.table) for table in Catalog(connection, config).tables()} | added
    comes_as = first_of(published(connection, name) | added) if row[0] else first_of({line[-1] for line in lines})
    yield from unheard(name, lines, taken, comes_as, lambda _: False)


def _not_there(connection: psycopg.Connection, name: str, table: TableId) -> SourceError:
    """Why a publication and a table were not found together."""
    if connection.execute("SELECT FROM pg_publication WHERE pubname = %s", [name]).fetchone() is not None:
        return SourceError("there is no such table", where=str(table))
    return SourceError("there is none", where=f"publication {name}", remedy=_statement(connection, name, [table]))


def _statement(connection: psycopg.Connection, name: str, tables: Sequence[TableId]) -> str:
    """What somebody may run to make the publication."""
    listed = sql.SQL(", ").join(sql.Identifier(table.schema, table.table) for table in tables)
    return sql.SQL("CREATE PUBLICATION {} FOR TABLE {};").format(sql.Identifier(name), listed).as_string(connection)


def exclude(connection: psycopg.Connection, config: Config, tables: Sequence[TableId]) -> None:
    """Take the tables out of a filtered publication; one of another mode is not ours to narrow. Raises SourceError."""
    name = config[PUBLICATION_NAME]
    if config[PUBLICATION_AUTOCREATE_MODE] != "filtered":
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


@contextmanager
def _limited(connection: psycopg.Connection, config: Config) -> Iterator[None]:
    """Creation has the limit that the slot's has, if that is shorter than any query's."""
    seconds, usual = config[INTERNAL_CREATE_SLOT_COMMAND_TIMEOUT], config[DATABASE_QUERY_TIMEOUT_MS]
    limit = seconds * 1000 if seconds > 0 else usual
    connection.execute(f"SET statement_timeout = {min(limit, usual) if usual else limit}")
    try:
        yield
    finally:
        connection.execute(f"SET statement_timeout = {usual}")


def _tables_of(connection: psycopg.Connection, name: str) -> set[tuple[str, str]]:
    """Schema and name of the tables that the publication lists."""
    return set(
        connection.execute(
            "SELECT n.nspname, c.relname FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid "
            "JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = %s",
            [name],
        )
    )
