"""Iceberg tables in a namespace of a catalog: finds, makes and removes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, NotInstalledError
from pyiceberg.table.snapshots import Operation

from tailrace.errors import ConfigError
from tailrace.override import override
from tailrace.sinks.replica.form import FormatVersion
from tailrace.sinks.replica.iceberg.columns import fitted
from tailrace.sinks.replica.iceberg.commits import SnapshotChange, commit
from tailrace.sinks.replica.iceberg.errors import said, translated
from tailrace.sinks.replica.iceberg.files import write_rows
from tailrace.sinks.replica.iceberg.index import forget
from tailrace.sinks.replica.iceberg.java_properties import CATALOG
from tailrace.sinks.replica.iceberg.maintenance import properties
from tailrace.sinks.replica.iceberg.table import Iceberg
from tailrace.sinks.replica.table import Lake, Mark, Rows

# What properties raise that cannot be right, also in SQLAlchemy, which only the catalog `sql` needs.
_WRONG = (ValueError, NotInstalledError, ImportError)
_WRONG_URLS = ("ArgumentError", "NoSuchModuleError")


@dataclass(frozen=True)
class IcebergLake(Lake):
    """Implements Lake for the tables in a namespace; what is below a root is in a namespace beside it."""

    namespace: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    version: FormatVersion = 2

    @staticmethod
    def of(text: str, options: Mapping[str, str], version: FormatVersion = 2) -> IcebergLake:
        """The lake of a namespace (its levels are joined by dots), or of a folder in it (`namespace/_aside`)."""
        name, _, folder = text.rstrip("/").partition("/")
        return IcebergLake(tuple(name.split(".")), options, version).below(folder)

    @override
    def below(self, folder: str) -> IcebergLake:
        *levels, last = self.namespace
        return IcebergLake((*levels, last + folder), self.options, self.version)

    @override
    def uri(self, name: str) -> str:
        return ".".join((*self.namespace, name))

    @translated
    @override
    def names(self) -> frozenset[str]:
        try:
            return frozenset(each[-1] for each in self._catalog.list_tables(self.namespace))
        except NoSuchNamespaceError:  # nothing was written yet
            return frozenset()

    @translated
    @override
    def open(self, name: str) -> Iceberg | None:
        try:
            return Iceberg(self._catalog.load_table((*self.namespace, name)))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    @translated
    @override
    def create(self, name: str, rows: Rows, mark: Mark, kept_seconds: int | None) -> None:
        """A table without a snapshot, of a process that was killed in between, has no rows."""
        kept = {} if kept_seconds is None else properties(kept_seconds)
        self._catalog.create_namespace_if_not_exists(self.namespace)
        schema, version = fitted(rows.schema, None, 0), {"format-version": str(self.version)}
        table = self._catalog.create_table_if_not_exists(
            (*self.namespace, name), schema, properties={**version, **kept}
        )
        files = [file for file, _ in write_rows(table, table.schema(), rows)]
        commit(table, SnapshotChange(Operation.APPEND, files), mark)

    @translated
    @override
    def remove(self, name: str) -> None:
        try:
            table = self._catalog.load_table((*self.namespace, name))
            self._catalog.purge_table((*self.namespace, name))
        except (NoSuchTableError, NoSuchNamespaceError):
            return
        forget(table)

    @translated
    @override
    def look(self, seconds: float) -> None:
        self._catalog.namespace_exists(self.namespace)

    @property
    def _catalog(self) -> Catalog:
        return _catalog(tuple(sorted(self.options.items())))


@lru_cache(maxsize=8)
def _catalog(options: tuple[tuple[str, str], ...]) -> Catalog:
    """A catalog, which a process opens once. Raises ConfigError for properties that pyiceberg refuses."""
    try:
        return load_catalog(CATALOG, **{"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO", **dict(options)})
    except Exception as error:
        if not (isinstance(error, _WRONG) or type(error).__name__ in _WRONG_URLS):
            raise
        raise ConfigError(
            f"pyiceberg refuses the catalog: {said(error)}",
            where="sink.replica.catalog",
            remedy="correct its properties (type, uri, warehouse, ...), or install pyiceberg's extra for its type, "
            "such as pip install 'pyiceberg[glue]'",
        ) from error
