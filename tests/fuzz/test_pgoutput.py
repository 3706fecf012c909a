"""The pgoutput decoder: valid streams give the rows put in, anything else gives rows or a DecodeError."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from tailrace.config.failure_handling import FailureHandling
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.log.decoder import LogDecoder
from tailrace.connectors.postgres.log.protocol.framing import PADDING, Packed, packed
from tailrace.connectors.postgres.log.protocol.pgoutput import Relation
from tailrace.connectors.postgres.log.protocol.segment import segment
from tailrace.connectors.postgres.log.structures import LogStructures
from tailrace.connectors.value_type import cast_type, text_type
from tailrace.errors import DecodeError
from tailrace.model.change import ChangeBatch
from tailrace.model.table import Column, TableId, TableSchema
from tests.fuzz import pgoutput_messages as wire
from tests.fuzz.pgoutput_messages import UNCHANGED, xlog

search = settings(max_examples=int(os.environ.get("TAILRACE_FUZZ_EXAMPLES", "100")), deadline=None)

# What PostgreSQL can hold: any Unicode text without NUL.
TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=12)
VALUE = st.one_of(st.none(), TEXT, st.sampled_from(["", "n", "t" * 300, "\t\\N\n"]))
MICROS = st.integers(0, 4_000_000_000_000_000)


def described(relation: Relation) -> CapturedTable:
    """A table of text columns."""
    kind = text_type()
    columns = tuple(Column(each.name, kind.schema.with_(optional=True), kind.arrow) for each in relation.columns)
    marked = tuple(each.name for each in relation.columns if each.in_identity)
    table = TableSchema(TableId("db", relation.schema, relation.table), columns, marked, marked)
    return CapturedTable(table, (kind,) * len(columns))


def decoded(chunks: Sequence[Sequence[bytes]]) -> list[dict[str, Any]]:
    """The rows of some chunks in log order, read by one decoder."""
    return read([laid(chunk) for chunk in chunks])


def laid(messages: Sequence[bytes]) -> Packed:
    """Messages as a block."""
    found = segment(messages)
    return Packed(found.lengths.tobytes(), b"".join([found.data, bytes(PADDING)]))


def read(blocks: Sequence[Packed]) -> list[dict[str, Any]]:
    """The rows of some blocks in log order, read by one decoder."""
    structures = LogStructures()
    decoder = LogDecoder(lambda relation: structures.shared(relation, described(relation)), None)
    found = []
    for block in blocks:
        result = decoder.decode(block)
        result.marks.validate(full=True)
        for batch in result.batches:
            batch.rows.validate(full=True)
            found += [{"unchanged": None, **row, "table": str(batch.table.id)} for row in batch.rows.to_pylist()]
    return sorted(found, key=lambda row: row["order"])


@dataclass
class Table:
    """A relation of the stream and how it now looks."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: list[tuple[str, bool]]

    def message(self) -> bytes:
        return wire.relation(self.oid, self.schema, self.name, self.identity, self.columns)

    def row(self, values: Sequence[object]) -> dict[str, object]:
        return {name: value for (name, _), value in zip(self.columns, values, strict=True)}


@dataclass
class Stream:
    """Messages and the rows that are in them."""

    messages: list[bytes] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    lsn: int = 1000

    def send(self, payload: bytes) -> None:
        self.lsn += len(payload)
        self.messages.append(xlog(self.lsn, payload))


@st.composite
def tables(draw: st.DrawFn, oid: int) -> Table:
    names = draw(st.lists(TEXT.filter(bool), min_size=1, max_size=5, unique=True))
    identity = draw(st.sampled_from("dnfi"))
    marks = draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    columns = [
        (name, identity == "f" or (marked and identity != "n")) for name, marked in zip(names, marks, strict=True)
    ]
    return Table(oid, draw(TEXT.filter(bool)), draw(TEXT.filter(bool)), identity, columns)


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """Whole transactions over a few tables, which may change their columns between two rows."""
    stream = Stream()
    live: list[Table] = []
    for oid in draw(st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=4, unique=True)):
        # Rows of tables that are alike are read together.
        is_twin: bool = bool(live) and draw(st.booleans())
        twin = draw(st.sampled_from(live)) if is_twin else None
        live.append(draw(tables(oid)) if twin is None else replace(twin, oid=oid, name=f"{twin.name} {oid}"))
    known: set[int] = set()
    for _ in range(draw(st.integers(0, 4))):
        xid, micros = draw(st.integers(0, 2**32 - 1)), draw(MICROS)
        stream.send(wire.begin(stream.lsn + 5000, micros, xid))
        name = draw(st.none() | TEXT)
        if name is not None:
            stream.send(wire.origin(77, name))
        about = {"xid": xid, "ts_us": micros, "origin": name}
        for _ in range(draw(st.integers(0, 6))):
            place = draw(st.integers(0, len(live) - 1))
            if draw(st.integers(0, 9)) == 0:
                live[place] = draw(tables(live[place].oid))
                known.discard(live[place].oid)
            if live[place].oid not in known:
                stream.send(wire.type_(99, "public", "mood"))
                stream.send(live[place].message())
                known.add(live[place].oid)
            _change(draw, stream, live[place], about)
        stream.send(wire.commit(stream.lsn + 5000, stream.lsn + 5048, micros))
    return stream


def _change(draw: st.DrawFn, stream: Stream, table: Table, about: dict[str, Any]) -> None:
    kind = draw(st.sampled_from("IUDTM"))
    values = st.lists(VALUE, min_size=len(table.columns), max_size=len(table.columns))
    before = after = None
    unchanged: set[str] = set()
    if kind == "M":
        stream.send(wire.message(stream.lsn, "prefix", b"content"))
        return
    if kind == "T":
        stream.send(wire.truncate(table.oid))
    elif kind == "I":
        after = draw(values)
        stream.send(wire.insert(table.oid, after))
    else:
        marker = "O" if table.identity == "f" else "K"
        if kind == "D" or draw(st.booleans()):
            hidden = [table.identity != "f" and not marked for _, marked in table.columns]
            before = [None if hide else value for hide, value in zip(hidden, draw(values), strict=True)]
        if kind == "D":
            stream.send(wire.delete(table.oid, before or [], marker))
        else:
            sent: list[Any] = [UNCHANGED if draw(st.integers(0, 3)) == 0 else value for value in draw(values)]
            stream.send(wire.update(table.oid, sent, before, marker))
            after, unchanged = _filled(table, sent, before)
    stream.rows.append(
        {
            "op": {"I": "c", "U": "u", "D": "d", "T": "t"}[kind],
            "table": f"{table.schema}.{table.name}",
            "before": None if before is None else table.row(before),
            "after": None if after is None else table.row(after),
            "unchanged": unchanged,
            "lsn": stream.lsn,
            **about,
        }
    )


def _filled(table: Table, sent: list[object], before: list[Any] | None) -> tuple[list[Any], set[str]]:
    """The new image with values that were not sent taken from the old one, and the columns it has none for."""
    after, unknown = [], set()
    for place, ((name, _), value) in enumerate(zip(table.columns, sent, strict=True)):
        old = before[place] if before is not None else None
        after.append(old if value is UNCHANGED else value)
        if value is UNCHANGED and old is None:
            unknown.add(name)
    return after, unknown


def _seen(row: dict[str, Any]) -> dict[str, Any]:
    """A decoded row in the form of the expected ones."""
    source = row["source"]
    return {
        "op": row["op"],
        "table": row["table"],
        "before": row["before"],
        "after": row["after"],
        "unchanged": {name for name, flag in (row["unchanged"] or {}).items() if flag},
        "lsn": source["lsn"],
        "xid": source["txId"],
        "ts_us": row["ts_us"],
        "origin": source["origin"],
    }


@search
@given(streams(), st.lists(st.integers(0, 60), max_size=4))
def test_a_valid_stream_gives_its_rows_however_it_is_cut(stream: Stream, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(stream.messages)) for cut in cuts), len(stream.messages)]
    chunks = [stream.messages[first:last] for first, last in pairwise(edges)]
    assert [_seen(row) for row in decoded(chunks)] == stream.rows
    assert [_seen(row) for row in read([packed([laid(chunk) for chunk in chunks])])] == stream.rows


def survives(messages: Sequence[bytes]) -> None:
    try:
        decoded([messages[: len(messages) // 2], messages[len(messages) // 2 :]])
    except DecodeError as error:
        assert error.remedy  # noqa: PT017  # it may raise or not; what it raises must help


@search
@given(st.lists(st.binary(max_size=80) | st.binary(max_size=60).map(lambda payload: xlog(1, payload)), max_size=6))
def test_random_bytes_give_rows_or_a_decode_error(messages: list[bytes]) -> None:
    survives(messages)


@st.composite
def mangled(draw: st.DrawFn) -> list[bytes]:
    """A valid stream with some messages cut, bent, spliced, doubled, dropped or moved."""
    messages = list(draw(streams()).messages) or [xlog(1, b"B")]
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(messages) - 1))
        victim = messages[place]
        how = draw(st.sampled_from(["cut", "bend", "splice", "double", "drop", "move"]))
        at = draw(st.integers(0, len(victim)))
        if how == "cut":
            messages[place] = victim[:at]
        elif how == "bend":
            messages[place] = victim[:at] + draw(st.binary(min_size=1, max_size=4)) + victim[at + 1 :]
        elif how == "splice":
            messages[place] = victim[:at] + messages[draw(st.integers(0, len(messages) - 1))][at:]
        elif how == "double":
            messages.insert(place, victim)
        elif how == "drop" and len(messages) > 1:
            del messages[place]
        else:
            messages.append(messages.pop(place))
    return messages


@search
@given(mangled())
def test_damaged_streams_give_rows_or_a_decode_error(messages: list[bytes]) -> None:
    survives(messages)


@search
@given(streams(), st.data())
def test_every_cut_of_a_message_is_noticed(stream: Stream, data: st.DataObject) -> None:
    """A message that ends early, or goes on, is an error and never another row."""
    rows = [place for place, message in enumerate(stream.messages) if message[25:26] in (b"I", b"U", b"D", b"T")]
    if not rows:
        return
    place = data.draw(st.sampled_from(rows))
    whole = stream.messages[place]
    stream.messages[place] = data.draw(st.sampled_from([whole[:-1], whole + b"\0"]))
    try:
        decoded([stream.messages])
    except DecodeError:
        return
    raise AssertionError("a damaged message was taken for a row")


def test_a_value_that_cannot_be_read_names_its_table_among_those_read_together() -> None:
    kind = cast_type("int32", pa.int32(), 0)
    columns = (Column("id", kind.schema, kind.arrow),)

    def numbers(relation: Relation) -> CapturedTable:
        return CapturedTable(TableSchema(TableId("db", "public", relation.table), columns, ("id",), ("id",)), (kind,))

    structures, stream = LogStructures(), Stream()
    stream.send(wire.begin(5000, 1, 1))
    for oid in (1, 2, 3):
        stream.send(wire.relation(oid, "public", f"t{oid}", "d", [("id", True)]))
    for oid, value in ((1, "1"), (2, "1"), (2, "no"), (3, "1"), (1, "2")):
        stream.send(wire.insert(oid, [value]))

    def chunk(failures: FailureHandling) -> list[ChangeBatch]:
        decoder = LogDecoder(lambda relation: structures.shared(relation, numbers(relation)), None, failures=failures)
        return decoder.decode(laid(stream.messages)).batches

    with pytest.raises(DecodeError, match=r"public\.t2\.id"):
        chunk(FailureHandling())
    batches = chunk(FailureHandling("skip"))
    found = [(batch.table.id.table, batch.rows.column("after").field(0).to_pylist()) for batch in batches]
    assert found == [("t1", [1, 2]), ("t2", [1]), ("t2", []), ("t3", [1])]
    told = [batch.lacking for batch in batches]
    assert told == [None, None, told[2], None]
    assert "public.t2" in str(told[2])
