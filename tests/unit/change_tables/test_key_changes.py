"""Which ranges of the log may have changes that are older than the key of their table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tailrace.connectors.change_tables.key_changes import KEYS, NEW_KEYS, SeenKeys, is_older, noted_keys
from tailrace.connectors.change_tables.tables import Instance, TableKey
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE

TABLE = TableId("shop", "dbo", "t", DATABASE_SCHEMA_TABLE)
PLAIN = Instance("dbo_t", TABLE, 1, 2, start="3", changes="[cdc].[dbo_t_CT]")
OLD, NEW, AGAIN, NONE = TableKey(("a",), "pk1"), TableKey(("b",), "pk2"), TableKey(("a",), "pk3"), TableKey(())


def given(key: TableKey, seen_us: int = 100) -> Instance:
    return replace(PLAIN, key=replace(key, seen_us=seen_us))


class Planning:
    """A pipeline's offsets, by the keys that are read with each end of the log."""

    def __init__(self, key: TableKey) -> None:
        self.log: dict[str, Any] = noted_keys({}, [given(key)], None)

    def reads(self, key: TableKey, captured_us: int | None, seen_us: int = 100) -> bool:
        """Whether the rows of the next range may be older than this key."""
        start, self.log = self.log, noted_keys(self.log, [given(key, seen_us)], captured_us)
        return is_older(given(key, seen_us), start, self.log)


def test_no_row_is_older_as_long_as_the_key_stays() -> None:
    planning = Planning(OLD)
    assert not any(planning.reads(OLD, captured_us) for captured_us in (None, 50, 150))
    assert NEW_KEYS not in planning.log


def test_rows_are_older_until_all_is_captured_that_was_committed_when_the_key_was_seen() -> None:
    planning = Planning(OLD)
    assert [planning.reads(NEW, captured_us) for captured_us in (60, None, 99, 100, 101, 102)] == [
        *(True, True, True),
        True,  # the range up to there has rows from before
        *(False, False),
    ]
    assert planning.log == {KEYS: {"shop": {"2": NEW.digest}}}


def test_a_key_that_was_made_again_over_the_same_columns_is_another_one() -> None:
    assert Planning(OLD).reads(AGAIN, 200)


def test_a_table_that_has_no_key_any_more_tells_its_rows_apart_by_all_values() -> None:
    planning = Planning(OLD)
    assert not planning.reads(NONE, None)
    assert planning.reads(NEW, None)


def test_nothing_is_known_of_an_offset_without_keys() -> None:
    """Of an earlier version, or of a pipeline whose sink keeps no tables."""
    assert not is_older(given(NEW), {}, noted_keys({}, [given(NEW)], None))
    assert not is_older(PLAIN, {KEYS: {"shop": {"2": OLD.digest}}}, {})
    assert noted_keys({}, [PLAIN], None) == {}


def test_a_batch_that_is_planned_again_under_a_newer_key_may_have_older_rows() -> None:
    log = noted_keys({}, [given(OLD)], None)
    assert is_older(given(NEW), log, log)


class Catalogue:
    """Has one change table."""

    def __init__(self) -> None:
        self.key: TableKey | None = OLD

    def instances(self, database: str) -> list[Instance]:
        return [PLAIN]

    def keys(self, database: str) -> dict[int, TableKey]:
        return {} if self.key is None else {2: self.key}


def test_the_time_is_asked_when_a_key_is_seen_first() -> None:
    seen, catalogue, times = SeenKeys(), Catalogue(), iter((10, 20, 30))

    def looked() -> tuple[TableKey, int]:
        (found,) = seen.given(catalogue, "shop", lambda: next(times))  # type: ignore[arg-type]
        assert found.key is not None
        return found.key, found.key.seen_us

    assert looked() == looked() == (OLD, 10)
    catalogue.key = None
    assert looked() == looked() == (NONE, 20)
    catalogue.key = NEW
    assert looked() == (NEW, 30)
