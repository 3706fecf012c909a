"""Tables that are given whole: their rows in the order of a key, and how little a connector to them needs."""

from __future__ import annotations

import ast
from pathlib import Path

import pyarrow as pa
import pytest

from tailrace.connectors.snapshots import PagingKey
from tailrace.connectors.table_split import TableSplit
from tailrace.connectors.whole_tables.tables import OrderedRows, key_texts
from tailrace.errors import SourceError
from tests.conformance.folder import FolderSource
from tests.conformance.subject import KEY, NOTE, VALUE, Insert

TOY = Path(__file__).parents[2] / "toy" / "tailrace_folder"
MOST_METHODS, MOST_LINES = 40, 350
# Texts that sort otherwise than the numbers do, and nulls in both columns.
ROWS = pa.table({"a": [10, None, 2, 10, None], "b": ["x", "y", "", None, None], "c": [0, 1, 2, 3, 4]})
ORDER = [2, 0, 3, 1, 4]


def ordered() -> OrderedRows:
    return OrderedRows.of(ROWS, ["a", "b"])


def numbers(rows: pa.Table) -> list[int]:
    found: list[int] = rows.column("c").to_pylist()
    return found


def test_rows_are_in_the_order_of_their_key_with_nulls_last() -> None:
    assert numbers(ordered().rows) == ORDER
    assert ordered().last_key == (None, None)
    assert OrderedRows.of(ROWS.slice(0, 0), ["a"]).last_key is None


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_pages_have_each_row_once(size: int) -> None:
    rows, read, last = ordered(), list[int](), None
    while True:
        page = rows.between(last, rows.last_key, size)
        if page.last_key is None:
            break
        read, last = read + numbers(page.rows), page.last_key
    assert read == ORDER


def test_a_page_ends_at_a_key() -> None:
    assert numbers(ordered().between(("2", ""), ("10", None), 9).rows) == [0, 3]
    assert numbers(ordered().between(None, ("2", ""), 9).rows) == [2]
    assert numbers(ordered().between((None, None), None, 9).rows) == []


def test_rows_of_keys_are_found_and_the_others_named() -> None:
    keys = [("10", "x"), ("11", "x"), ("2", "")]
    rows, missing = ordered().find(keys)
    assert (numbers(rows), missing) == ([0, 2], [("11", "x")])
    assert ordered().find([]) == (ordered().rows.slice(0, 0), [])
    assert OrderedRows.of(ROWS.slice(0, 0), ["a"]).find([("1",)])[1] == [("1",)]


def test_a_key_of_another_width_is_an_error() -> None:
    with pytest.raises(SourceError, match="the table's key has 2 columns"):
        ordered().find([("10",)])


def test_a_text_that_is_no_value_of_its_column_is_null() -> None:
    keyed = ordered().keyed([("10", "x"), ("ten", "y")])
    assert keyed.to_pylist() == [{"a": 10, "b": "x", "c": None}, {"a": None, "b": "y", "c": None}]
    assert ordered().find([("ten", "x")])[1] == [("ten", "x")]
    assert ordered().keyed([]).num_rows == 0


def test_keys_are_texts() -> None:
    expected: list[PagingKey] = [("10", "x"), (None, "y"), ("2", ""), ("10", None), (None, None)]
    assert key_texts(ROWS.select(["a", "b"])) == expected


def test_a_table_that_a_signal_asks_for_is_read_though_the_configuration_does_not_capture_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(TOY.parent))
    from tailrace_folder.package import FolderPackage

    source = FolderSource(tmp_path / "folder")
    source.create("t", "added")
    source.commit(Insert("added", {KEY: 1, VALUE: 0, NOTE: None}), Insert("added", {KEY: 2, VALUE: 0, NOTE: None}))
    given = {**source.properties("p"), "topic.prefix": "t", "table.include.list": r"box\.main\.t"}
    connector = FolderPackage().connector(FolderPackage().resolve(given))
    split = TableSplit(connector.snapshots.open_now(connector.config), source.id("added"), first="first", last="last")
    (rows,) = [batch for chunk in connector.rows(connector.config, split) for batch in chunk.batches]
    assert rows.rows.column("after").field("id").to_pylist() == [1, 2]
    assert rows.rows.column("snapshot").to_pylist() == ["first", "last"]


def test_the_smallest_connector_stays_small() -> None:
    """With the functions that are its database: what is missing of it in general belongs to connectors/."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(TOY.glob("*.py"))]
    functions = [node for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    assert len(functions) <= MOST_METHODS
    assert sum(len(text.splitlines()) for text in texts) <= MOST_LINES
