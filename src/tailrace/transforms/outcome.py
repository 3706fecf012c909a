"""Says under which schemas and topics the records of a table leave the transforms, by a few rows without values."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa

from tailrace.config import Config
from tailrace.errors import DecodeError, TransformError
from tailrace.events.payload import arrow_type
from tailrace.events.records import Records
from tailrace.events.unfold import Unfolder
from tailrace.model.change import CREATE, DELETE, UPDATE, ChangeBatch
from tailrace.model.source import SourceBlock
from tailrace.model.table import TableSchema
from tailrace.transforms import Step
from tailrace.transforms.registry import is_known, staged, stages
from tailrace.transforms.scripting import ConditionFilter
from tailrace.transforms.transform import ByValues, Stage

_OPS = (CREATE, UPDATE, DELETE)


class Outcomes:
    """What a configuration's transforms and a pipeline's steps make of tables."""

    def __init__(self, config: Config, source: SourceBlock, steps: Sequence[Step]) -> None:
        all_stages = [*stages(config), *staged(steps)]
        self._block, self._unfolder = source, Unfolder(config, source, "check")
        self._by_values = any(_is_by_values(stage) for stage in all_stages)
        # Conditions take records away, and leave the others as they are.
        self._stages = [stage for stage in all_stages if not isinstance(stage.transform, ConditionFilter)]

    def of(self, table: TableSchema) -> list[Records] | None:
        """An insert, an update, a delete and its tombstone as they leave; None where that takes the values of rows."""
        if self._by_values:
            return None
        outcome: list[Records] = []
        try:
            for groups in self._unfolder.unfold(_sample(table, self._block)):
                for stage in self._stages:
                    groups = stage.run(groups)
                outcome += groups
        except (DecodeError, TransformError):  # it does not take a row without values
            return None
        return outcome


def _is_by_values(stage: Stage) -> bool:
    return isinstance(stage.transform, ByValues) or not is_known(stage.transform)


def _sample(table: TableSchema, block: SourceBlock) -> ChangeBatch:
    """A row for each of the operations, of nulls."""
    rows = len(_OPS)
    row = pa.array([{}] * rows, table.row_type)
    absent = pa.nulls(rows, table.row_type)
    types = {name: pa.int64() for name in block.sequence or ()}
    types |= {each.name: arrow_type(each.schema) for each in block.fields}
    data = {
        "op": pa.array(_OPS),
        "order": pa.array(range(0, 2 * rows, 2), pa.int64()),
        "ts_us": pa.array([time.time_ns() // 1000] * rows, pa.int64()),
        "snapshot": pa.nulls(rows, pa.string()),
        "source": pa.array([{}] * rows, pa.struct(list(types.items()))),
        "before": pa.concat_arrays([absent.slice(0, 1), row.slice(1)]),
        "after": pa.concat_arrays([row.slice(1), absent.slice(0, 1)]),
    }
    return ChangeBatch(table, pa.record_batch(data))
