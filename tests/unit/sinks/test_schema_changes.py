"""What a replica makes of schema changes: steps of their own, columns to be, and rounds around renamed tables."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tailrace.errors import SinkError
from tailrace.model.change import ChangeBatch
from tailrace.model.schema_change import ALTER, CREATE, DROP, SchemaChange
from tailrace.model.table import TableId
from tailrace.sinks.replica.marks import Extent, LogPlace
from tailrace.sinks.replica.parts import parts
from tailrace.sinks.replica.renames import Done, Rename, Stop, in_rounds
from tailrace.sinks.replica.reshape import reshaping
from tests.unit.events.changes import batch
from tests.unit.events.test_schema_change import batch_of_change

HERE = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.date32())])


def altered(*renamed: tuple[str, str], dropped: tuple[str, ...] = ()) -> SchemaChange:
    return SchemaChange(ALTER, None, 1, renamed=renamed, dropped=dropped)


@pytest.mark.parametrize(
    ("change", "names", "after"),
    [
        (altered(("b", "x")), "abc", "axc"),
        (altered(("b", "c")), "ab", "ac"),
        (altered(("a", "b"), ("b", "a")), "abc", "bac"),
        (altered(dropped=("b", "z")), "ac", "ac"),
        (altered(("z", "b"), dropped=("z",)), "", ""),
        (altered(dropped=("a", "b", "c")), "", ""),
    ],
)
def test_columns_to_be(change: SchemaChange, names: str, after: str) -> None:
    shape = reshaping(HERE, change)
    assert [*names] == ([] if shape is None else shape.names)
    assert [*after] == ([] if shape is None else shape.schema.names)
    assert shape is None or shape.schema.types == [HERE.field(name).type for name in names]


def test_schema_changes_are_parts_of_their_own() -> None:
    renamed = SchemaChange(ALTER, None, 5, previous=TableId("golden", "public", "old"), dropped=("z",))
    batches: list[ChangeBatch] = [
        batch("c"),
        batch("u", [4]),
        batch_of_change(SchemaChange(CREATE, None, 1)),
        batch_of_change(altered(dropped=("z",))),
        batch("c"),
        batch_of_change(renamed),
        batch_of_change(SchemaChange(DROP, None, 2)),
    ]
    found = [*parts(pa.py_buffer(each.to_ipc()) for each in batches)]
    assert [part.extent.number for part in found] == [0, 1, 2, 3, 4, 5]
    places = [part.extent.upto for part in found]
    assert places == [LogPlace(7, rows) for rows in (2, 3, 4, 5, 6, 7)]
    assert [part.extent.before for part in found] == [None, *places[:-1]]
    assert [len(part.batches) for part in found] == [2, 0, 1, 0, 0, 0]
    assert [part.change and part.change.kind for part in found] == [None, ALTER, None, None, ALTER, DROP]
    assert found[3].rename == Rename(5, "public.old", "public.x")


def rounds(tables: dict[str, list[Rename | str]]) -> list[str]:
    """What is written and moved, in order; each table's steps are texts and renames."""
    done: list[str] = []

    def advance(allowed: Done) -> tuple[list[str], list[Stop]]:
        stops = []
        for table, steps in tables.items():
            for number, step in enumerate(steps):
                if isinstance(step, str):
                    done.extend([] if step in done else [step])
                elif step not in allowed.renames:
                    stops.append(Stop(table, Extent(number), step))
                    break
        return [], stops

    def move(old: Stop, new: Stop) -> list[str]:
        done.append(f"{old.table}>{new.table}")
        return []

    in_rounds(advance, move)
    return done


def test_renames_wait_for_both_tables() -> None:
    away, back, last = Rename(1, "a", "t"), Rename(2, "b", "a"), Rename(3, "t", "b")
    found = rounds({"a": ["a0", away, "a1", back, "a2"], "b": ["b0", back, last, "b1"], "t": [away, "t0", last]})
    assert found.index("a0") < found.index("a>t") < found.index("a1") < found.index("b>a") < found.index("a2")
    assert found.index("b0") < found.index("b>a") < found.index("t>b") < found.index("b1")
    assert found.index("a>t") < found.index("t0") < found.index("t>b")


def test_a_rename_that_only_one_table_knows_is_an_error() -> None:
    with pytest.raises(SinkError, match="reached only one of its two names"):
        rounds({"a": [Rename(1, "a", "b")], "b": []})
