"""Streams a table's rows in other columns and types, as they are written again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa

from tailrace.sinks.replica.evolve import cast, trimmed
from tailrace.sinks.replica.table import Table


def streamed(
    target: Table,
    schema: pa.Schema,
    names: Sequence[str] | None = None,
    values: pa.Table | None = None,
    numbers: Collection[str] = (),
) -> pa.RecordBatchReader:
    """The table's rows in another schema, as a stream: their columns are those of `names` (None: all of them).

    After them come the columns of `values`, a row that all rows have. `numbers` are decimals that become text.
    """
    whole = schema if values is None else pa.schema([*schema, *values.schema])
    source = target.scan()  # not in the loop, which runs inside deltalake

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in source:
            table = pa.Table.from_batches([batch if names is None else batch.select(list(names))])
            for name in numbers:
                table = table.set_column(table.schema.get_field_index(name), name, trimmed(table.column(name)))
            columns = [cast(table.column(place), field.type) for place, field in enumerate(schema)]
            table = pa.table(columns, schema=schema)
            for field in () if values is None else values.schema:
                value = values.column(field.name)[0] if values is not None else None
                table = table.append_column(field, pa.repeat(value, table.num_rows))
            yield from table.combine_chunks().to_batches()

    return pa.RecordBatchReader.from_batches(whole, rows())
