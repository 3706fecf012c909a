"""A replica as an Iceberg table for tests: writes micro-batches, reads with three readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.typedef import IcebergBaseModel

from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.schema_change import ALTER, SchemaChange
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica import contents
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.form import FormatVersion, Forms
from tailrace.sinks.replica.layout import ReplicaLayout
from tailrace.sinks.replica.marks import Extent, LogPlace
from tailrace.sinks.replica.parts import Part, parts
from tailrace.sinks.replica.target import read_table
from tailrace.sinks.replica.upkeep import Upkeep
from tests.behaviour.engines import catalog

NAME = "public.orders"
ORDERS = TableSchema(
    TableId("db", "public", "orders"),
    (
        Column("id", ConnectSchema("int32", False), pa.int32()),
        Column("note", ConnectSchema("string", True), pa.string()),
    ),
    ("id",),
    ("id",),
)
BAG = replace(ORDERS, key=(), identity=("id", "note"))
Row = dict[str, Any]
Change = tuple[str, Row | None, Row | None]


class Lake:
    """A namespace of a catalog, and a replica in it that micro-batches write as the sink's tasks do."""

    def __init__(self, folder: Path, version: FormatVersion = 2) -> None:
        self.folder, self.options, self.number, self.version = folder, catalog(folder), 0, version

    @property
    def catalog(self) -> Catalog:
        return load_catalog("tailrace", **self.options)

    @property
    def table(self) -> Table:
        return self.catalog.load_table(("lake", NAME))

    def batch(self, number: int, upkeep: Upkeep | None = None) -> MicroBatch:
        layout = ReplicaLayout(forms=Forms(version=self.version))
        return MicroBatch("iceberg://lake", "query", number, self.options, upkeep=upkeep, layout=layout)

    def write(self, *changes: Change, schema: TableSchema = ORDERS, again: bool = False) -> int:
        """A micro-batch of one transaction, or the one before again; how many rows it has put and deleted."""
        self.number += not again
        columns = {
            "op": pa.array([op for op, _, _ in changes]),
            "order": pa.array(range(len(changes)), pa.int64()),
            "ts_us": pa.array([0] * len(changes), pa.int64()),
            "before": pa.array([before for _, before, _ in changes], schema.row_type),
            "after": pa.array([after for _, _, after in changes], schema.row_type),
            COMMIT: pa.array([self.number] * len(changes), pa.int64()),
        }
        batch = ChangeBatch(schema, pa.RecordBatch.from_pydict(columns))
        (part,) = parts([pa.py_buffer(batch.to_ipc())])
        report = contents.write(self.batch(self.number), NAME, part)
        return report.upserted + report.deleted

    def alter(self, *renamed: tuple[str, str], dropped: Sequence[str] = ()) -> None:
        self.number += 1
        change = SchemaChange(ALTER, None, self.number, renamed=renamed, dropped=tuple(dropped))
        part = Part(Extent(0, None, LogPlace(self.number, 1)), change=change)
        contents.write(self.batch(self.number), NAME, part)

    def rows(self) -> list[Row]:
        found: list[Row] = read_table("iceberg://lake", NAME, self.options).sort_by(sorted_by(self.table)).to_pylist()
        return found

    def read(self) -> list[list[Row]]:
        """The rows as each reader has them."""
        by_pyiceberg = self.table.scan().to_arrow().sort_by(sorted_by(self.table)).to_pylist()
        return [self.rows(), by_pyiceberg, by_duckdb(self.table)]


def write_newer_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pyiceberg write metadata of version 3, which else only servers of catalogs do."""

    def written(metadata: TableMetadataV3, **given: Any) -> str:
        ends = [(each.first_row_id or 0) + (each.added_rows or 0) for each in metadata.snapshots]
        whole = metadata.model_copy(update={"next_row_id": max(ends, default=0)})
        return IcebergBaseModel.model_dump_json(whole, **given)

    monkeypatch.setattr(TableMetadataV3, "model_dump_json", written)


def sorted_by(there: Table) -> list[tuple[str, str]]:
    return [(there.schema().fields[0].name, "ascending")]


def by_duckdb(there: Table) -> list[Row]:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for package, name in ((duckdb_extension_avro, "avro"), (duckdb_extension_iceberg, "iceberg")):
        (file,) = Path(package.__path__[0]).glob(f"extensions/*/{name}.duckdb_extension")
        connection.execute(f"LOAD '{file}'")
    query = f"SELECT * FROM iceberg_scan('{there.metadata_location}') ORDER BY 1"
    found: list[Row] = connection.execute(query).to_arrow_table().to_pylist()
    return found


def order(id_: int, note: str | None = "n", **more: Any) -> Row:
    return {"id": id_, "note": note, **more}
