"""Describes the captured tables as the catalogue has them, so that what happens outside the log is noticed.

Few queries for all tables, of the catalogue alone: they need no right on the tables, and wait for no lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.postgres.catalog.capturing import NEXT, Capturing
from tailrace.connectors.postgres.catalog.members import FULL, Families, Family
from tailrace.connectors.postgres.ddl.event_triggers import reporting_since
from tailrace.connectors.postgres.server.partition_names import Name, left_out
from tailrace.connectors.postgres.server.sending import Sending
from tailrace.model.structure import ColumnType, Fact, Structure
from tailrace.model.table import TableId

_NAMES = """
SELECT n.nspname::text, c.relname::text, c.oid::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND n.nspname NOT LIKE 'pg\\_%'
  AND n.nspname <> 'information_schema'
"""
# A table's own type has its name, and another version once that or its schema changes, or its owner, who is noted by a
# version of another row. Columns of the system never change.
_TABLES = f"""
SELECT c.oid::text, c.relkind = 'p', c.relispartition, c.relpersistence::text, c.relfilenode::text,
  c.reltoastrelid::text, c.relnatts, {FULL.format("born.xmin")}, {FULL.format("t.xmin")},
  t.xmin = born.xmin AND t.cmin = born.cmin, coalesce(owner.xmin = t.xmin, false),
  c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
FROM pg_class c JOIN pg_attribute born ON born.attrelid = c.oid AND born.attnum = -1 JOIN pg_type t ON t.oid = c.reltype
LEFT JOIN pg_shdepend owner ON owner.classid = 'pg_class'::regclass AND owner.objid = c.oid AND owner.deptype = 'o'
  AND owner.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
WHERE c.oid = ANY (%s::oid[])
"""
# Types that show the same stored value alike have a kind in common.
_COLUMNS = f"""
SELECT a.attrelid::text, a.attname::text, a.attnum::text, a.atttypid::text || ':' || a.atttypmod,
  CASE WHEN b.typcategory IN ('S', 'V') THEN b.typcategory::text WHEN b.oid IN (1114, 1184) THEN 'timestamp'
    ELSE b.oid::text END,
  md5(d.adbin::text), {FULL.format("a.xmin")}, coalesce(e.oid, b.oid)::text
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
LEFT JOIN pg_type e ON e.typarray = b.oid AND e.oid = b.typelem
LEFT JOIN pg_attrdef d ON a.attgenerated <> '' AND d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY (%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
"""
_LABELS = "SELECT e.enumtypid::text, e.oid::text, e.enumlabel::text, t.typname::text FROM pg_enum e JOIN pg_type t ON "
_LABELS += "t.oid = e.enumtypid"
# What is kept of a root with very many partitions: its oldest ones.
_MOST_STORAGES = 100


@dataclass(frozen=True, slots=True)
class _Table:
    """A row of _TABLES: `born` and `named` are the transactions that made it, and that last changed its type's row.

    `is_as_made`: the same command did both. `is_owned`: the last change was of its owner.
    """

    oid: str
    is_root: bool
    is_partition: bool
    persistence: str
    file: str
    toast: str
    made: int
    born: int
    named: int
    is_as_made: bool
    is_owned: bool
    has_heirs: bool


@dataclass(slots=True)
class _Columns:
    """Columns: numbers, types, expressions of generated ones, enums, and the transactions that wrote their rows."""

    numbers: dict[str, str] = field(default_factory=dict)
    types: dict[str, ColumnType] = field(default_factory=dict)
    generated: dict[str, str] = field(default_factory=dict)
    enums: set[str] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)


class Structures:
    """For one process; see Connector.structures."""

    def __init__(self) -> None:
        self._families = Families()

    def read(self, connection: psycopg.Connection, config: Config, log: Mapping[str, Any]) -> dict[TableId, Structure]:
        """The captured tables; `log` is what the offset has of the log. Raises psycopg.Error."""
        row = connection.execute(f"SELECT {NEXT}".encode()).fetchone()
        assert row is not None
        now = int(row[0])
        capturing = Capturing.at(config, log, now)
        tables = _captured(connection, config)
        oids = list(tables.values())
        columns, labels = _columns(connection, oids), _labels(connection)
        found = {each.oid: each for each in (_Table(*row) for row in connection.execute(_TABLES.encode(), [oids]))}
        reporting = reporting_since(connection, FULL)
        sending = Sending.of(connection, config, oids if reporting is None else [*oids, str(reporting[0])])
        reported = None if reporting is None or not sending.has(str(reporting[0])) else reporting[1]
        known = Capturing.of(log)
        before = capturing.since if known is None else known.next
        families = self._families.of(connection, [each.oid for each in found.values() if each.is_root], before, now)
        structures = {}
        for id_, oid in tables.items():
            if oid not in found:
                continue  # dropped since
            table, family = found[oid], families.get(oid, Family())
            shown = _Shown(config, id_, table, columns.get(oid, _Columns()), family, reported)
            facts = {**shown.facts(labels), **sending.facts(oid)}
            unsent = shown.unlogged() or sending.unsent(oid, id_, shown.visible - shown.columns.generated.keys())
            # A table that a publication lists cannot be set unlogged.
            is_untold = not table.is_root and not sending.lists(oid)
            structures[id_] = replace(shown.structure(capturing), facts=facts, unsent=unsent, is_untold=is_untold)
        return structures


def _captured(connection: psycopg.Connection, config: Config) -> dict[TableId, str]:
    """The oids of the tables whose changes come by their own names."""
    lists, database = TableFilter.from_config(config), config.text("database.dbname")
    rows = [(TableId(database, *row[:2]), row[2]) for row in connection.execute(_NAMES).fetchall()]
    tables = {table: oid for table, oid in rows if lists.captures(table) and table.unique not in lists.signals}
    names: set[Name] = {(table.schema, table.table) for table in tables}
    others = left_out(connection, config, names)
    return {table: oid for table, oid in tables.items() if (table.schema, table.table) not in others}


def _columns(connection: psycopg.Connection, oids: Sequence[str]) -> dict[str, _Columns]:
    found: dict[str, _Columns] = {oid: _Columns() for oid in oids}
    for oid, name, number, exact, kind, generated, changed, base in connection.execute(_COLUMNS.encode(), [oids]):
        columns = found[oid]
        columns.numbers[name] = number
        columns.types[number] = ColumnType(exact, kind)
        columns.changed.add(changed)
        columns.enums.add(base)
        if generated is not None:
            columns.generated[number] = generated
    return found


def _labels(connection: psycopg.Connection) -> dict[str, dict[str, Fact]]:
    """The labels of each enum, as facts."""
    found: dict[str, dict[str, Fact]] = {}
    for enum, label, text, name in connection.execute(_LABELS.encode()):
        found.setdefault(enum, {})[f"label {label}"] = Fact(text, f"a label of the enum {name} was renamed to {text}")
    return found


@dataclass(frozen=True, slots=True)
class _Shown:
    """Describes one table from what was read of it. `reported`: since that transaction the log reports new names."""

    config: Config
    id: TableId
    table: _Table
    columns: _Columns
    family: Family
    reported: int | None

    @property
    def visible(self) -> set[str]:
        """The numbers of the captured columns."""
        lists = TableFilter.from_config(self.config)
        names = lists.columns(self.id, list(self.columns.numbers))
        return {self.columns.numbers[name] for name in names}

    def structure(self, capturing: Capturing) -> Structure:
        """All but what depends on the publication, and on enums."""
        table, visible = self.table, self.visible
        return Structure(
            identity=table.oid,
            columns=self.columns.numbers,
            hidden=tuple(number for number in self.columns.numbers.values() if number not in visible),
            types={number: each for number, each in self.columns.types.items() if number in visible},
            made=table.made,
            storage=self._storage(),
            members=self.family.members,
            left_empty=self.family.left_empty,
            renamed="as made" if table.is_as_made else "" if table.is_owned or self._is_told else str(table.named),
            epoch=capturing.epoch,
            unread=self._unread(capturing),
        )

    def facts(self, labels: Mapping[str, Mapping[str, Fact]]) -> dict[str, Fact]:
        """Labels of enums, and the expressions of generated columns."""
        found = {name: fact for enum in sorted(self.columns.enums) for name, fact in labels.get(enum, {}).items()}
        names = {number: name for name, number in self.columns.numbers.items()}
        for number, expression in self.columns.generated.items():
            why = f"the expression of the generated column {names[number]} was changed"
            found[f"expression {number}"] = Fact(expression, why)
        return found

    def unlogged(self) -> str | None:
        """Why changes are not in the log at all, if so."""
        if self.table.persistence == "u":
            return "it is unlogged, so its changes are not in the log (ALTER TABLE ... SET LOGGED)"
        for leaf in self.family.leaves:
            if leaf.persistence == "u":
                return f"its partition {leaf.name} is unlogged (ALTER TABLE ... SET LOGGED)"
            if leaf.kind == "f":
                return f"its partition {leaf.name} is a foreign table, whose changes are not in the log"
        return None

    @property
    def _is_told(self) -> bool:
        """Whether the log has told the table's last new name at its place."""
        return self.reported is not None and self.reported < self.table.named

    def _storage(self) -> tuple[str, ...]:
        """A file is another one after each rewrite, a TOAST table after those of ALTER TABLE alone."""
        if not self.table.is_root:
            return tuple(_storages(self.table.file, self.table.toast))
        oldest = sorted(self.family.leaves, key=lambda leaf: int(leaf.oid))[:_MOST_STORAGES]
        return tuple(each for leaf in oldest for each in _storages(leaf.file, leaf.toast))

    def _unread(self, capturing: Capturing) -> str | None:
        table, changed = self.table, self.columns.changed
        if capturing.epoch and table.born < capturing.since:
            return "it was not captured when its rows were written"
        is_named = not table.is_as_made and not table.is_owned and not self._is_told
        if is_named and table.named >= capturing.since:
            return "it had another name before, under which its changes came"
        # A detached partition has a new version of each column, all of one transaction.
        is_altered = len(changed) == 1 and min(changed) > table.born and min(changed) >= capturing.since
        if is_altered and not table.is_partition:
            return "it was a partition before, whose changes came under another name"
        return None


def _storages(file: str, toast: str) -> Iterator[str]:
    if file != "0":
        yield f"file {file}"
    if toast != "0":
        yield f"toast {toast}"
