"""Protocol of a catalogue, and the rules by which a replica's tables are registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tailrace.errors import TableError

if TYPE_CHECKING:  # loads deltalake, which a pipeline file of another sink does without
    from tailrace.sinks.replica.catalogs.entry import CatalogEntry, CatalogTable


class Catalog(Protocol):
    """Tables by name in one namespace. Methods raise SinkAwayError if it does not answer, and SinkError otherwise."""

    def look(self) -> str:
        """Ask whether tables can be registered, change nothing, and say what was found out."""

    def find(self, name: str) -> CatalogTable | None:
        """What it has under a name."""

    def create(self, entry: CatalogEntry) -> None:
        """Register a table, of which it has none."""

    def change(self, entry: CatalogEntry) -> None:
        """Change a table that it has to this one. What others have added to it stays as far as it can."""

    def drop(self, name: str) -> None:
        """Remove a table from the catalogue, and no file of it."""


def put(catalog: Catalog, entry: CatalogEntry) -> None:
    """Register a table, or change it to what it is now; nothing is done where the catalogue has it so.

    A table that somebody else has registered for the same files is left as it is. Raises TableError for another table
    of that name.
    """
    current = catalog.find(entry.name)
    if current is None:
        catalog.create(entry)
    elif not current.is_at(entry.location) or current.table not in (None, entry.table):
        raise TableError(
            f"the catalog has another table of the name {entry.name}, at {current.location or 'no place of its own'}",
            where=entry.table,
            remedy="drop or rename that one in the catalog; this table is registered within ten minutes then, or at "
            "the next start. Or set another `namespace`",
        )
    elif current.table is not None and current.digest != entry.digest:
        catalog.change(entry)


def take_away(catalog: Catalog, name: str, table: str, location: str) -> None:
    """Remove the entry of a table that this replica has registered; one of somebody else stays."""
    current = catalog.find(name)
    if current is not None and current.table == table and current.is_at(location):
        catalog.drop(name)
