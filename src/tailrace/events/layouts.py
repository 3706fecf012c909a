"""Prepares what is constant in the records of a table, or of many tables of one structure that are encoded together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import pyarrow as pa

from tailrace.config import Config
from tailrace.events.converter import Converter
from tailrace.events.parts import Integers, Part
from tailrace.events.plan import EventPlan, EventPlans
from tailrace.events.source import as_json
from tailrace.model.arrow import indices
from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.model.table import TableId, TableSchema

Batch = ChangeBatch | ControlBatch

# A batch of more rows costs what its rows cost, whichever others are encoded with it.
_FEW_ROWS = 4096
# What is encoded together, in bytes of columns and of texts that are constant for a table.
_MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class Layout:
    """The constant parts of a table's records. Of several tables encoded together, those that differ are by row.

    `source` has the members of the source block that are the same for all rows of a table, as JSON. The wraps are the
    texts before and after a payload. `plan` is the first table's, which the others are like.
    """

    plan: EventPlan
    topic: Part
    source: dict[str, Part]
    key_wrap: tuple[Part, str]
    _: KW_ONLY
    value_wrap: tuple[Part, str]
    header_wrap: tuple[str, str]
    where: str

    def take(self, places: Integers) -> Layout:
        """The layout of some of the rows."""
        (key, _), (value, _) = self.key_wrap, self.value_wrap
        return replace(
            self,
            topic=_taken(self.topic, places),
            source={name: _taken(text, places) for name, text in self.source.items()},
            key_wrap=(_taken(key, places), self.key_wrap[1]),
            value_wrap=(_taken(value, places), self.value_wrap[1]),
        )


class Layouts:
    """The layouts of tables under one configuration."""

    def __init__(self, config: Config, plans: EventPlans) -> None:
        self._plans = plans
        self._key, self._value, self._header = (Converter.of(config, part) for part in ("key", "value", "header"))
        self._layouts: dict[TableId, Layout] = {}

    def of(self, table: TableSchema) -> Layout:
        """A table's layout."""
        layout = self._layouts.get(table.id)
        if layout is None or layout.plan.table != table:
            plan = self._plans.of(table)
            envelope, key = plan.envelope, plan.envelope.key
            layout = self._layouts[table.id] = Layout(
                plan,
                envelope.topic,
                as_json(self._plans.source.texts(table.id)),
                ("", "") if key is None else self._key.wrap(key),
                value_wrap=self._value.wrap(envelope.value),
                header_wrap=("", "") if key is None else self._header.wrap(key),
                where=f"table {table.id}",
            )
        return layout

    def together(self, batches: Iterable[Batch]) -> Iterator[Sequence[Batch]]:
        """The batches in groups to be encoded together, so that those of a table keep their order.

        A batch of six columns takes 1.2 ms to encode however few its rows are.
        """
        held: list[list[ChangeBatch]] = []
        tables: set[TableId] = set()
        alike: dict[tuple[str, ...], list[list[ChangeBatch]]] = {}
        size = 0
        for batch in batches:
            few = self._few(batch)
            if few is None or few.table.id in tables or size > _MOST_BYTES:
                yield from held
                held, tables, alike, size = [], set(), {}, 0
            if few is None:
                yield [batch]
                continue
            candidates = alike.setdefault(tuple(column.name for column in few.table.columns), [])
            group = next((group for group in candidates if _are_alike(few, group[0])), None)
            if group is None:
                group = []
                candidates.append(group)
                held.append(group)
            group.append(few)
            tables.add(few.table.id)
            wraps = self.of(few.table)
            size += few.rows.nbytes + len(few) * (len(wraps.key_wrap[0]) + len(wraps.value_wrap[0]))
        yield from held

    def _few(self, batch: Batch) -> ChangeBatch | None:
        """The batch if it can be encoded with others: it has few rows, and only its table's name is its own."""
        if not isinstance(batch, ChangeBatch) or batch.schema_change is not None or batch.table.id.is_message:
            return None
        is_small = 0 < len(batch) <= _FEW_ROWS and batch.rows.nbytes <= _MOST_BYTES // 4
        is_plain = is_small and batch.column("other_key") is None
        return batch if is_plain and self.of(batch.table).plan.envelope.key_extra is None else None

    def joined(self, batches: Sequence[ChangeBatch]) -> tuple[ChangeBatch, Layout]:
        """The rows of a group as those of its first table, and their layout."""
        layouts = [self.of(batch.table) for batch in batches]
        (rows,) = pa.Table.from_batches([batch.rows for batch in batches]).combine_chunks().to_batches()
        counts = np.array([len(batch) for batch in batches])
        lead = layouts[0]
        layout = replace(
            lead,
            topic=_by_row([each.topic for each in layouts], counts),
            source={name: _by_row([each.source[name] for each in layouts], counts) for name in lead.source},
            key_wrap=(_by_row([each.key_wrap[0] for each in layouts], counts), lead.key_wrap[1]),
            value_wrap=(_by_row([each.value_wrap[0] for each in layouts], counts), lead.value_wrap[1]),
            where=f"{lead.where} and {len(batches) - 1} tables like it",
        )
        return batches[0].with_rows(rows), layout


def _are_alike(batch: ChangeBatch, other: ChangeBatch) -> bool:
    same = (batch.table.columns, batch.table.key) == (other.table.columns, other.table.key)
    return same and batch.rows.schema.equals(other.rows.schema)


def _by_row(texts: Sequence[Part], counts: Integers) -> Part:
    """One text where all are equal, else the text of each row's table; `counts` are the rows of each."""
    if all(text == texts[0] for text in texts):
        return texts[0]
    return pa.array(texts, pa.string()).take(indices(np.repeat(np.arange(len(texts)), counts)))


def _taken(part: Part, places: Integers) -> Part:
    return part if isinstance(part, str | bytes) else part.take(indices(places))
