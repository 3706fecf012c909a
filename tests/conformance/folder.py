"""The toy connector of tests/toy in the conformance suite: a writer of change files, as its database would be."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import pytest

from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE
from tailrace.override import override
from tests.conformance.subject import (
    DECIDED_ONCE,
    KEY,
    NO_PRIVILEGE,
    NOTE,
    SECRET,
    UNREACHABLE,
    VALUE,
    WRONG_PASSWORD,
    Change,
    Delete,
    Insert,
    Row,
    Source,
    Subject,
    Update,
)

TOY = Path(__file__).parents[1] / "toy"
PLUGINS = Path(__file__).parent / "plugins"
PASSWORD = f"{SECRET}-right"
COLUMNS = {KEY: "int", VALUE: "int", NOTE: "text"}
SIGNALS = {"id": "text", "type": "text", "data": "text"}
LINES_A_FILE = 40


def install() -> None:
    """Have this process and the ones it starts find the toy's package and the plug-ins; before Spark starts."""
    found = [str(TOY), str(PLUGINS)]
    sys.path.extend(found)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *found]))


class FolderSource(Source):
    """A folder with two databases' tables: the ones of the tests are in `box`, schema `main`."""

    signals = "signals"

    def __init__(self, folder: Path) -> None:
        from tailrace_folder.log import Log

        self.folder, self.log = folder, Log(folder)
        (folder / "log").mkdir(parents=True)
        users = {"me": {"password": PASSWORD, "reads": True}, "poor": {"password": PASSWORD, "reads": False}}
        (folder / "users.json").write_text(json.dumps(users), encoding="utf-8")
        self._describe(self.signals, SIGNALS, [KEY])

    @override
    def properties(self, pipeline: str) -> dict[str, str]:
        return {
            "folder.path": str(self.folder),
            "folder.user": "me",
            "folder.password": PASSWORD,
        }

    @override
    def id(self, table: str) -> TableId:
        return TableId("box", "main", table, DATABASE_SCHEMA_TABLE)

    @override
    def create(self, *tables: str, has_key: bool = True) -> None:
        for table in tables:
            self._describe(table, COLUMNS, [KEY] if has_key else [])

    @override
    def commit(self, *changes: Change) -> None:
        with self._locked():
            tables = self._tables()
            done = [each for change in changes for each in self._changes(tables, change)]
            self._append(done)

    @override
    def roll_back(self, *changes: Change) -> None:
        raise NotImplementedError

    @override
    def truncate(self, table: str) -> None:
        with self._locked():
            self._append([{"op": "t", "table": self.id(table).parts}])

    @override
    def add_column(self, table: str, name: str) -> None:
        content = self._tables()[self.id(table)]
        self._describe(table, {**content.columns, name: "int"}, list(content.key))

    @override
    def move_key(self, table: str) -> None:
        self._describe(table, COLUMNS, [VALUE])

    @override
    def signal(self, id_: str, kind: str, data: str) -> None:
        with self._locked():
            row = {"id": id_, "type": kind, "data": data}
            self._append([{"op": "c", "table": self.id(self.signals).parts, "after": row}])

    @override
    def clear_signals(self) -> None:
        self.truncate(self.signals)

    @override
    def hostile(self, kind: str, table: str, victim: str) -> list[str]:
        return ["{", "[]", f"DELETE FROM {victim}", '{"a":' * 200 + "1" + "}" * 200 + "x"]

    @override
    def harmless(self, kind: str, table: str, key: int) -> str:
        """A blocking snapshot takes no condition."""
        return json.dumps({KEY: key}) if kind == "incremental" else ""

    @override
    def rows(self, table: str) -> list[Row]:
        found: list[Row] = self._tables()[self.id(table)].rows
        return found

    @override
    def lose_position(self, pipeline: str) -> None:
        """All change files are removed, after one more change."""
        self.truncate(self.signals)
        with self._locked():
            tables, place = self._tables(), self.log.end().to_text()
            changes: list[dict[str, Any]] = []
            for table, each in tables.items():
                changes.append({"op": "s", "table": table.parts, "columns": each.columns, "key": each.key})
                changes += [{"op": "c", "table": table.parts, "after": row} for row in each.rows]
            draft = self.folder / "base.draft"
            draft.write_text(json.dumps({"line": place, "changes": changes}), encoding="utf-8")
            draft.rename(self.folder / "base.json")
            for file in self._files():
                file.unlink()
            number = int(place.partition(".")[0]) + 1
            (self.folder / "log" / f"{number:06d}.jsonl").touch()

    @contextmanager
    @override
    def fault(self, kind: str) -> Iterator[dict[str, str]]:
        yield {
            WRONG_PASSWORD: {"folder.password": f"{SECRET}-wrong"},
            UNREACHABLE: {"folder.path": str(self.folder / "elsewhere")},
            NO_PRIVILEGE: {"folder.user": "poor"},
        }[kind]

    @override
    def url(self) -> tuple[str, dict[str, str]]:
        return f"folder://{quote(str(self.folder))}?user=me", {"FOLDER_PASSWORD": PASSWORD}

    def _describe(self, table: str, columns: dict[str, str], key: list[str]) -> None:
        with self._locked():
            self._append([{"op": "s", "table": self.id(table).parts, "columns": columns, "key": key}])

    def _changes(self, tables: dict[TableId, Any], change: Change) -> Iterator[dict[str, Any]]:
        """A change as lines have it, made in `tables`."""
        table = tables[self.id(change.table)]
        if isinstance(change, Insert):
            found = [{"op": "c", "after": {**dict.fromkeys(table.columns), **change.row}}]
        else:
            olds = [row for row in table.rows if row[KEY] == change.key]
            if isinstance(change, Delete):
                found = [{"op": "d", "before": old} for old in olds]
            else:
                assert isinstance(change, Update)
                found = [{"op": "u", "before": old, "after": {**old, **change.values}} for old in olds]
        for each in found:
            table.apply(each)
            yield {**each, "table": self.id(change.table).parts}

    def _tables(self) -> dict[TableId, Any]:
        from tailrace_folder.log import Log

        self.log = Log(self.folder)
        return self.log.tables(self.log.end())

    def _files(self) -> list[Path]:
        return sorted((self.folder / "log").glob("*.jsonl"))

    def _append(self, changes: list[dict[str, Any]]) -> None:
        """Write a line, in a new file now and then."""
        files = self._files()
        file = files[-1] if files else self.folder / "log" / "000001.jsonl"
        if files and len(file.read_bytes().splitlines()) >= LINES_A_FILE:
            file = file.with_name(f"{int(file.stem) + 1:06d}.jsonl")
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"ts_us": time.time_ns() // 1000, "changes": changes}) + "\n")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


NO_DEBEZIUM = "Debezium reads no folders"


class FolderSubject(Subject):
    """Change files in a folder."""

    connector = "folder"
    is_killed = False
    cannot: ClassVar[Mapping[str, str]] = {
        "rows_that_share_an_event_key_are_reported": "a folder knows no unique keys",
        "a_replica_is_equal_though_its_lists_were_narrowed_and_widened": "a folder's connector describes no tables",
        "a_replica_is_equal_though_a_column_was_left_out_or_masked": "a folder's connector describes no tables",
        "rolled_back_changes_are_no_events": "a line is a committed transaction, there are no others",
        "status_and_drop_know_what_a_pipeline_has_created": "a pipeline creates nothing in the folder",
        "a_pipeline_continues_where_another_program_stopped": NO_DEBEZIUM,
        "an_offset_from_which_changes_would_be_lost_is_refused": NO_DEBEZIUM,
        "a_pipeline_that_runs_or_has_no_position_prints_no_offset": NO_DEBEZIUM,
        "a_start_from_such_an_offset_fails": NO_DEBEZIUM,
    }

    # What connectors to databases show by default.
    long = DECIDED_ONCE | frozenset(
        {
            *(
                "a_signal_for_a_table_outside_the_lists_reads_nothing_of_it",
                "a_signal_has_a_table_read[source-blocking]",
            ),
            *("a_hostile_signal_is_given_up_and_writes_nothing", "a_plug_in_that_is_not_there_is_named"),
            *("the_checkpoint_of_another_source_is_an_error", "a_replica_that_was_deleted_is_read_again"),
            "a_pipeline_begins_with_more_signals_than_are_read",
            *("a_mode_reads_the_tables_at_its_first_start", "a_restart_resumes_as_its_mode_says"),
            *("a_snapshot_of_several_batches_resumes_where_it_was", "a_stream_has_rows_in_each_shape"),
            *("a_table_is_added_under_load", "a_table_is_removed_under_load"),
            *("a_snapshot_under_load_leaves_a_replica_equal", "reconcile_finds_and_repairs_wrong_rows"),
            "kafka_has_each_event_once",
        }
    )

    @override
    def start(self, request: pytest.FixtureRequest) -> None:
        self._root: Path = request.getfixturevalue("tmp_path_factory").mktemp("folders")

    @contextmanager
    @override
    def source(self) -> Iterator[Source]:
        yield FolderSource(self._root / str(len(list(self._root.iterdir()))))
