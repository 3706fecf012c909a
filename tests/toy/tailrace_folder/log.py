"""The database: a folder of JSON-lines files, in which each line is a committed transaction.

| file | holds |
|---|---|
| log/*.jsonl | in the order of their names: `{"ts_us": ..., "changes": [...]}` a line |
| base.json | the line after which the log begins, if older files were removed, and their `changes` in short |
| users.json | name to `{"password": ..., "reads": true}` |

A change is `{"op": "c", "table": [database, schema, name], "before": {...}, "after": {...}}`; its op is c, u, d, t
(truncate), or s (the table has these `columns`, names to int or text, and this `key`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from tailrace.config import Config
from tailrace.connectors.ports import Position
from tailrace.errors import SourceError
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE
from tailrace_folder.options import FOLDER_PASSWORD, FOLDER_PATH, FOLDER_USER

Row = dict[str, Any]


@dataclass(frozen=True, order=True)
class Line:
    """A position: after a line of a file. Implements Position; the texts are in the order of the log."""

    file: str = ""
    line: int = 0
    distance = Position.distance

    def to_text(self) -> str:
        return f"{self.file}:{self.line:06d}"

    @staticmethod
    def from_text(text: str) -> Line:
        file, _, line = text.rpartition(":")
        return Line(file, int(line))


@dataclass
class Content:
    """A table at one line of the log."""

    columns: dict[str, str]
    key: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)

    def apply(self, change: dict[str, Any]) -> None:
        """Make a change."""
        if change["op"] == "s":
            self.columns, self.key = change["columns"], tuple(change["key"])
            self.rows = [{name: row.get(name) for name in self.columns} for row in self.rows]
        elif change["op"] == "t":
            self.rows = []
        elif change["op"] == "u":
            self.rows[self.rows.index(change["before"])] = change["after"]
        elif change["op"] == "d":
            self.rows.remove(change["before"])
        else:
            self.rows.append(change["after"])


class Log:
    """A folder. Nothing in it belongs to a pipeline."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def of(config: Config) -> Log:
        """The folder of a configuration. Raises SourceError if it is not there, or its user may not read it."""
        where, name = config[FOLDER_PATH], config[FOLDER_USER]
        log = Log(Path(where))
        try:
            users = json.loads((log.folder / "users.json").read_text(encoding="utf-8"))
        except OSError as error:
            remedy = "check folder.path, and that the folder is mounted here and where Spark's workers run"
            raise SourceError(f"the folder cannot be read: {error.strerror}", where=where, remedy=remedy) from error
        if users.get(name, {}).get("password") != config[FOLDER_PASSWORD]:
            remedy = "set folder.user and folder.password to those of users.json"
            raise SourceError(f"password authentication failed for user {name}", where=where, remedy=remedy)
        if not users[name]["reads"]:
            raise SourceError(f"user {name} may not read", where=where, remedy="set reads in users.json to true")
        return log

    @cached_property
    def _base(self) -> dict[str, Any]:
        file = self.folder / "base.json"
        return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}

    @property
    def begin(self) -> Line:
        """Where the log begins."""
        return Line.from_text(self._base["line"]) if self._base else Line()

    def end(self) -> Line:
        """Where the log ends now."""
        return max((line for line, _, _ in self.lines(self.begin)), default=self.begin)

    def lines(self, start: Line, end: Line | None = None) -> Iterator[tuple[Line, dict[str, Any], int]]:
        """The transactions of (start, end], each with its line and its bytes. What has no end of line yet is none."""
        for file in sorted((self.folder / "log").glob("*.jsonl")):
            if file.name < start.file or (end is not None and file.name > end.file):
                continue
            for number, text in enumerate(file.read_bytes().splitlines(keepends=True), 1):
                line = Line(file.name, number)
                if start < line and (end is None or line <= end) and text.endswith(b"\n"):
                    yield line, json.loads(text), len(text)

    def now(self) -> dict[TableId, Content]:
        """The tables as of now."""
        return self.tables(self.end())

    def tables(self, at: Line) -> dict[TableId, Content]:
        """The tables as of a line, each with its rows."""
        found: dict[TableId, Content] = {}
        later = (line["changes"] for _, line, _ in self.lines(self.begin, at))
        for change in chain(self._base.get("changes", ()), *later):
            apply(found, change)
        return found


def table_of(change: dict[str, Any]) -> TableId:
    """The table of a change."""
    database, schema, name = change["table"]
    return TableId(database, schema, name, DATABASE_SCHEMA_TABLE)


def apply(tables: dict[TableId, Content], change: dict[str, Any]) -> None:
    """Make a change, which may be that a table is new."""
    tables.setdefault(table_of(change), Content({}, ())).apply(change)
