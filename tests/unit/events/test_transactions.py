"""Transaction blocks and markers, against the reference's recording and across chunks."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from tailrace.config.topics import TopicNaming
from tailrace.connectors.postgres.position import SOURCE
from tailrace.events.record import RecordEncoder
from tailrace.events.transactions import TransactionTracker
from tailrace.model.change import ChangeBatch
from tailrace.model.marks import MARKS
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE, TableId
from tests.unit.events import event_recordings as recordings
from tests.unit.events.changes import batch
from tests.unit.events.event_recordings import config
from tests.unit.events.recorded_layouts import ALL, Recorded


def tracker() -> TransactionTracker:
    return TransactionTracker(TopicNaming(config()), SOURCE)


def marks(*rows: tuple[int, str, str]) -> pa.RecordBatch:
    """Marks (order, status, id), each a millisecond after the other."""
    data = [{"order": o, "status": s, "id": i, "ts_us": 1000 * n} for n, (o, s, i) in enumerate(rows)]
    return pa.RecordBatch.from_pylist(data, schema=MARKS)


def blocks(batches: list[ChangeBatch]) -> list[object]:
    """The (total_order, data_collection_order) of each change, None without a block."""
    rows = [row for each in batches for row in each.rows.column("transaction").to_pylist()]
    return [row and (row["total_order"], row["data_collection_order"]) for row in rows]


RECORDED = [
    (of, name)
    for of in ALL
    for name in ("transaction-metadata", "topic-naming", "interleaved-transactions")
    if name in of.scenarios()
]


@pytest.mark.parametrize(("of", "scenario"), RECORDED, ids=lambda part: getattr(part, "database", part))
@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_as_recorded(of: Recorded, scenario: str, chunk: int) -> None:
    """Changes and marks of the recording, fed in chunks, get the blocks and markers that were recorded."""
    naming_of = recordings.config_of(scenario, of)
    lines = recordings.lines(scenario, of)
    events = [json.loads(line) for line in lines]
    naming = TopicNaming(naming_of)
    marked = [(i, e["value"]["payload"]) for i, e in enumerate(events) if e["topic"] == naming.transaction]
    rows = [(2 * i, p["status"], p["id"], p["ts_ms"] * 1000) for i, p in marked]
    given = [each for each, _ in recordings.batches(lines, of=of)]
    bare = [ChangeBatch(each.table, each.rows.drop_columns(["transaction"])) for each in given]
    track, encoder = TransactionTracker(naming, of.block), RecordEncoder(naming_of, of.block, recordings.RUN_ID)
    found, written = [], []
    for start in range(0, len(events), chunk):
        low, high = 2 * start, 2 * (start + chunk)
        mine = [row for row in rows if low <= row[0] < high]
        part = pa.RecordBatch.from_pylist([dict(zip(MARKS.names, row, strict=True)) for row in mine], schema=MARKS)
        pieces = [p for p in (within(each, low, high) for each in bare) if len(p)]
        out, control = track.track(pieces, part)
        found += [row for each in out for row in each.rows.column("transaction").to_pylist()]
        if control is not None:
            written += [in_order(r["key"], r["value"]) for b in encoder.encode(control) for r in b.to_pylist()]
    assert found == [row for each in given for row in each.rows.column("transaction").to_pylist()]
    assert written == [
        in_order(*(json.dumps(events[i][part], separators=(",", ":")) for part in ("key", "value"))) for i, _ in marked
    ]


def in_order(key: str, value: str) -> tuple[str, str]:
    """A marker with its collections by name: the reference has them in the order of a Java hash map."""
    node = json.loads(value)
    listed = node["payload"]["data_collections"]
    node["payload"]["data_collections"] = listed and sorted(listed, key=lambda each: str(each["data_collection"]))
    return key, json.dumps(node, separators=(",", ":"))


def within(each: ChangeBatch, low: int, high: int) -> ChangeBatch:
    order = each.rows.column("order").to_numpy()
    return ChangeBatch(each.table, each.rows.filter(pa.array((order >= low) & (order < high))))


def test_counts_continue_in_the_next_chunk() -> None:
    track = tracker()
    first, _ = track.track([batch("cc", orders=[2, 4])], marks((1, "BEGIN", "7:1")))
    second, control = track.track(
        [batch("u", orders=[6]), batch("c", orders=[8], table="other")], marks((10, "END", "7:9"))
    )
    assert blocks(first) == [(1, 1), (2, 2)]
    assert blocks(second) == [(3, 3), (4, 1)]
    assert control is not None
    assert json.loads(control.rows.column("value")[0].as_py()) == {
        "status": "END",
        "id": "7:9",
        "event_count": 4,
        "data_collections": [
            {"data_collection": "public.things", "event_count": 3},
            {"data_collection": "public.other", "event_count": 1},
        ],
        "ts_ms": 0,
    }


def test_an_empty_transaction_is_still_marked() -> None:
    out, control = tracker().track([], marks((1, "BEGIN", "7:1"), (2, "END", "7:2")))
    assert out == []
    assert control is not None
    values = [json.loads(value) for value in control.rows.column("value").to_pylist()]
    assert [(v["event_count"], v["data_collections"]) for v in values] == [(None, None), (0, [])]


def test_tables_of_one_name_in_two_databases_are_counted_apart() -> None:
    first = batch("cc", orders=[2, 4])
    ids = [TableId(name, "dbo", "t", DATABASE_SCHEMA_TABLE) for name in ("one", "other")]
    one, other = (replace(first, table=replace(first.table, id=each)) for each in ids)
    order = other.rows.schema.get_field_index("order")
    other = other.with_rows(other.rows.set_column(order, "order", pa.array([3, 5], pa.int64())))
    out, control = tracker().track([one, other], marks((1, "BEGIN", "7:1"), (6, "END", "7:2")))
    assert blocks(out) == [(1, 1), (3, 2), (2, 1), (4, 2)]
    assert control is not None
    listed = json.loads(control.rows.column("value")[1].as_py())["data_collections"]
    assert [each["data_collection"] for each in listed] == ["one.dbo.t", "other.dbo.t"]


def test_a_change_outside_any_transaction_has_no_block() -> None:
    out, _ = tracker().track([batch("ccc", orders=[1, 3, 6])], marks((2, "BEGIN", "7:1"), (4, "END", "7:2")))
    assert blocks(out) == [None, (1, 1), None]


def test_reads_have_no_block_and_no_marks_no_records() -> None:
    out, control = tracker().track([batch("rr")], marks())
    assert blocks(out) == [None, None]
    assert control is None


def test_an_open_transaction_without_marks_keeps_counting() -> None:
    track = tracker()
    track.track([batch("c", orders=[2])], marks((1, "BEGIN", "7:1")))
    middle, control = track.track([batch("c", orders=[4])], marks())
    assert (blocks(middle), control) == ([(2, 2)], None)
    last, _ = track.track([batch("c", orders=[6])], marks())
    assert blocks(last) == [(3, 3)]


def test_messages_are_one_data_collection_or_each_its_own() -> None:
    message = TableId("golden", "", "")
    given = batch("mmm", orders=[2, 4, 6])
    given = ChangeBatch(replace(given.table, id=message), given.rows)
    bounds = marks((1, "BEGIN", "7"), (8, "END", "7"))
    for name, second, counts in ((None, [1, 2, 3], {"LOGICAL_DECODING_MESSAGE": 3}), ("Id", [1] * 3, None)):
        track = tracker()
        track.message_object = name
        tracked, records = track.track([given], bounds)
        assert blocks(tracked) == list(zip((1, 2, 3), second, strict=True))
        assert records is not None
        found = json.loads(records.rows.column("value").to_pylist()[1])["data_collections"]
        expected = counts or {"Id@0": 1, "Id@1": 1, "Id@2": 1}
        assert {each["data_collection"]: each["event_count"] for each in found} == expected
