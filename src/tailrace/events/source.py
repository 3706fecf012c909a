"""Encodes the `source` block of a batch's envelopes; parts that are constant in a transaction are written once."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.events.parts import Part, Parts, flat
from tailrace.events.plan import Origin, SourcePlan, clock
from tailrace.model.arrow import indices, join, literal
from tailrace.model.schema import OPTIONAL_INT64
from tailrace.model.source import FEWER_PLACES, SourceBlock
from tailrace.model.text.json import Fragment, Style, dump, encode, fragment

Bools = npt.NDArray[np.bool_]
_Pieces = list[tuple[str | Fragment, bool | None]]


class SourceWriter:
    """Writes the source block of one connector for one logical server."""

    def __init__(self, plan: SourcePlan, style: Style) -> None:
        self._plan, self._block = plan, plan.block
        self._style = style

    def parts(self, rows: pa.RecordBatch, texts: Mapping[str, Part]) -> Parts:
        """The blocks of all rows. What changes with the transaction only is joined per transaction, then repeated.

        `texts` has the members that are the same for all rows of a table, as JSON.
        """
        source = rows.column("source")
        columns = {field.name: source.field(index) for index, field in enumerate(source.type)}
        columns |= {"ts_us": rows.column("ts_us"), "snapshot": rows.column("snapshot")}
        starts = _starts(columns["ts_us"])
        if len(starts) * 4 > len(rows):
            return flat(*(piece for piece, _ in self._pieces(columns, set(), texts)))
        steady = {name for name, values in columns.items() if _steady(values, starts)}
        first = indices(starts)
        columns = {name: values.take(first) if name in steady else values for name, values in columns.items()}
        run = indices(np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows))))
        parts: list[Part | Parts] = []
        for by_row, pieces in groupby(self._pieces(columns, steady, texts), lambda piece: piece[1] is False):
            stretch = flat(*(piece for piece, _ in pieces))
            parts.append(stretch if by_row else _repeated(stretch, run))
        return flat(*parts)

    def _pieces(self, columns: dict[str, pa.Array], steady: set[str], texts: Mapping[str, Part]) -> _Pieces:
        """Constants and columns in the block's order, with whether a column is steady (None: a constant)."""
        written = {
            field.name: fragment(columns[field.name], field.schema, self._style)
            for field in self._block.fields
            if field.name in columns
        }
        clocks = _clocks(columns["ts_us"])
        pieces: _Pieces = []
        for index, member in enumerate(self._plan.members):
            name = member.field.name
            pieces.append((f"{',' if index else '{'}{dump(name)}:", None))
            if member.origin is Origin.TEXT:
                text = texts[name]
                pieces.append((text, None) if isinstance(text, str) else (Fragment("", text), False))
            elif member.origin is Origin.CLOCK:
                pieces.append((clocks[name], "ts_us" in steady))
            elif member.origin is Origin.SNAPSHOT:
                markers = snapshot_of(self._block, columns[name])
                pieces.append((fragment(markers, member.field.schema, self._style), name in steady))
            elif member.origin is Origin.SEQUENCE:
                pieces += self._sequence(columns, steady, written)
            else:
                pieces.append((written[name], name in steady))
        return [*pieces, ("}", None)]

    def _sequence(self, columns: dict[str, pa.Array], steady: set[str], written: Mapping[str, Fragment]) -> _Pieces:
        if self._block.sequence is None:
            return [("null", None)]
        before, current = self._block.sequence
        return [
            ('"[', None),
            (_sequence_item(columns[before], written.get(before)), before in steady),
            (",", None),
            (_sequence_item(columns[current], written.get(current)), current in steady),
            (']"', None),
        ]


def snapshot_of(block: SourceBlock, markers: pa.Array) -> pa.Array:
    """The markers of rows as a block's time had them: once a boolean, then with fewer places than today."""
    schema = block.snapshot
    if schema.type == "boolean":
        return markers.is_valid()
    if schema != FEWER_PLACES:
        return markers
    is_allowed = pc.is_in(markers, pa.array(dict(schema.parameters)["allowed"].split(","), pa.string()))
    return pc.if_else(pc.or_(is_allowed, markers.is_null()), markers, literal("true"))


def as_json(texts: Mapping[str, str]) -> dict[str, Part]:
    """The texts as JSON, by the same names."""
    return {name: dump(value) for name, value in texts.items()}


def _clocks(micros: pa.Array) -> dict[str, Fragment]:
    """The clocks by name: of nanoseconds the digits are those of the microseconds, and zeros."""
    text = encode(micros, OPTIONAL_INT64)
    millis = fragment(clock(micros, "ts_ms"), OPTIONAL_INT64)
    return {"ts_ms": millis, "ts_us": Fragment("", text), "ts_ns": Fragment("", text, "000")}


def _sequence_item(values: pa.Array, written: Fragment | None) -> Fragment:
    """A position as a JSON string within a JSON string, null bare; `written` is the column as a member of its own."""
    if values.null_count == len(values):
        return Fragment("null", None)
    if written is not None and values.null_count == 0:
        return Fragment('\\"', written.text, '\\"')
    text = pc.cast(values, pa.string())
    if values.null_count:
        return Fragment("", join('\\"', text, '\\"').fill_null(literal("null")))
    return Fragment('\\"', text, '\\"')


def _starts(values: pa.Array) -> npt.NDArray[np.int64]:
    """Where runs of equal numbers begin."""
    numbers = values.to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.flatnonzero(numbers[1:] != numbers[:-1]) + 1]).astype(np.int64)


def _steady(values: pa.Array, starts: npt.NDArray[np.int64]) -> bool:
    """Whether a column changes at these rows only."""
    if values.null_count == len(values):
        return True
    if values.null_count or not pa.types.is_integer(values.type):
        return False
    numbers = values.to_numpy(zero_copy_only=False)
    changed = numbers[1:] != numbers[:-1]
    changed[starts[1:] - 1] = False
    return not changed.any()


def _repeated(parts: Parts, run: pa.Array) -> Parts:
    """Joined per run, then given to every row of the run; a constant where there is one run."""
    if all(isinstance(part, str) for part in parts):
        return parts
    text = join(*parts)
    return [text[0].as_py()] if len(text) == 1 else [text.take(run)]
