"""How the user wants tables to be stored: Delta's properties and partitions, the version of Iceberg's format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.sinks.replica.folders import shown
from tailrace.sinks.replica.table import LakeError

# The properties that deltalake obeys, or that only other writers read. Any other one of Delta's may change what a file
# means: deltalake 1.6 loses values under column mapping, and cannot write a table again that has deletion vectors.
TAKEN = (
    "delta.enableChangeDataFeed",
    "delta.checkpointInterval",
    "delta.dataSkippingNumIndexedCols",
    "delta.dataSkippingStatsColumns",
    "delta.autoOptimize.autoCompact",
    "delta.autoOptimize.optimizeWrite",
    "delta.tuneFileSizesForRewrites",
)
# Texts that stand for null in partitions: in Delta's format, and in the folders by which deltalake groups rows.
_NULLS = ("", "__HIVE_DEFAULT_PARTITION__")
FormatVersion = Literal[2, 3]
# The version of Iceberg's format that has deletion vectors.
VECTORS: FormatVersion = 3
FEED = "delta.enableChangeDataFeed"


@dataclass(frozen=True)
class Form:
    """How one table is stored. `partitions`: the columns that partition it where it is made or wholly written again;
    `version` is that of Iceberg's format in which it is made.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    version: FormatVersion = 2

    def chosen(self, schema: pa.Schema, now: Sequence[str] | None = None) -> list[str]:
        """The columns that partition a table of a schema, which is partitioned by some `now` (None: it is new).

        A column that was renamed in the source is no longer one of `partitions`: the table stays partitioned then.
        Raises LakeError for columns that a new table does not have, or whose values Delta's partitions do not keep.
        """
        missing = [name for name in self.partitions if name not in schema.names]
        if missing and now is None:
            raise LakeError(
                f"the table has no column {', '.join(missing)} to be partitioned by",
                "correct sink.replica.partition_by, which names columns as the replica has them, then restart and run "
                "`tailrace retry`",
            )
        if missing or not self.partitions:
            columns = [name for name in now or () if name in schema.names]
        else:
            self._refuse_types(schema)
            columns = [*self.partitions]
        return columns if len(columns) < len(schema) else columns[1:]

    def _refuse_types(self, schema: pa.Schema) -> None:
        for name in self.partitions:
            if not _keeps_values(schema.field(name).type):
                raise LakeError(
                    f"the column {name} is of type {schema.field(name).type}, by which a table cannot be partitioned",
                    "set sink.replica.partition_by to columns of whole numbers, booleans, dates or texts, then restart "
                    "and run `tailrace retry`",
                )


@dataclass(frozen=True)
class Forms:
    """How all tables are stored; `partition_by`: columns by expressions for `schema.table`, the first that matches."""

    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    version: FormatVersion = 2

    def of(self, table: str) -> Form:
        """The form of a table by its unique name."""
        name = shown(table)
        columns_of = (columns for each, columns in self.partition_by.items() if re.fullmatch(each, name, re.IGNORECASE))
        return Form(self.properties, next(columns_of, ()), self.version)


def refuse_nulls(batch: pa.RecordBatch | pa.Table, names: Sequence[str]) -> None:
    """Raises LakeError for a text in a column that partitions a table which readers would take for null."""
    for name in names:
        values = batch.column(name)
        if pa.types.is_string(values.type) and pc.any(pc.is_in(values, pa.array(_NULLS))).as_py():
            raise LakeError(
                f"the column {name}, by which the table is partitioned, has an empty text or {_NULLS[1]}, which "
                "readers of Delta take for null",
                "partition it by another column (sink.replica.partition_by), or correct the value in the source; then "
                "restart and run `tailrace retry`",
            )


def _keeps_values(kind: pa.DataType) -> bool:
    """Whether deltalake reads values of a type as they were written: of bytes it does not, others were not tried."""
    types = pa.types
    return any((types.is_boolean(kind), types.is_integer(kind), types.is_date32(kind), types.is_string(kind)))
