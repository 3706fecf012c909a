"""Decides what a start changes in the publication; `check` uses it to predict the same."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.config.options.filters import SKIPPED_OPERATIONS
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres.ddl import event_triggers
from tailrace.connectors.postgres.options import (
    PUBLICATION_AUTOCREATE_MODE,
    PUBLICATION_NAME,
    PUBLISH_VIA_PARTITION_ROOT,
)
from tailrace.connectors.postgres.server.partition_names import ComesAs, Name, first_of, lineages, unheard
from tailrace.connectors.postgres.server.published import (
    OPERATIONS,
    Publication,
    PublishedTable,
    captured,
    every_table,
    find,
    shown,
)
from tailrace.connectors.postgres.server.published_identity import GENERATED_SINCE, refused
from tailrace.errors import SourceError

_ROLE = """
SELECT current_user::text, current_database()::text, has_database_privilege(current_database(), 'CREATE'),
  (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
"""
_DISABLED = "publication.autocreate.mode=disabled"
GENERATED = "publish_generated_columns = stored"


@dataclass(frozen=True)
class Action:
    """A statement that a start runs on the publication: what it does, and what stands against it, a right for instance.

    `adds` are the tables that it adds, `operations` those that are published after it, if it sets them.
    """

    statement: sql.Composed
    does: str
    lacks: tuple[Finding, ...] = ()
    adds: tuple[Name, ...] = ()
    operations: frozenset[str] | None = None


def after(publication: Publication, actions: Sequence[Action]) -> Publication:
    """The publication as it will be."""
    for action in actions:
        publication = replace(
            publication,
            sent=publication.sent.union(action.adds),
            operations=action.operations or publication.operations,
        )
    return publication


def plan(connection: psycopg.Connection[Any], config: Config, *, create: bool = True) -> list[Action]:
    """What is to be done (Debezium's documentation of publication.autocreate.mode); nothing where nothing differs.

    With `create` off a missing publication stays missing: made now, it would not cover the log that is still to be
    read. Raises SourceError where no right would help.
    """
    name, mode = config[PUBLICATION_NAME], config[PUBLICATION_AUTOCREATE_MODE]
    publication = find(connection, name)
    tables = [table for table in captured(connection, config) if not table.unlogged]
    if publication is None:
        return [_creation(connection, config, tables)] if create else []
    if mode != "filtered":
        return []
    if not tables:
        raise _no_tables(name)
    if publication.all_tables:
        raise SourceError(
            "the publication is FOR ALL TABLES, which a filtered one cannot be made of",
            where=f"publication {publication.name}",
            remedy=f"DROP PUBLICATION {publication.name}, or set publication.autocreate.mode=all_tables",
        )
    return list(_adaptions(connection, config, publication, tables))


def breaking(
    connection: psycopg.Connection[Any],
    config: Config,
    actions: Sequence[Action],
    wished: Mapping[Name, str],
    only: Collection[Name] | None = None,
) -> list[Finding]:
    """Tables whose UPDATE and DELETE the server would refuse once a start has run its actions, see `refused`.

    `wished` are the replica identities that the start sets before. `only` these tables of a publication that is there
    are looked at (None: all).
    """
    name, mode = config[PUBLICATION_NAME], config[PUBLICATION_AUTOCREATE_MODE]
    publication = find(connection, name)
    if publication is not None:
        then = after(publication, actions)
        sent = None if then.all_tables else then.sent | then.listed
        return list(refused(connection, then, sent if only is None else only, wished))
    if not actions or mode == "no_tables":
        return []
    names = frozenset(table.name for table in captured(connection, config) if not table.unlogged)
    made = Publication(
        *(name, mode == "all_tables", _published_operations(config), config[PUBLISH_VIA_PARTITION_ROOT], True),
        *(names, names, {}, {}, knows_generated(connection)),
    )
    return list(refused(connection, made, None if made.all_tables else names, wished, is_there=False))


@dataclass(frozen=True, slots=True)
class _Role:
    name: str
    database: str
    may_create: bool
    is_superuser: bool


def _role(connection: psycopg.Connection[Any]) -> _Role:
    row = connection.cursor(row_factory=tuple_row).execute(_ROLE).fetchone()
    assert row is not None  # a SELECT without FROM gives one row
    return _Role(*row)


def _creation(connection: psycopg.Connection[Any], config: Config, tables: Sequence[PublishedTable]) -> Action:
    name, mode = config[PUBLICATION_NAME], config[PUBLICATION_AUTOCREATE_MODE]
    by_hand = _by_hand(connection, config, tables)
    if mode == "disabled":
        what = "Publication autocreation is disabled, please create one and restart the connector."
        raise SourceError(what, where=f"publication {name}", remedy=by_hand)
    if mode == "filtered" and not tables:
        raise _no_tables(name)
    held = _listed([*_names(tables), *([event_triggers.TABLE] if event_triggers.may_publish(connection) else [])])
    of = {"all_tables": sql.SQL("FOR ALL TABLES"), "filtered": sql.SQL("FOR TABLE {}").format(held)}
    options = _options(config, creating=True, generated=knows_generated(connection))
    tail = sql.SQL("WITH ({})").format(options) if options else sql.SQL("")
    what_for = of.get(mode, sql.SQL(""))
    statement = sql.SQL("CREATE PUBLICATION {} {} {}").format(sql.Identifier(name), what_for, tail)
    lacks = (
        *_lacking_to_create(_role(connection), name, mode, tables, by_hand),
        *_lost_by_names(connection, config, tables),
    )
    return Action(statement, f"{name} will be created ({mode})", lacks)


def by_hand_alone(connection: psycopg.Connection[Any], config: Config) -> list[str] | None:
    """What the owner of the tables has to run where the role itself cannot make the publication; None if it can."""
    role, tables = _role(connection), captured(connection, config)
    if role.is_superuser or (role.may_create and all(table.owned for table in tables)):
        return None
    if find(connection, config[PUBLICATION_NAME]) is not None:
        return []
    statement = _by_hand(connection, config, [table for table in tables if not table.unlogged])
    return [] if statement is None else [f"{statement};"]


def _lacking_to_create(
    role: _Role, name: str, mode: str, tables: Sequence[PublishedTable], by_hand: str | None
) -> Iterator[Finding]:
    """What the role may not do, in one finding whose remedy is all that is needed."""
    foreign = [table for table in tables if not table.owned]
    grant = f"GRANT CREATE ON DATABASE {_quoted(role.database)} TO {_quoted(role.name)}"
    ways = (
        [f"as a superuser, or the tables' owner with CREATE on the database: {by_hand}; then set {_DISABLED}"]
        if by_hand
        else []
    )
    if mode == "all_tables" and not role.is_superuser:
        what = f"only a superuser may create {name} FOR ALL TABLES, and {role.name} is none"
        if role.may_create and tables and not foreign:
            ways.append("set publication.autocreate.mode=filtered")
    elif mode == "filtered" and foreign:
        what = f"{role.name} does not own {shown(foreign)}, which the publication {name} would hold"
    elif not role.may_create:
        what = f"{role.name} may not create the publication {name}"
        ways.insert(0, grant)
    else:
        return
    everything = f"as a superuser: CREATE PUBLICATION {_quoted(name)} FOR ALL TABLES; then set {_DISABLED}"
    yield Finding("publication", False, what, "; or ".join(ways) or everything)


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string()


def _by_hand(connection: psycopg.Connection[Any], config: Config, tables: Sequence[PublishedTable]) -> str | None:
    """The statement with which an administrator creates the publication of these tables; None without tables."""
    if not tables:
        return None
    name = config[PUBLICATION_NAME]
    triggers = event_triggers.triggers(connection)
    held = [*_names(tables), *([event_triggers.TABLE] if triggers is not None and triggers.is_theirs else [])]
    statement = sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(sql.Identifier(name), _listed(held)).as_string()
    is_via_root = config[PUBLISH_VIA_PARTITION_ROOT] or any(_lost_by_names(connection, config, tables))
    options = (
        *(["publish_via_partition_root = true"] if is_via_root else []),
        *([GENERATED] if knows_generated(connection) else []),
    )
    return f"{statement} WITH ({', '.join(options)})" if options else statement


def _lost_by_names(
    connection: psycopg.Connection[Any], config: Config, tables: Sequence[PublishedTable]
) -> Iterator[Finding]:
    """What would be lost with a publication that is not there yet, by the names that changes of partitions have."""
    names = {table.name for table in tables}
    mode, via_root = config[PUBLICATION_AUTOCREATE_MODE], config[PUBLISH_VIA_PARTITION_ROOT]
    if SnapshotMode.of(config).streams and mode != "no_tables":
        comes_as = will_come_as(mode, names, via_root=via_root)
        name = config[PUBLICATION_NAME]
        yield from unheard(name, lineages(connection), names, comes_as, lambda _: False, is_there=False)


def will_come_as(mode: str, names: set[Name], *, via_root: bool) -> ComesAs:
    """By which names changes of partitions come once the publication of a mode is made or adapted."""
    if not via_root:
        return lambda line: line[-1]
    return (lambda line: line[0]) if mode == "all_tables" else first_of(names)


def _adaptions(
    connection: psycopg.Connection[Any], config: Config, publication: Publication, tables: Sequence[PublishedTable]
) -> Iterator[Action]:
    """What makes a publication one of these tables, in statements that take the fewest rights.

    A table that it lists and nobody captures is no loss, so it may stay where the role does not own the publication.
    """
    name, role = sql.Identifier(publication.name), _role(connection)
    own = () if publication.is_owned else (f"own the publication {publication.name}",)
    extra = (
        publication.listed.difference(_names(tables), [event_triggers.TABLE]) if publication.is_owned else frozenset()
    )
    stay = publication.listed | publication.sent.difference(
        part for line in lineages(connection) if extra & {*line} for part in line
    )
    missing = [table for table in tables if table.name not in stay]
    if missing:
        statement = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}").format(name, _listed(_names(missing)))
        foreign = [table for table in missing if not table.owned]
        needs = (*own, *([f"own {shown(foreign)}"] if foreign else []))
        does = f"{publication.name} lacks {shown(missing)}, which will be added"
        yield Action(statement, does, _needed(role, publication.name, needs, statement), tuple(_names(missing)))
    if (
        publication.is_owned
        and event_triggers.TABLE not in publication.listed
        and event_triggers.may_publish(connection)
    ):
        statement = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}").format(name, _listed([event_triggers.TABLE]))
        yield Action(statement, f"{publication.name} lacks the table of the DDL triggers, which will be added")
    if extra:
        statement = sql.SQL("ALTER PUBLICATION {} DROP TABLE {}").format(name, _listed(sorted(extra)))
        names = shown([".".join(each) for each in sorted(extra)])
        yield Action(statement, f"{publication.name} lists {names}, which will be removed")
    options = _options(config, creating=False)
    if options and publication.operations != _published_operations(config):
        statement = sql.SQL("ALTER PUBLICATION {} SET ({})").format(name, options)
        does = f"{publication.name} will be altered: {options.as_string()}"
        lacks = _needed(role, publication.name, own, statement)
        yield Action(statement, does, lacks, operations=_published_operations(config))


def _needed(role: _Role, name: str, needs: Sequence[str], statement: sql.Composed) -> tuple[Finding, ...]:
    """What a role lacks that has to do these things first."""
    if not needs:
        return ()
    what = f"{role.name} does not {' and does not '.join(needs)}, so it may not alter {name}"
    return (Finding("publication", False, what, f"as the owner: {statement.as_string()}"),)


def addition(connection: psycopg.Connection[Any], config: Config, names: Sequence[Name]) -> tuple[Finding, ...]:
    """What the role lacks to add tables to the publication: one finding for all of them."""
    publication = find(connection, config[PUBLICATION_NAME])
    if publication is None or publication.all_tables:
        return ()
    missing = [
        table for table in every_table(connection) if table.name in {*names} - publication.sent - publication.listed
    ]
    foreign = [table for table in missing if not table.owned]
    needs = [] if publication.is_owned or not missing else [f"own the publication {publication.name}"]
    needs += [f"own {shown(foreign)}"] if foreign else []
    listed = _listed(_names(missing))
    statement = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}").format(sql.Identifier(publication.name), listed)
    return _needed(_role(connection), publication.name, needs, statement)


def _no_tables(name: str) -> SourceError:
    return SourceError(
        f"No table filters found for filtered publication {name}",
        remedy="check table.include.list and schema.include.list: no table of the database matches",
    )


def _names(tables: Sequence[PublishedTable]) -> list[Name]:
    return [table.name for table in tables]


def _listed(names: Sequence[Name]) -> sql.Composable:
    return sql.SQL(", ").join(sql.Identifier(*name) for name in names)


def knows_generated(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server can send stored generated columns."""
    return connection.info.server_version >= GENERATED_SINCE


def _options(config: Config, *, creating: bool, generated: bool = False) -> sql.Composable | None:
    """Options of the publication: operations only where they are set by hand, the default must not narrow it."""
    options: list[sql.Composable] = []
    if config.is_given(SKIPPED_OPERATIONS):
        sent = _published_operations(config)
        words = ", ".join(word for word in OPERATIONS.values() if word in sent)
        options.append(sql.SQL("publish = {}").format(sql.Literal(words)))
    if creating and config[PUBLISH_VIA_PARTITION_ROOT]:
        options.append(sql.SQL("publish_via_partition_root = true"))
    if generated:
        options.append(sql.SQL(GENERATED))
    return sql.SQL(", ").join(options) if options else None


def _published_operations(config: Config) -> frozenset[str]:
    skipped = config[SKIPPED_OPERATIONS]
    return frozenset(word for letter, word in OPERATIONS.items() if letter not in skipped)
