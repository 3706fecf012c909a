"""Describes the partitions of tables whose changes the log has under the root's name.

A partition that is attached, detached, dropped or truncated by itself changes the root's rows without a word in the
log. Whether that mattered is asked of its rows, which have the numbers of the transactions that wrote them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg import sql

from tailrace.connectors.postgres.catalog.capturing import NEXT
from tailrace.model.structure import Member

log = logging.getLogger(__name__)

# A transaction's number beyond 32 bits, near the present one.
FULL = f"({NEXT} + (({{}}::text::bigint - {NEXT} + 2147483648) & 4294967295) - 2147483648)"

_LEAVES = f"""
WITH RECURSIVE tree AS (
  SELECT i.inhparent AS root, i.inhrelid AS oid, {FULL.format("i.xmin")} AS arrived, i.cmin::text::bigint AS command
  FROM pg_inherits i WHERE i.inhparent = ANY (%s::oid[]) AND NOT i.inhdetachpending
  UNION ALL
  SELECT t.root, i.inhrelid, greatest(t.arrived, {FULL.format("i.xmin")}),
    CASE WHEN {FULL.format("i.xmin")} > t.arrived THEN i.cmin::text::bigint ELSE t.command END
  FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid WHERE NOT i.inhdetachpending
)
SELECT t.root::text, t.oid::text, n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text,
  c.relfilenode::text, c.reltoastrelid::text, t.arrived, t.command
FROM tree t JOIN pg_class c ON c.oid = t.oid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind <> 'p' ORDER BY t.arrived DESC
"""
_IS_EMPTY = "SELECT FROM pg_class WHERE oid = %s::oid AND relfilenode::text = %s AND pg_relation_size(oid) = 0"
# How long the rows of a partition are looked at, and those of all.
_MOST_MS, _LOCK_MS, _MOST_SECONDS = 2000, 200, 10


@dataclass(frozen=True, slots=True)
class Leaf:
    """A partition with rows of its own, and the transaction and the command that made it part of the root."""

    root: str
    oid: str
    schema: str
    table: str
    kind: str
    persistence: str
    file: str
    toast: str
    arrived: int
    command: int

    @property
    def storage(self) -> str:
        """Another one after its rows were rewritten or removed."""
        return f"{self.file}/{self.toast}"

    @property
    def arrival(self) -> str:
        """The transaction's number as the catalogue has it, which stays the same however far the others go."""
        return str(self.arrived & 0xFFFFFFFF)

    @property
    def name(self) -> str:
        """Schema and name."""
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class PartitionFamily:
    """The leaves of a root, the same as members of its structure, and former ones (by oid) that had no rows."""

    leaves: tuple[Leaf, ...] = ()
    members: Mapping[str, Member] = field(default_factory=dict)
    left_empty: tuple[str, ...] = ()


class Families:
    """For one process, which looks at the rows of a partition when it meets it, and when its storage is another one."""

    def __init__(self) -> None:
        self._members: dict[str, tuple[Leaf, Member]] = {}
        self._left: dict[str, list[str]] = {}
        self._seen: int | None = None

    def of(
        self, connection: psycopg.Connection, roots: Collection[str], since: int, now: int
    ) -> dict[str, PartitionFamily]:
        """The leaves of roots (by oid), when the transaction `now` has not begun.

        What was before the transaction `since` an earlier process has described. Raises psycopg.Error.
        """
        if not roots and not self._members:
            return {}
        rows = PartitionRows(connection, since if self._seen is None else self._seen)
        leaves = [Leaf(*row) for row in connection.execute(_LEAVES.encode(), [[*roots]])]
        earlier = {leaf.oid: self._members.get(leaf.oid) for leaf in leaves}
        members = {leaf.oid: (leaf, _member(rows, leaf, earlier[leaf.oid])) for leaf in leaves}
        for oid in self._members.keys() - members.keys():
            leaf = self._members[oid][0]
            if rows.had_none(leaf):
                self._left.setdefault(leaf.root, []).append(oid)
        self._members, self._seen = members, now
        return {root: self._family(root) for root in roots}

    def _family(self, root: str) -> PartitionFamily:
        part = [entry for entry in self._members.values() if entry[0].root == root]
        members = {leaf.oid: member for leaf, member in part}
        return PartitionFamily(tuple(leaf for leaf, _ in part), members, tuple(self._left.get(root, ())))


def _member(rows: PartitionRows, leaf: Leaf, earlier: tuple[Leaf, Member] | None) -> Member:
    """A leaf as it is, with what its rows tell of how it became so. What cannot be found out is assumed to be bad."""
    if earlier is not None and earlier[0] == leaf:
        return earlier[1]
    before = None if earlier is None else earlier[0]
    has_come = before is None or (before.arrived, before.root) != (leaf.arrived, leaf.root)
    had_rows = has_come and not rows.had_none_when_it_came(leaf)
    is_same = before is not None and before.storage == leaf.storage
    is_alter = before is not None and before.toast != leaf.toast
    keeps_rows = not is_same and not is_alter and rows.keeps_old(leaf)
    return Member(leaf.name, leaf.storage, had_rows, keeps_rows, leaf.arrival)


class PartitionRows:
    """Asks the rows of partitions. What was before the transaction `since` was described before."""

    def __init__(self, connection: psycopg.Connection, since: int) -> None:
        self._connection = connection
        self._since = since
        self._deadline = time.monotonic() + _MOST_SECONDS

    def had_none_when_it_came(self, leaf: Leaf) -> bool:
        """Whether a leaf surely had no rows when it became one."""
        if leaf.arrived < self._since:
            return False
        older = f"({FULL.format('xmin')}, CASE WHEN {FULL.format('xmin')} = %s THEN cmin::text::bigint ELSE 0 END)"
        condition = sql.SQL(older + " < (%s, %s)")
        return self._has(leaf, condition, [leaf.arrived, leaf.arrived, leaf.command]) is False

    def keeps_old(self, leaf: Leaf) -> bool:
        """Whether a leaf surely has rows from before its last description."""
        return self._has(leaf, sql.SQL(FULL.format("xmin") + " < %s"), [self._since]) is True

    def had_none(self, leaf: Leaf) -> bool:
        """Whether a former leaf surely never had rows: it has the same storage, without a page."""
        return self._asked(leaf, sql.Composed([sql.SQL(_IS_EMPTY)]), [leaf.oid, leaf.file]) is True

    def _has(self, leaf: Leaf, condition: sql.SQL, values: list[object]) -> bool | None:
        """Whether a leaf has such a row; None where finding out takes too long, a lock or a right."""
        table = sql.Identifier(leaf.schema, leaf.table)
        return self._asked(leaf, sql.SQL("SELECT FROM ONLY {} WHERE {} LIMIT 1").format(table, condition), values)

    def _asked(self, leaf: Leaf, query: sql.Composed, values: list[object]) -> bool | None:
        if time.monotonic() > self._deadline:
            return None
        try:
            with self._briefly():
                return self._connection.execute(query, values).fetchone() is not None
        except psycopg.Error as error:
            if self._connection.closed:
                raise
            log.debug("the rows of %s cannot be looked at: %s", leaf.name, error)
            return None

    @contextmanager
    def _briefly(self) -> Iterator[None]:
        with self._connection.transaction():
            self._connection.execute(f"SET LOCAL statement_timeout = {_MOST_MS}".encode())
            self._connection.execute(f"SET LOCAL lock_timeout = {_LOCK_MS}".encode())
            yield
