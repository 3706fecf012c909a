"""The probes of change tables: what they have of changes, and whether their columns have the types of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailrace.connectors.db2.statements import text
from tailrace.connectors.probe import Answer, Expectation, Probe

if TYPE_CHECKING:
    from tailrace.connectors.db2.verify_bench import Db2Bench

DUMPED = "vdumped"
_COLUMNS = (
    "SELECT COLNAME, TYPENAME FROM SYSCAT.COLUMNS WHERE TABSCHEMA = {schema} AND TABNAME = {table} ORDER BY COLNO"
)
_SCRIPT = (
    "INSERT INTO {table} VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')",
    'UPDATE {table} SET "note" = \'d\' WHERE "id" = 1',
    'UPDATE {table} SET "id" = 9 WHERE "id" = 1',
    'UPDATE {table} SET "v" = "v" + 1 WHERE "id" < 9',
    'DELETE FROM {table} WHERE "id" > 3',
)
# Transaction, place of IBMSNAP_INTENTSEQ in it, operation, key, v.
_DUMPED = [
    [1, 1, "I", 1, 1], [1, 2, "I", 2, 2], [1, 3, "I", 3, 3],
    [2, 1, "D", 1, 1], [2, 2, "I", 1, 1],
    [3, 1, "D", 1, 1], [3, 2, "I", 9, 1],
    [4, 1, "D", 2, 2], [4, 2, "I", 2, 3], [4, 3, "D", 3, 3], [4, 4, "I", 3, 4],
    [5, 1, "D", 9, 1],
]  # fmt: skip
_WRONG = "Change tables here have rows in another order or form than the connector reads: please send the report."
_OTHER_TYPES = "Columns of change tables have other types than the source: their values may be read wrongly."
_LARGE, _INDICATOR = ("CLOB", "BLOB", "DBCLOB", "XML"), "CHARACTER"


def capture_probes(bench: Db2Bench) -> list[Probe]:
    """The probes."""
    rows = (Expectation("rows", (_DUMPED,), _WRONG),)
    same = (Expectation("other_types", ({},), _OTHER_TYPES),)
    changes, columns = "What do change tables have of changes?", "Have change tables the types of their sources?"
    return [
        Probe("capture.rows", changes, "Events are right.", lambda: _rows(bench), rows),
        Probe("capture.columns", columns, "Values are read as they are.", lambda: _columns(bench), same),
    ]


def _rows(bench: Db2Bench) -> Answer:
    bench.create(DUMPED)
    bench.captured(DUMPED)
    bench.settle()
    table = bench.table(DUMPED)
    bench.run(*(statement.format(table=table) for statement in _SCRIPT))
    bench.settle()
    query = (
        f'SELECT IBMSNAP_COMMITSEQ, IBMSNAP_INTENTSEQ, IBMSNAP_OPERATION, "id", "v" FROM {bench.changes(DUMPED)} '
        "ORDER BY IBMSNAP_COMMITSEQ, IBMSNAP_INTENTSEQ"
    )
    return Answer({"rows": _relative(bench.main.rows(query))})


def _columns(bench: Db2Bench) -> Answer:
    """The columns of change tables whose types are not those of the source, by types alone.

    A large object may be left out, or have an indicator of whether it has changed.
    """
    other: dict[str, str] = {}
    indicated, left_out = set(), set()
    for owner, changes, source in bench.main.rows(bench.mine()):
        own = dict(bench.main.rows(_COLUMNS.format(schema=text(owner.strip()), table=text(changes))))
        for column, kind in bench.main.rows(_COLUMNS.format(schema=text(bench.schema), table=text(source))):
            if column not in own:
                left_out.add(kind)
            elif kind in _LARGE and own[column] == _INDICATOR:
                indicated.add(kind)
            elif own[column] != kind:
                other[kind] = own[column]
    return Answer({"other_types": other}, {"indicated": sorted(indicated), "left_out": sorted(left_out)})


def _relative(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    """Rows of a change table with the places of sequence numbers in place of them."""
    commits = sorted({bytes(row[0]) for row in rows})
    places = {commit: sorted({bytes(row[1]) for row in rows if bytes(row[0]) == commit}) for commit in commits}
    return [
        [commits.index(bytes(row[0])) + 1, places[bytes(row[0])].index(bytes(row[1])) + 1, *row[2:]] for row in rows
    ]
