"""Makes a Structure of what the catalogue has of a table, see model/structure.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field

from tailrace.connectors.postgres.catalog.capturing import Capturing
from tailrace.connectors.postgres.catalog.members import PartitionFamily
from tailrace.connectors.postgres.catalog.type_parts import TypeFacts
from tailrace.connectors.postgres.server.sending import Sending
from tailrace.model.structure import CHANGED_KEY, ColumnType, Fact, Structure
from tailrace.model.table import TableId

# What is kept of a root with very many partitions: its oldest ones.
_MOST_STORAGES = 100
_LOGGED, _FULL = "ALTER TABLE ... SET LOGGED", "ALTER TABLE ... REPLICA IDENTITY FULL"


@dataclass(frozen=True, slots=True)
class Row:
    """A table in the catalogue. `born` and `named` are the transactions that made it, and last changed its type's row.

    `is_as_made`: the same command did both. `is_owned`: the last change was of its owner. `columns` is another text
    once a column is.
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
    has_generated_identity: bool
    columns: str
    is_identity_full: bool


@dataclass(slots=True)
class DescribedColumns:
    """Columns: numbers, and by these types, expressions of generated ones, and types of users.

    `changed` are the transactions that wrote their rows, `later` the numbers of those whose rows the command that made
    the table did not write.
    """

    numbers: dict[str, str] = field(default_factory=dict)
    types: dict[str, ColumnType] = field(default_factory=dict)
    generated: dict[str, str] = field(default_factory=dict)
    own_types: dict[str, str] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)
    later: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Around:
    """What all tables share. `reported`: since that transaction the log reports new names of tables."""

    capturing: Capturing
    type_facts: TypeFacts
    sending: Sending
    reported: int | None


@dataclass(frozen=True, slots=True)
class Description:
    """One table; `visible` are the numbers of its captured columns. `key` tells its key, where that is compared."""

    id: TableId
    table: Row
    columns: DescribedColumns
    visible: set[str]
    _: KW_ONLY
    family: PartitionFamily
    around: Around
    key: str | None = None

    @property
    def structure(self) -> Structure:
        """The table, with what the publication sends of it."""
        table, sending = self.table, self.around.sending
        return Structure(
            identity=table.oid,
            columns=self.columns.numbers,
            hidden=tuple(number for number in self.columns.numbers.values() if number not in self.visible),
            types={number: each for number, each in self.columns.types.items() if number in self.visible},
            made=table.made,
            version=table.columns,
            storage=self._storage(),
            # A table that a publication lists cannot be set unlogged.
            is_untold=not table.is_root and not sending.lists(table.oid),
            filled=tuple(self.columns.generated),
            members=self.family.members,
            left_empty=self.family.left_empty,
            facts={**self._facts(), **sending.facts(table.oid)},
            renamed="as made" if table.is_as_made else "" if table.is_owned or self._is_told else str(table.named),
            unread=self._unread(),
            unmet=self._unmet(),
            unsent=self._unsent(),
        )

    def _facts(self) -> dict[str, Fact]:
        """Those of types, the key, and the expressions of generated columns."""
        names = {number: name for name, number in self.columns.numbers.items()}
        own = sorted({type_ for number, type_ in self.columns.own_types.items() if number in self.visible})
        facts = {name: fact for type_ in own for name, fact in self.around.type_facts[type_].items()}
        for number, expression in self.columns.generated.items():
            why = f"the expression of the generated column {names[number]} was changed"
            facts[f"expression {number}"] = Fact(expression, why)
        if self.key is not None:
            facts["key"] = Fact(self.key, CHANGED_KEY)
        return facts

    def _unsent(self) -> str | None:
        """Why the log does not have all changes, or not so that their rows are found."""
        if self.table.persistence == "u":
            return f"it is unlogged, so its changes are not in the log ({_LOGGED})"
        for leaf in self.family.leaves:
            if leaf.persistence == "u":
                return f"its partition {leaf.name} is unlogged ({_LOGGED})"
            if leaf.kind == "f":
                return f"its partition {leaf.name} is a foreign table, whose changes are not in the log"
        if self.table.has_generated_identity and self.around.sending.lacks_generated:
            return f"its replica identity has a generated column, which the log does not have ({_FULL})"
        # Generated columns are computed.
        return self.around.sending.unsent(self.table.oid, self.id, self.visible - self.columns.generated.keys())

    @property
    def _is_told(self) -> bool:
        """Whether the log has told the table's last new name at its place."""
        return self.around.reported is not None and self.around.reported < self.table.named

    def _storage(self) -> tuple[str, ...]:
        """A file is another one after each rewrite, a TOAST table after those of ALTER TABLE alone."""
        if not self.table.is_root:
            return tuple(_storages(self.table.file, self.table.toast))
        oldest = sorted(self.family.leaves, key=lambda leaf: int(leaf.oid))[:_MOST_STORAGES]
        return tuple(each for leaf in oldest for each in _storages(leaf.file, leaf.toast))

    def _unread(self) -> str | None:
        table, changed, capturing = self.table, self.columns.changed, self.around.capturing
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

    def _unmet(self) -> str | None:
        table, later = self.table, self.columns.later
        if table.born < self.around.capturing.since or not later:
            return None
        if table.file not in ("0", table.oid):
            return "its columns were changed and its rows rewritten before it was looked at"
        gone = {*range(1, table.made + 1)}.difference(map(int, self.columns.numbers.values()))
        if gone and max(later) > min(gone):
            return "its columns were dropped and added before it was looked at"
        return None


def _storages(file: str, toast: str) -> Iterator[str]:
    if file != "0":
        yield f"file {file}"
    if toast != "0":
        yield f"toast {toast}"
