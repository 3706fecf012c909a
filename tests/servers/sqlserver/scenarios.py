"""Runs the scripts of recorded scenarios on the double and writes its change tables as the recordings have them."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.golden import script

from .server import SqlServer

DATABASE = "testdb"
# Written by the connector, which does not run here.
_WRITTEN_BY_CONNECTOR = ("debezium_signal", "beats")

Tables = dict[str, list[dict[str, Any]]]


def run_scripts(server: SqlServer, folder: Path, database: str = DATABASE) -> Tables:
    """Run a scenario's scripts in a new database; return the rows of its change tables, dropped ones too."""
    server.execute(f"CREATE DATABASE [{database}]")
    sessions: dict[str, Any] = {"main": server.connect(database)}
    found: Tables = {}
    try:
        _execute(sessions["main"], "EXEC sys.sp_cdc_enable_db")
        current = "main"
        for name in ("setup.sql", "workload.sql"):
            for step in script.split((folder / name).read_text(encoding="utf-8")):
                if isinstance(step, script.Directive):
                    if step.name == "session":
                        current = step.argument
                    continue
                if "sp_cdc_disable_table" in step.text:
                    server.capture.scan(_number(server, database))
                    found.update(change_tables(sessions["main"]))
                if current not in sessions:
                    sessions[current] = server.connect(database)
                _execute(sessions[current], step.text)
        server.capture.scan(_number(server, database))
        found.update(change_tables(sessions["main"]))
    finally:
        for session in sessions.values():
            session.close()
        server.execute(f"DROP DATABASE [{database}]")
    return found


def recorded(folder: Path) -> Tables:
    """The rows of the change tables that were recorded."""
    found: Tables = defaultdict(list)
    for line in (folder / "cdc.jsonl").read_text(encoding="utf-8").strip().split("\n"):
        entry = json.loads(line)
        name = entry["table"].removeprefix("cdc.")
        if name.endswith("_CT") and "row" in entry and not any(other in name for other in _WRITTEN_BY_CONNECTOR):
            found[name].append(entry["row"])
    return dict(found)


def comparable(tables: Tables) -> Tables:
    """Rows with LSNs replaced by their rank: of a commit among all tables, of a change among those of its transaction.

    Where a table has two capture instances, the recordings number a change differently in each; the number of a
    command counts only in the first.
    """
    tables = {
        name: rows
        for name, rows in tables.items()
        if rows and not any(other in name for other in _WRITTEN_BY_CONNECTOR)
    }
    commits = sorted({row["__$start_lsn"] for rows in tables.values() for row in rows})
    result: Tables = {}
    for name, rows in tables.items():
        listed = []
        for row in rows:
            changes = sorted({other["__$seqval"] for other in rows if other["__$start_lsn"] == row["__$start_lsn"]})
            ranks = {"__$start_lsn": commits.index(row["__$start_lsn"]), "__$seqval": changes.index(row["__$seqval"])}
            listed.append({**row, **ranks})
        listed.sort(key=lambda row: (row["__$start_lsn"], row["__$command_id"], row["__$operation"]))
        result[name] = [{**row, "__$command_id": 0} for row in listed] if name.endswith("_v2_CT") else listed
    return result


def change_tables(connection: Any) -> Tables:
    """The rows of all change tables of a database, in the form of the recordings."""
    found: Tables = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT capture_instance FROM cdc.change_tables ORDER BY start_lsn")
        for (instance,) in cursor.fetchall():
            cursor.execute(f"SELECT * FROM cdc.[{instance}_CT]")
            names = [column[0] for column in cursor.description]
            found[f"{instance}_CT"] = [dict(zip(names, map(plain, row), strict=True)) for row in cursor.fetchall()]
    return found


def plain(value: Any) -> Any:
    """A value as JSON has it: binaries as hex, times as ISO text, exact numbers as text."""
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, uuid.UUID):
        return str(value).upper()
    return value


def _number(server: SqlServer, database: str) -> int:
    return int(server.lookup(f"SELECT ms.db_id('{database}')") or 0)


def _execute(connection: Any, text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text)
