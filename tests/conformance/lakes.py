"""The formats of replicas in the conformance suite: their settings in a pipeline file, and what is done to them."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.expressions import In
from pyiceberg.types import StringType

from tailrace.sinks.replica.folders import folder as folder_of
from tests.behaviour.engines import catalog
from tests.conformance.subject import KEY
from tests.servers import target


class TestedLake(ABC):
    """A format of replicas; `table` is the unique name of one, `folder` that of the pipeline."""

    name: str

    @abstractmethod
    def settings(self, folder: Path) -> dict[str, Any]:
        """The replica's settings in a pipeline file."""

    @abstractmethod
    def drop(self, folder: Path, table: str) -> None:
        """Remove a replica's table."""

    @abstractmethod
    def delete(self, folder: Path, table: str, keys: Iterable[int]) -> None:
        """Delete rows by another writer."""

    @abstractmethod
    def retype(self, folder: Path, table: str, column: str) -> None:
        """Give a column a type that no source's value has a place in."""


class DeltaFolder(TestedLake):
    """Delta tables below the pipeline's folder."""

    name = "delta"

    def settings(self, folder: Path) -> dict[str, Any]:
        return {"path": "lake"}

    def drop(self, folder: Path, table: str) -> None:
        shutil.rmtree(self._place(folder, table))

    def delete(self, folder: Path, table: str, keys: Iterable[int]) -> None:
        DeltaTable(self._place(folder, table)).delete(f"{KEY} IN ({', '.join(map(str, keys))})")

    def retype(self, folder: Path, table: str, column: str) -> None:
        place = self._place(folder, table)
        rows = _retyped(DeltaTable(place).to_pyarrow_table(), column)
        write_deltalake(place, rows, mode="overwrite", schema_mode="overwrite")

    def _place(self, folder: Path, table: str) -> Path:
        return folder / "lake" / folder_of(table)


class IcebergCatalog(TestedLake):
    """Iceberg tables in a catalog of SQLite below the pipeline's folder."""

    name = "iceberg"

    def settings(self, folder: Path) -> dict[str, Any]:
        return {"format": "iceberg", "namespace": "lake", "catalog": catalog(folder / "lake")}

    def drop(self, folder: Path, table: str) -> None:
        self._catalog(folder).purge_table(("lake", folder_of(table)))

    def delete(self, folder: Path, table: str, keys: Iterable[int]) -> None:
        there = self._catalog(folder).load_table(("lake", folder_of(table)))
        # Keys of documents are text.
        is_text = isinstance(there.schema().find_field(KEY).field_type, StringType)
        there.delete(In(KEY, [str(key) if is_text else key for key in keys]))  # type: ignore[call-arg, arg-type]

    def retype(self, folder: Path, table: str, column: str) -> None:
        there = self._catalog(folder).load_table(("lake", folder_of(table)))
        rows = _retyped(there.scan().to_arrow(), column)
        with there.update_schema() as update:
            update.delete_column(column)
        with there.update_schema() as update:
            update.union_by_name(rows.schema)
        there.overwrite(rows.select(there.schema().column_names))

    def _catalog(self, folder: Path) -> Catalog:
        return load_catalog("tailrace", **catalog(folder / "lake"))


class DatabaseSchema(TestedLake):
    """Tables of a database of the pipeline's own."""

    name = "postgres"

    def settings(self, folder: Path) -> dict[str, Any]:
        return {**target.settings(folder)}

    def drop(self, folder: Path, table: str) -> None:
        target.execute(folder, f"DROP TABLE {self._table(table)}")

    def delete(self, folder: Path, table: str, keys: Iterable[int]) -> None:
        # Keys of documents are text.
        texts = ", ".join(f"'{key}'" for key in keys)
        target.execute(folder, f'DELETE FROM {self._table(table)} WHERE "{KEY}"::text IN ({texts})')

    def retype(self, folder: Path, table: str, column: str) -> None:
        target.execute(folder, f'ALTER TABLE {self._table(table)} ALTER "{column}" TYPE bytea USING NULL')

    def _table(self, table: str) -> str:
        return f'{target.NAMESPACE}."{folder_of(table)}"'


def _retyped(rows: pa.Table, column: str) -> pa.Table:
    place = rows.column_names.index(column)
    return rows.set_column(place, column, rows.column(place).cast(pa.binary()))


LAKES: list[TestedLake] = [DeltaFolder(), IcebergCatalog(), DatabaseSchema()]
