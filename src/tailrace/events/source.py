"""Encodes the `source` block of a batch's envelopes; parts that are constant in a transaction are written once."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.events.parts import Part, Parts, flat
from tailrace.model.arrow import indices, join, literal
from tailrace.model.schema import OPTIONAL_INT64
from tailrace.model.source import FEWER_PLACES, SourceBlock
from tailrace.model.table import TableId
from tailrace.model.text.json import Fragment, Style, dump, encode, fragment
from tailrace.version import __version__

Bools = npt.NDArray[np.bool_]
_Pieces = list[tuple[str | Fragment, bool | None]]


class SourceWriter:
    """Writes the source block of one connector for one logical server."""

    def __init__(self, block: SourceBlock, server: str, style: Style) -> None:
        self._block = block
        self._server = server
        self._style = style

    def parts(self, rows: pa.RecordBatch, table: Mapping[str, Part]) -> Parts:
        """The blocks of all rows. What changes with the transaction only is joined per transaction, then repeated.

        `table` has the members that name the table, as JSON.
        """
        source = rows.column("source")
        columns = {field.name: source.field(index) for index, field in enumerate(source.type)}
        columns |= {"ts_us": rows.column("ts_us"), "snapshot": rows.column("snapshot")}
        starts = _starts(columns["ts_us"])
        if len(starts) * 4 > len(rows):
            return flat(*(piece for piece, _ in self._pieces(columns, set(), table)))
        steady = {name for name, values in columns.items() if _steady(values, starts)}
        first = indices(starts)
        columns = {name: values.take(first) if name in steady else values for name, values in columns.items()}
        run = indices(np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows))))
        parts: list[Part | Parts] = []
        for by_row, pieces in groupby(self._pieces(columns, steady, table), lambda piece: piece[1] is False):
            stretch = flat(*(piece for piece, _ in pieces))
            parts.append(stretch if by_row else _repeated(stretch, run))
        return flat(*parts)

    def _pieces(self, columns: dict[str, pa.Array], steady: set[str], table: Mapping[str, Part]) -> _Pieces:
        """Constants and columns in the block's order, with whether a column is steady (None: a constant)."""
        written = {
            field.name: fragment(columns[field.name], field.schema, self._style)
            for field in self._block.fields
            if field.name in columns
        }
        known = self._computed(columns, steady, written) | self._constant(table)
        pieces: _Pieces = []
        for index, field in enumerate(self._block.members):
            pieces.append((f"{',' if index else '{'}{dump(field.name)}:", None))
            if field.name in known:
                pieces += known[field.name]
            else:
                pieces.append((written[field.name], field.name in steady))
        return [*pieces, ("}", None)]

    def _constant(self, table: Mapping[str, Part]) -> dict[str, _Pieces]:
        """The members that are the same for all rows of a table."""
        names = {"version": __version__, "connector": self._block.connector, "name": self._server}
        texts: dict[str, Part] = {name: dump(value) for name, value in names.items()} | dict(table)
        return {
            name: [(text, None) if isinstance(text, str) else (Fragment("", text), False)]
            for name, text in texts.items()
        }

    def _computed(
        self, columns: dict[str, pa.Array], steady: set[str], written: Mapping[str, Fragment]
    ) -> dict[str, _Pieces]:
        """The common members that are made of other columns, some of which are `written` already."""
        ts_us, is_steady = columns["ts_us"], "ts_us" in steady
        micros = encode(ts_us, OPTIONAL_INT64)
        millis = indices(np.floor_divide(ts_us.to_numpy(zero_copy_only=False), 1000))
        return {
            "ts_ms": [(fragment(millis, OPTIONAL_INT64), is_steady)],
            "ts_us": [(Fragment("", micros), is_steady)],
            "ts_ns": [(Fragment("", micros, "000"), is_steady)],
            "snapshot": [(self._snapshot(columns["snapshot"]), "snapshot" in steady)],
            "sequence": self._sequence(columns, steady, written),
        }

    def _snapshot(self, markers: pa.Array) -> Fragment:
        return fragment(snapshot_of(self._block, markers), self._block.snapshot, self._style)

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
    known = pc.is_in(markers, pa.array(dict(schema.parameters)["allowed"].split(","), pa.string()))
    return pc.if_else(pc.or_(known, markers.is_null()), markers, literal("true"))


def parts_of(table: TableId) -> dict[str, str]:
    """The members of `source` that are parts of a table's name."""
    return {"db": table.database, "schema": table.schema, "table": table.table, "collection": table.table}


def names_of(table: TableId) -> dict[str, Part]:
    """The same members as JSON."""
    return {name: dump(value) for name, value in parts_of(table).items()}


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
