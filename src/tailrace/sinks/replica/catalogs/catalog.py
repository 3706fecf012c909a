"""Protocol of a catalogue, the catalogues that can be had, and the rules by which a replica's tables are registered."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from tailrace.errors import ConfigError, TableError

if TYPE_CHECKING:  # loads deltalake, which a pipeline file of another sink does without
    from tailrace.sinks.replica.catalogs.entry import CatalogEntry, CatalogTable

# By type: the properties that it takes, those that it needs, the levels of its namespace, and the package that it uses.
_AWS = ("region", "endpoint", "id", "profile-name", "access-key-id", "secret-access-key", "session-token")
TYPES: Mapping[str, tuple[frozenset[str], frozenset[str], int, str]] = {
    "hive": (frozenset({"uri", "ugi", "location"}), frozenset({"uri"}), 1, "thrift"),
    "glue": (frozenset({*(f"glue.{name}" for name in _AWS), "location"}), frozenset(), 1, "boto3"),
    "unity": (frozenset({"uri", "token", "location"}), frozenset({"uri"}), 2, "httpx"),
}


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


def problem(properties: Mapping[str, object], namespace: str | None) -> str | None:
    """What is wrong of the settings of a catalogue of Delta tables."""
    kind = str(properties.get("type"))
    if kind not in TYPES:
        return f"catalog.type should be {', '.join(sorted(TYPES))}; Delta tables are registered in no other catalog"
    known, needed, levels, _ = TYPES[kind]
    for name in sorted(properties.keys() - {"type", *known}):
        near = difflib.get_close_matches(name, known, n=1)
        return f"catalog.{name}: unknown key" + (f"; did you mean {near[0]}?" if near else "")
    if missing := sorted(needed - properties.keys()):
        return f"catalog.{missing[0]} is missing, which a catalog of type {kind} needs"
    if namespace is None or len(namespace.split(".")) != levels:
        shape = "the database" if levels == 1 else "catalog and schema with a dot between them"
        return f"namespace is needed beside a catalog of type {kind}: {shape}"
    return None


def catalog_of(properties: Mapping[str, str], namespace: str) -> Catalog:
    """The catalogue of valid settings; it connects on first use. Raises ConfigError where its package is missing."""
    kind = properties["type"]
    package = TYPES[kind][-1]
    if find_spec(package) is None:
        raise ConfigError(
            f"a catalog of type {kind} needs the package {package}",
            where="sink.replica.catalog",
            remedy=f"pip install 'tailrace[{kind}]'",
        )
    if kind == "hive":
        from tailrace.sinks.replica.catalogs.hive import Hive  # each loads a package that is optional

        return Hive(properties["uri"], namespace, properties.get("ugi"))
    if kind == "glue":
        from tailrace.sinks.replica.catalogs.glue import Glue

        return Glue(properties, namespace)
    from tailrace.sinks.replica.catalogs.unity import Unity

    return Unity(properties["uri"], namespace, properties.get("token"))


def put(catalog: Catalog, entry: CatalogEntry) -> None:
    """Register a table, or change it to what it is now; nothing is done where the catalogue has it so.

    A table that somebody else has registered for the same files is left as it is. Raises TableError for another table
    of that name.
    """
    known = catalog.find(entry.name)
    if known is None:
        catalog.create(entry)
    elif not known.is_at(entry.location) or known.table not in (None, entry.table):
        raise TableError(
            f"the catalog has another table of the name {entry.name}, at {known.location or 'no place of its own'}",
            where=entry.table,
            remedy="drop or rename that one in the catalog; this table is registered within ten minutes then, or at "
            "the next start. Or set another `namespace`",
        )
    elif known.table is not None and known.digest != entry.digest:
        catalog.change(entry)


def take_away(catalog: Catalog, name: str, table: str, location: str) -> None:
    """Remove the entry of a table that this replica has registered; one of somebody else stays."""
    known = catalog.find(name)
    if known is not None and known.table == table and known.is_at(location):
        catalog.drop(name)
