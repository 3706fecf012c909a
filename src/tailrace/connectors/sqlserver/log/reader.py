"""Selects rows of change tables: the statement, and values that an update does not contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.options.events import UNAVAILABLE_VALUE_PLACEHOLDER
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors.change_tables.change_table import ChangeTable
from tailrace.connectors.change_tables.changes import AFTER, BEFORE, ChangeRows, ChangeTableRows, Ints
from tailrace.connectors.change_tables.gap import InstanceGone
from tailrace.connectors.change_tables.lsn import texts_of
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.column_info import ColumnInfo
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.sql_tables.images import images, selected
from tailrace.connectors.sql_tables.tables import Block, SqlColumn
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.options import DATA_QUERY_MODE
from tailrace.connectors.sqlserver.position import LSN_BYTES
from tailrace.connectors.sqlserver.statements import name
from tailrace.model.table import ALL, UNTOUCHED
from tailrace.override import override

_MINUTE_US = 60_000_000
_FIELDS = ("__$start_lsn", "__$seqval", "__$operation", "__$update_mask")
# The reference engine tells untouched values of these types, and of no others.
_NEVER_OLD = ("text", "ntext", "image")
_PLACEHOLDERS = (*_NEVER_OLD, "xml")


@dataclass(frozen=True)
class InstanceTable(ChangeTable):
    """The change table of a capture instance. `ordinals` are the bits of columns in an update mask.

    They are given for the columns, by their places, whose untouched values an update leaves out; `placeholders` stand
    for these in old images. `from_start`: bits are counted from the mask's beginning, as the reference engine does.
    """

    ordinals: Mapping[int, int]
    placeholders: Mapping[int, pa.Scalar]
    from_start: bool = False

    @override
    def rows(self, block: Block) -> ChangeRows:
        commit, change, kinds, masks, times, minutes, *values = block
        kind, masks = kinds.cast(pa.int64()).to_numpy(), masks.cast(pa.binary())
        return ChangeRows(
            commit=texts_of(commit, LSN_BYTES),
            change=texts_of(change, LSN_BYTES),
            kind=kind,
            ts_us=pc.subtract(
                times.cast(pa.timestamp("us")).cast(pa.int64()), pc.multiply(minutes.cast(pa.int64()), _MINUTE_US)
            ),
            images=self._with_gaps(images(self.captured, values, len(kind)), values, kind, masks),
            mask=masks,
        )

    def _with_gaps(self, row_images: pa.StructArray, values: Block, kind: Ints, masks: pa.Array) -> pa.StructArray:
        """The images with null where an update has no value: a mask may have made a text of it."""
        arrays = row_images.flatten()
        is_update = np.isin(kind, (BEFORE, AFTER)).tolist()
        for place, ordinal in self.ordinals.items():
            if values[place].null_count:
                gaps = [
                    is_null and is_one and not has_bit(mask, ordinal, from_start=self.from_start)
                    for is_null, is_one, mask in zip(
                        values[place].is_null().to_pylist(), is_update, masks.to_pylist(), strict=True
                    )
                ]
                arrays[place] = pc.if_else(pa.array(gaps), pa.scalar(None, arrays[place].type), arrays[place])
        return pa.StructArray.from_arrays(arrays, fields=list(row_images.type))

    @override
    def incomplete(self, changes: ChangeTableRows) -> Mapping[str, pa.Array]:
        if not self.ordinals:
            return {}
        columns = self.captured.schema.columns
        untouched = self._untouched(changes)
        nothing = pa.array(np.zeros(len(changes), np.bool_))
        flags = [
            pc.and_(untouched[place], pc.is_null(changes.after.field(place))) if place in untouched else nothing
            for place in range(len(columns))
        ]
        unchanged = pa.StructArray.from_arrays(flags, names=[column.name for column in columns])
        return {"before": self._with_placeholders(changes.before, untouched), "unchanged": unchanged}

    def _untouched(self, changes: ChangeTableRows) -> dict[int, pa.Array]:
        """For the place of each such column, which rows are updates that did not touch it."""
        masks, is_update = changes.mask.to_pylist(), (changes.rows == 2).tolist()
        return {
            place: pa.array(
                [
                    is_one and not has_bit(mask, ordinal, from_start=self.from_start)
                    for mask, is_one in zip(masks, is_update, strict=True)
                ],
                pa.bool_(),
            )
            for place, ordinal in self.ordinals.items()
        }

    def _with_placeholders(self, before: pa.StructArray, untouched: dict[int, pa.Array]) -> pa.StructArray:
        """Old images, with the placeholder where the change table has no value as the update did not touch it."""
        arrays = before.flatten()
        for place, flags in untouched.items():
            chosen = pc.and_(flags, pc.is_null(arrays[place]))
            arrays[place] = pc.if_else(chosen, self.placeholders[place], arrays[place])
        return pa.StructArray.from_arrays(arrays, fields=list(before.type), mask=before.is_null())


def change_table(catalog: Catalog, config: Config, instance: Instance) -> InstanceTable | None:
    """How rows of a capture instance are read; None if none of its columns is captured. Raises InstanceGone."""
    described = catalog.at(instance)
    if not described.columns:
        raise InstanceGone(f"the capture instance {instance.name} is gone", where=str(instance.table))
    captured = catalog.capture(described)
    if captured is None:
        return None
    ordinals = {column.name: place for place, column in enumerate(described.columns)}
    own = [described.columns[ordinals[column.name]] for column in captured.schema.columns]
    large = {place: catalog.info(column) for place, column in enumerate(own) if column.type.name in _PLACEHOLDERS}
    placeholders = _placeholders(
        captured, large, _placeholder(config), is_masked=Fault.MASKED_PLACEHOLDERS in config[COMPAT_FAULTS]
    )
    captured = _with_lacking(_with_placeholders(captured, placeholders), own)
    command = ("[__$command_id]",) if catalog.has_commands(instance) else ()
    return InstanceTable(
        instance,
        captured,
        statement=_statement(config, instance, captured),
        kind="cdc_data.[__$operation]",
        order=", ".join(
            f"cdc_data.{field} ASC" for field in ("[__$start_lsn]", *command, "[__$seqval]", "[__$operation]")
        ),
        ordinals={place: ordinals[own[place].name] for place in large},
        from_start=Fault.BITS_FROM_START in config[COMPAT_FAULTS],
        placeholders=placeholders,
    )


def _placeholders(
    captured: CapturedTable, large: Mapping[int, ColumnInfo], raw: bytes, *, is_masked: bool
) -> dict[int, pa.Scalar]:
    """What stands in images for untouched values of the columns at these places: plain, or as a fault masks it."""
    placeholders = {}
    for place, info in large.items():
        given, kind = captured.schema.columns[place].placeholder, captured.types[place]
        if given is not None:
            placeholders[place] = pa.scalar(given)
            continue
        plain = kind
        if info.value is not None and info.value.arrow == kind.arrow and not is_masked:
            plain = info.value
        placeholders[place] = plain.convert(
            pa.array([raw if info.type.name == "image" else raw.decode(errors="replace")])
        )[0]
    return placeholders


def _with_placeholders(captured: CapturedTable, placeholders: Mapping[int, pa.Scalar]) -> CapturedTable:
    """The table whose new images have the placeholders that its old images have."""
    columns = list(captured.schema.columns)
    for place, value in placeholders.items():
        shown = value.as_py()
        octets = shown if isinstance(shown, bytes) else shown.encode()
        columns[place] = replace(columns[place], placeholder=f"hex:{octets.hex()}")
    return replace(captured, schema=replace(captured.schema, columns=tuple(columns)))


def _with_lacking(captured: CapturedTable, own: Sequence[SqlColumn]) -> CapturedTable:
    """The table whose columns say which of their values old images lack.

    Source: https://learn.microsoft.com/sql/relational-databases/system-tables/cdc-capture-instance-ct-transact-sql,
    Large object data types.
    """
    columns = [
        replace(column, old_lacks=ALL if source.type.name in _NEVER_OLD else UNTOUCHED)
        if source.type.is_large or source.type.name in _PLACEHOLDERS
        else column
        for column, source in zip(captured.schema.columns, own, strict=True)
    ]
    return replace(captured, schema=replace(captured.schema, columns=tuple(columns)))


def _statement(config: Config, instance: Instance, captured: CapturedTable) -> str:
    mapping = f"{name(instance.table.database)}.cdc.lsn_time_mapping"
    if config[DATA_QUERY_MODE] == "direct":
        time = f"(SELECT ltm.tran_begin_time FROM {mapping} ltm WHERE ltm.start_lsn = cdc_data.[__$start_lsn])"
    else:
        time = f"{name(instance.table.database)}.sys.fn_cdc_map_lsn_to_time(cdc_data.[__$start_lsn])"
    # A clean-up that was interrupted may have left a change without its transaction: that behind it is later.
    later = (
        f"(SELECT TOP 1 ltm.tran_begin_time FROM {mapping} ltm WHERE ltm.start_lsn > cdc_data.[__$start_lsn] "
        "ORDER BY ltm.start_lsn)"
    )
    listed = [
        *(f"cdc_data.{name(field)}" for field in _FIELDS),
        # The server's times of transactions are in its own zone.
        f"ISNULL({time}, ISNULL({later}, GETDATE()))",
        "(SELECT DATEPART(TZOFFSET, SYSDATETIMEOFFSET()))",
        *selected(name, captured, "cdc_data."),
    ]
    return f"SELECT {', '.join(listed)} FROM {instance.changes} AS cdc_data"


def _placeholder(config: Config) -> bytes:
    """The placeholder; the fault of the reference engine: `hex:` is part of the text."""
    text = config[UNAVAILABLE_VALUE_PLACEHOLDER]
    is_hex = text.startswith("hex:") and Fault.PLAIN_HEX not in config[COMPAT_FAULTS]
    return bytes.fromhex(text[4:]) if is_hex else text.encode()


def has_bit(mask: bytes, ordinal: int, *, from_start: bool = False) -> bool:
    """Whether an update mask has a column: bytes are counted from the end, as sys.fn_cdc_is_bit_set does."""
    at = ordinal // 8 if from_start else len(mask) - 1 - ordinal // 8
    return not 0 <= at < len(mask) or bool(mask[at] >> (ordinal % 8) & 1)
