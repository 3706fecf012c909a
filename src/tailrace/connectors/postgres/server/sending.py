"""Tells what a publication sends of tables, by the catalogue alone: it waits for no lock of a table.

The server's own view of publications, pg_publication_tables, locks each table that it names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import psycopg

from tailrace.config import Config
from tailrace.config.options.filters import SKIPPED_OPERATIONS
from tailrace.config.overrides import overrides
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.postgres.options import PUBLICATION_NAME
from tailrace.model.structure import Fact
from tailrace.model.table import TableId

_OPERATIONS = {"c": "inserts", "u": "updates", "d": "deletes", "t": "truncates"}
_LISTS_SINCE, _GENERATED_SINCE = 150_000, 180_000

_PUBLICATION = """
SELECT oid::text, xmin::text, puballtables, pubviaroot, ARRAY[pubinsert, pubupdate, pubdelete, pubtruncate],
  to_jsonb(p) ->> 'pubgencols' FROM pg_publication p WHERE pubname = %s
"""
# Row filters and column lists are known to PostgreSQL 15 and newer, and so are schemas.
_LISTED = """
SELECT r.prrelid::text, r.oid::text, {details} FROM pg_publication_rel r WHERE r.prpubid = %s::oid
"""
_DETAILS = "r.prattrs::int2[]::text[], r.prqual IS NOT NULL"
_IN_SCHEMAS = """
SELECT c.oid::text FROM pg_class c JOIN pg_publication_namespace s ON s.pnnspid = c.relnamespace
WHERE s.pnpubid = %s::oid AND c.oid = ANY (%s::oid[])
"""
_ANCESTORS = """
SELECT c.oid::text, a.oid::oid::text FROM pg_class c, pg_partition_ancestors(c.oid) AS a (oid)
WHERE c.oid = ANY (%s::oid[]) AND c.relispartition AND a.oid <> c.oid
"""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A table that a publication lists: the entry's oid, its column list (numbers), and whether it has a row filter."""

    oid: str
    columns: tuple[str, ...] | None
    has_filter: bool


@dataclass(frozen=True)
class Sending:
    """What a publication sends; `name` is the configuration's. Without a publication nothing is said.

    `lacks_generated`: stored generated columns are not sent.
    """

    name: str
    oid: str | None = None
    version: str = ""
    content: str = ""
    lacking: tuple[str, ...] = ()
    is_for_all: bool = False
    sends_inserts: bool = False
    lacks_generated: bool = False
    entries: Mapping[str, _Entry] | None = None
    in_schemas: Collection[str] = ()
    ancestors: Mapping[str, Sequence[str]] | None = None
    replaced: Collection[str] = ()

    @staticmethod
    def of(connection: psycopg.Connection, config: Config, oids: Sequence[str]) -> Sending:
        """What is sent of the tables with these oids. Raises psycopg.Error."""
        name = config[PUBLICATION_NAME]
        row = connection.execute(_PUBLICATION, [name]).fetchone()
        cannot = connection.info.server_version < _GENERATED_SINCE
        if row is None or not SnapshotMode.of(config).streams:
            return Sending(name, lacks_generated=cannot)
        oid, version, is_for_all, via_root, sent, generated = row
        has_lists = connection.info.server_version >= _LISTS_SINCE
        listed = connection.execute(_LISTED.format(details=_DETAILS if has_lists else "NULL, false").encode(), [oid])
        entries = {
            table: _Entry(entry, None if columns is None else tuple(columns), has_filter)
            for table, entry, columns, has_filter in listed
        }
        in_schemas = {each for (each,) in connection.execute(_IN_SCHEMAS, [oid, oids])} if has_lists else set()
        ancestors: dict[str, list[str]] = {}
        for part, ancestor in connection.execute(_ANCESTORS, [oids]):
            ancestors.setdefault(part, []).append(ancestor)
        if has_lists and ancestors:
            above = list({each for part in ancestors.values() for each in part})
            in_schemas |= {each for (each,) in connection.execute(_IN_SCHEMAS, [oid, above])}
        skipped = config[SKIPPED_OPERATIONS]
        lacking = [
            word
            for (letter, word), is_sent in zip(_OPERATIONS.items(), sent, strict=True)
            if not is_sent and letter not in skipped
        ]
        content = f"{sent} {via_root} {generated} {is_for_all}"
        return Sending(
            *(name, oid, version, content, tuple(lacking), is_for_all, sent[0], cannot or generated != "s"),
            *(entries, in_schemas, ancestors),
            replaced=overrides(config).keys(),
        )

    def lists(self, oid: str) -> bool:
        """Whether the publication has a table by itself, and not with others."""
        return oid in (self.entries or {})

    def has(self, oid: str) -> bool:
        """Whether the publication sends inserts of a table."""
        return self.sends_inserts and self._contains(oid)

    def facts(self, oid: str) -> dict[str, Fact]:
        """What must stay the same so that no change of a table is left out unseen."""
        if self.oid is None:
            return {}
        line, entries = self._line(oid), self.entries or {}
        own = ",".join(entries[each].oid for each in line if each in entries)
        altered = f"the publication {self.name} was altered, and altered back"
        taken = f"it was taken out of the publication {self.name} for a while, or is there with other conditions"
        return {
            "publication": Fact(f"{self.oid} {own}", taken, of=self.name),
            "operations": Fact(self.version, altered, of=f"{self.oid} {self.content}"),
        }

    def unsent(self, oid: str, table: TableId, columns: Collection[str]) -> str | None:
        """Why not all changes of a table are sent, with these columns (numbers); None if they are."""
        if self.oid is None:
            return None
        entries = self.entries or {}
        mine = [entries[each] for each in self._line(oid) if each in entries]
        if not self._contains(oid):
            return f"the publication {self.name} does not contain it"
        if self.lacking:
            return f"the publication {self.name} does not send {', '.join(self.lacking)}"
        if any(entry.has_filter for entry in mine) and str(table) not in self.replaced:
            return f"the publication {self.name} sends only rows that fulfil its condition"
        own = entries.get(oid)
        if own is not None and own.columns is not None and not {*columns} <= {*own.columns}:
            return f"the publication {self.name} sends only some of its columns"
        return None

    def _contains(self, oid: str) -> bool:
        return self.is_for_all or bool({*self._line(oid)} & {*(self.entries or {}), *self.in_schemas})

    def _line(self, oid: str) -> list[str]:
        """A table, and those that it is a part of."""
        return [oid, *(self.ancestors or {}).get(oid, ())]
