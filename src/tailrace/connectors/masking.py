"""Applies column masks: which types they cover, and how they change a column's schema and conversion."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pyarrow as pa

from tailrace.config.faults import NO_FAULTS, Fault, Faults
from tailrace.config.masks import Mask, Propagate, Stars, Truncate
from tailrace.connectors.column_info import ColumnInfo, SourceType
from tailrace.connectors.value_type import ValueType
from tailrace.errors import ConfigError
from tailrace.model.masked import applied
from tailrace.model.masks import Masking
from tailrace.model.text.json import null_text

log = logging.getLogger(__name__)


def check_key(mask: Mask, column: str) -> None:
    """Keys are masked as values are and must stay distinct. Raises ConfigError for asterisks."""
    if isinstance(mask, Stars):
        raise ConfigError(
            "asterisks would make all keys of the table the same",
            where=column,
            remedy="hash the column (column.mask.hash.v2.<alg>.with.salt.<salt>), leave it out of the expression, or "
            "name another key in message.key.columns",
        )
    if isinstance(mask, Truncate):
        log.warning("%s is part of a key: keys that have the same first %d characters are one", column, mask.length)


def altered(
    kind: ValueType, mask: Mask, column: ColumnInfo, where: str, faults: Faults = NO_FAULTS, *, in_key: bool = False
) -> ValueType:
    """`kind` with a mask on it: its conversion and the parameters of its schema. `where` names the column.

    Debezium masks character types alone and does not mask JSON, UUIDs and the like. Here a mask reaches every type that
    becomes text, unless `faults` asks for the reference engine's behaviour. It also leaves keys plain: of a column
    `in_key` the images alone are masked, later.
    """
    source = column.type
    # What an old row that lacks a required column has in its place: the default or the zero of its type.
    absent = str(json.loads(null_text(kind.schema))) if column.required else None
    late = in_key and Fault.PLAIN_KEYS in faults
    if isinstance(mask, Propagate):
        return _with_parameters(kind, *_propagated(source, column))
    if isinstance(mask, Truncate):
        return _truncated(kind, Masking(mask, absent, mask.length), late) if source.length > mask.length else kind
    kind = _with_parameters(kind, ("masked", "true"))
    if source.is_character or (kind.arrow == pa.string() and Fault.MASKS_OF_CHARACTERS not in faults):
        return _masked(kind, Masking(mask, absent, source.length), late)
    log.warning("%s is NOT masked: a mask does not reach type %s; use column.exclude.list", where, source.printed)
    return kind


def _truncated(kind: ValueType, masking: Masking, late: bool) -> ValueType:
    assert isinstance(masking.mask, Truncate)
    marked = replace(_with_parameters(kind, ("truncateLength", str(masking.mask.length))), binary=None)
    if kind.arrow == pa.string() or (kind.schema.type == "bytes" and kind.schema.name is None):
        return _masked(marked, masking, late)
    return marked


def _masked(kind: ValueType, masking: Masking, late: bool) -> ValueType:
    kind = replace(kind, configured=_told(masking.mask))
    if late:
        return replace(kind, masking=masking)
    convert = kind.convert
    return replace(kind, convert=lambda text: applied(convert(text), masking), binary=None)


def _told(mask: Mask) -> str | None:
    """What is compared of masked values; None: all of them."""
    if isinstance(mask, Truncate):
        return f"compared up to {mask.length} characters, as it is truncated"
    return "its values are masked, all in one way" if isinstance(mask, Stars) else None


def _propagated(source: SourceType, column: ColumnInfo) -> list[tuple[str, str]]:
    comment = {"comment": column.comment} if column.comment else {}
    values = {"type": source.reported.upper(), "length": source.length, "scale": source.scale}
    return [
        (f"__debezium.source.column.{key}", str(value))
        for key, value in (values | comment | {"name": column.name}).items()
        if value is not None
    ]


def _with_parameters(kind: ValueType, *parameters: tuple[str, str]) -> ValueType:
    return replace(kind, schema=kind.schema.with_(parameters=(*kind.schema.parameters, *parameters)))
