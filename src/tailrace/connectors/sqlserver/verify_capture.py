"""The probes of capture instances: when one begins, two of one table, and what change tables have of changes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tailrace.connectors.probe import NONE, Answer, Expectation, Probe
from tailrace.connectors.sqlserver.statements import name, text
from tailrace.errors import SourceError

if TYPE_CHECKING:
    from tailrace.connectors.sqlserver.verify_bench import SqlServerBench

LIFE, DUMPED = "vlife", "vdumped"
_POLL_S = 0.1  # guessed
_STATE = """
SELECT CASE WHEN start_lsn IS NULL THEN 1 ELSE 0 END,
  CASE WHEN start_lsn > sys.fn_cdc_get_max_lsn() OR sys.fn_cdc_get_max_lsn() IS NULL THEN 1 ELSE 0 END
FROM cdc.change_tables WHERE capture_instance = {instance}
"""
_STARTS = """
SELECT capture_instance, start_lsn, create_date FROM cdc.change_tables WHERE source_object_id = OBJECT_ID({table})
ORDER BY create_date, object_id
"""
_DUMP = """
SELECT __$start_lsn, __$seqval, __$command_id, __$operation, CONVERT(int, __$update_mask), id, u
FROM cdc.{changes} ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation
"""
# Each is a transaction: single and many rows, a changed key, keys and values of a unique index that move along.
_SCRIPT = (
    "INSERT INTO {table} VALUES (1, 1, N'a'), (2, 2, N'b'), (3, 3, N'c')",
    "UPDATE {table} SET note = N'd' WHERE id = 1",
    "UPDATE {table} SET id = 9 WHERE id = 1",
    "UPDATE {table} SET id = id + 1",
    "UPDATE {table} SET u = u + 1",
    "UPDATE {table} SET note = note",
    "DELETE FROM {table} WHERE id > 4",
)
# As Microsoft's documents say it of such statements, and as the stand-in of the tests has it; no server was seen.
# Transaction, command, place of __$seqval in its transaction, operation, mask of changed columns, id, u.
_DUMPED = [
    [1, 1, 1, 2, 7, 1, 1], [1, 2, 2, 2, 7, 2, 2], [1, 3, 3, 2, 7, 3, 3],
    [2, 1, 1, 3, 4, 1, 1], [2, 1, 1, 4, 4, 1, 1],
    [3, 1, 1, 1, 7, 1, 1], [3, 2, 1, 2, 7, 9, 1],
    [4, 1, 1, 1, 7, 2, 2], [4, 2, 2, 3, 6, 3, 3], [4, 2, 2, 4, 6, 3, 2], [4, 3, 3, 2, 7, 4, 3],
    [4, 4, 4, 1, 7, 9, 1], [4, 5, 5, 2, 7, 10, 1],
    [5, 1, 1, 3, 2, 3, 2], [5, 1, 1, 4, 2, 3, 3], [5, 2, 2, 3, 2, 4, 3], [5, 2, 2, 4, 2, 4, 4],
    [5, 3, 3, 3, 2, 10, 1], [5, 3, 3, 4, 2, 10, 2],
    [6, 1, 1, 1, 7, 10, 2],
]  # fmt: skip
_MARK = 999
_WRONG = "Change tables here have rows in another order or form than the connector reads: please send the report."


def capture_probes(bench: SqlServerBench) -> list[Probe]:
    """The probes."""
    begins = (
        Expectation("begins", (True,), "A new capture instance is not ready in time: is the capture job running?"),
    )
    two = (
        Expectation("newest_is_second", (True,), "A pipeline would read the wrong one of two capture instances."),
        Expectation("clean_up_raises_start", (True,), "A lost position may not be noticed here."),
        Expectation("enabled_again", (True,), _WRONG),
    )
    rows = (
        Expectation("rows", (_DUMPED,), _WRONG),
        Expectation("truncate", ("4711",), "TRUNCATE of a captured table is allowed here, and is not in the log."),
    )
    born = "When does a new capture instance begin?"
    return [
        Probe("capture.instance", born, "Its first changes are not lost.", lambda: _instance(bench), begins),
        Probe(
            "capture.two_instances",
            _TWO,
            "A table can get a new column while it is captured.",
            lambda: _two(bench),
            two,
        ),
        Probe(
            "capture.rows", "What do change tables have of changes?", "Events are right.", lambda: _rows(bench), rows
        ),
    ]


_TWO = "What becomes of two capture instances of a table when the old one is cleaned, and dropped?"


def _enabling(bench: SqlServerBench, table: str, instance: str) -> str:
    return (
        f"EXEC sys.sp_cdc_enable_table @source_schema = {text(bench.schema)}, @source_name = {text(table)}, "
        f"@role_name = NULL, @supports_net_changes = 0, @capture_instance = {text(instance)}"
    )


def _instances(bench: SqlServerBench, table: str) -> tuple[str, str, str]:
    first, second, third = (f"{bench.schema}_{table}_{number}" for number in (1, 2, 3))
    return first, second, third


def _instance(bench: SqlServerBench) -> Answer:
    first, *_ = _instances(bench, LIFE)
    bench.run(f"CREATE TABLE {bench.table(LIFE)} (id int NOT NULL PRIMARY KEY, v int)", _enabling(bench, LIFE, first))
    begin, null_s, above_s = time.monotonic(), 0.0, 0.0
    is_null = is_above = True
    while (now := time.monotonic() - begin) < bench.deadline_s:
        is_null, is_above = map(bool, bench.main.rows(_STATE.format(instance=text(first)))[0])
        null_s, above_s = (now if is_null else null_s), (now if is_above else above_s)
        if not is_null and not is_above:
            break
        time.sleep(_POLL_S)
    about = {"start_lsn_is_null_for_s": round(null_s, 1), "start_is_above_max_lsn_for_s": round(above_s, 1)}
    return Answer({"begins": not is_null and not is_above}, about)


def _two(bench: SqlServerBench) -> Answer:
    first, second, third = _instances(bench, LIFE)
    bench.run(f"ALTER TABLE {bench.table(LIFE)} ADD extra int", _enabling(bench, LIFE, second))
    refused = _code(bench, _enabling(bench, LIFE, third))
    bench.run(f"INSERT INTO {bench.table(LIFE)} VALUES (1, 1, 1)")
    _wait(bench, f"SELECT COUNT(*) FROM cdc.{name(second + '_CT')}", 1)
    before = _starts(bench)
    mark = "DECLARE @mark binary(10) = sys.fn_cdc_get_max_lsn(); EXEC sys.sp_cdc_cleanup_change_table"
    bench.run(f"{mark} @capture_instance = {text(first)}, @low_water_mark = @mark")
    after = _starts(bench)
    place = f"@source_schema = {text(bench.schema)}, @source_name = {text(LIFE)}"
    bench.run(
        f"EXEC sys.sp_cdc_disable_table {place}, @capture_instance = {text(first)}", _enabling(bench, LIFE, third)
    )
    facts = {
        "third": refused,
        "newest_is_second": list(before) == [first, second],
        "clean_up_raises_start": before[first] < after[first],
        "cleaned_starts_later": after[first] > after[second],
        "enabled_again": list(_starts(bench)) == [second, third],
    }
    return Answer(facts)


def _starts(bench: SqlServerBench) -> dict[str, bytes]:
    """The capture instances of the table, by creation, with their starts; empty where there is none yet."""
    rows = bench.main.rows(_STARTS.format(table=text(bench.table(LIFE))))
    return {str(row[0]): bytes(row[1] or b"") for row in rows}


def _rows(bench: SqlServerBench) -> Answer:
    table, (first, *_) = bench.table(DUMPED), _instances(bench, DUMPED)
    bench.run(
        f"CREATE TABLE {table} (id int NOT NULL PRIMARY KEY, u int NOT NULL UNIQUE, note nvarchar(20))",
        _enabling(bench, DUMPED, first),
        *(statement.format(table=table) for statement in _SCRIPT),
        f"INSERT INTO {table} VALUES ({_MARK}, {_MARK}, NULL)",
    )
    truncate = _code(bench, f"TRUNCATE TABLE {table}")
    changes = name(f"{first}_CT")
    _wait(bench, f"SELECT COUNT(*) FROM cdc.{changes} WHERE id = {_MARK}", 1)
    return Answer({"rows": _relative(bench.main.rows(_DUMP.format(changes=changes))), "truncate": truncate})


def _relative(rows: list[tuple[Any, ...]]) -> list[list[int]]:
    """Rows of a change table with the places of LSNs in place of them, without the mark."""
    rows = [row for row in rows if row[5] != _MARK]
    commits = sorted({bytes(row[0]) for row in rows})
    places = {commit: sorted({bytes(row[1]) for row in rows if bytes(row[0]) == commit}) for commit in commits}
    return [
        [commits.index(bytes(row[0])) + 1, row[2], places[bytes(row[0])].index(bytes(row[1])) + 1, *row[3:]]
        for row in rows
    ]


def _code(bench: SqlServerBench, statement: str) -> str:
    """The code of the error of a statement."""
    try:
        bench.run(statement)
    except bench.failures.driver_error as error:
        return bench.code(error)
    return NONE


def _wait(bench: SqlServerBench, query: str, wanted: int) -> None:
    begin = time.monotonic()
    while bench.value(query) < wanted:
        if time.monotonic() - begin > bench.deadline_s:
            raise SourceError(f"the capture job has captured nothing in {bench.deadline_s:g} s")
        time.sleep(_POLL_S)
