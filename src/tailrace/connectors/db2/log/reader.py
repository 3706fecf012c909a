"""Selects rows of change tables: the statement, update pairs, commit times."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.connectors.change_tables.change_table import ChangeTable
from tailrace.connectors.change_tables.changes import (
    AFTER,
    AFTER_ALONE,
    BEFORE,
    DELETED,
    INSERTED,
    ChangeRows,
    ChangeTableRows,
)
from tailrace.connectors.change_tables.gap import InstanceGone
from tailrace.connectors.change_tables.lsn import texts_of
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.db2.catalog import Catalog
from tailrace.connectors.db2.log.end import control
from tailrace.connectors.db2.options import COMMIT, DB2_PLATFORM, SOURCE_TIMESTAMP_MODE, ZOS
from tailrace.connectors.db2.position import LSN_BYTES
from tailrace.connectors.db2.statements import name
from tailrace.connectors.db2.statements import table as table_name
from tailrace.connectors.lost_log_remedies import NEW_CHECKPOINT
from tailrace.connectors.sql_tables.images import images, selected
from tailrace.connectors.sql_tables.tables import Block
from tailrace.errors import DecodeError
from tailrace.override import override

_KINDS = {"D": DELETED, "I": INSERTED, "U": AFTER_ALONE}
_UNKNOWN = 0
_THERE, _GONE = "Y", "N"


@dataclass(frozen=True)
class RegisteredTable(ChangeTable):
    """The change table of a registration. Only z/OS may have updates of one row, the new one.

    Of the columns `large` the change table has an indicator alone. Their values are those that the row has when it is
    read, as the program Apply copies them.
    """

    has_single_updates: bool
    large: frozenset[str]

    @override
    def rows(self, block: Block) -> ChangeRows:
        """Kinds are DELETED, INSERTED and AFTER_ALONE, as one row does not tell more.

        Raises DecodeError for another operation.
        """
        commits, changes, operations, markers, presence, *values = block
        codes, kinds = pa.array(list(_KINDS)), pa.array(list(_KINDS.values()))
        kind = kinds.take(pc.index_in(operations, codes)).fill_null(_UNKNOWN).to_numpy()
        commit, change = texts_of(commits, LSN_BYTES), texts_of(changes, LSN_BYTES)
        allowed = [DELETED, INSERTED, AFTER_ALONE] if self.has_single_updates else [DELETED, INSERTED]
        wrong = np.flatnonzero(~np.isin(kind, allowed))
        if wrong.size:
            row = int(wrong[0])
            raise DecodeError(
                f"a row has the operation {operations[row].as_py()!r}",
                where=f"{self.instance.table}, commit {commit[row].as_py()}, change {change[row].as_py()}",
                remedy="register the table with CHG_UPD_TO_DEL_INS = 'Y', or set db2.platform to ZOS on z/OS",
            )
        return ChangeRows(
            commit=commit,
            change=change,
            kind=kind,
            ts_us=_times(markers),
            images=images(self.captured, values, len(kind)),
            mask=pc.cast(presence, pa.binary()),
        )

    @override
    def incomplete(self, changes: ChangeTableRows) -> Mapping[str, pa.Array]:
        """Of a row that is gone by now nothing has the large objects any more."""
        if not self.large:
            return {}
        is_gone = pc.and_(pc.equal(changes.mask, _GONE.encode()), pc.is_valid(changes.after))
        names = [column.name for column in self.captured.schema.columns]
        nothing = pa.array(np.zeros(len(changes), np.bool_))
        flags = [is_gone if each in self.large else nothing for each in names]
        return {"unchanged": pa.StructArray.from_arrays(flags, names=names)}

    @override
    def whole(self, rows: ChangeRows) -> ChangeRows:
        """A D whose next row in the commit is an I is an update, which has the change of the I.

        That is all the reference engine looks at, too: with another key it is an update of the key.
        """
        commit = rows.commit.dictionary_encode().indices.to_numpy(zero_copy_only=False)
        first = np.flatnonzero((rows.kind[:-1] == DELETED) & (rows.kind[1:] == INSERTED) & (commit[:-1] == commit[1:]))
        if not first.size:
            return rows
        kind, place = rows.kind.copy(), np.arange(len(rows))
        kind[first], kind[first + 1] = BEFORE, AFTER
        place[first] = first + 1
        return replace(rows, kind=kind, change=rows.change.take(pa.array(place)))


def _times(markers: pa.Array) -> pa.Array:
    """Microseconds since 1970; now for commits without a unit of work, or without a requested time."""
    times = pc.cast(pc.cast(markers, pa.timestamp("us")), pa.int64())
    return times.fill_null(time.time_ns() // 1000)


def change_table(catalog: Catalog, config: Config, instance: Instance) -> RegisteredTable | None:
    """How rows of a change table are read; None if none of its columns is captured. Raises SourceError."""
    described = catalog.at(instance)
    if not described.columns:
        raise InstanceGone(
            f"the change table {instance.changes} is gone, and its changes with it",
            where=str(instance.table),
            remedy=f"take a new snapshot of the table by a signal, or {NEW_CHECKPOINT}",
        )
    captured = catalog.capture(described)
    if captured is None:
        return None
    large = frozenset(catalog.indicated(instance) & {column.name for column in captured.schema.columns})
    plain, current = selected(name, captured, "cdc_data."), selected(name, captured, "now_.")
    listed = [
        now if column.name in large else own
        for column, own, now in zip(captured.schema.columns, plain, current, strict=True)
    ]
    presence, rows = _rows_now(instance, described.key) if large else (f"'{_THERE}'", "")
    has_time = config[SOURCE_TIMESTAMP_MODE] == COMMIT
    # The time is the server's local one.
    marker = "u.IBMSNAP_LOGMARKER - CURRENT TIMEZONE" if has_time else "CAST(NULL AS TIMESTAMP)"
    units = (
        f" LEFT JOIN {control(config)}.IBMSNAP_UOW AS u ON u.IBMSNAP_COMMITSEQ = cdc_data.IBMSNAP_COMMITSEQ"
        if has_time
        else ""
    )
    return RegisteredTable(
        instance,
        captured,
        statement="SELECT cdc_data.IBMSNAP_COMMITSEQ, cdc_data.IBMSNAP_INTENTSEQ, cdc_data.IBMSNAP_OPERATION, "
        f"{marker}, {presence}, {', '.join(listed)} FROM {instance.changes} AS cdc_data{units}{rows}",
        kind=None,
        order="cdc_data.IBMSNAP_COMMITSEQ, cdc_data.IBMSNAP_INTENTSEQ",
        has_single_updates=config[DB2_PLATFORM] == ZOS,
        large=large,
    )


def _rows_now(instance: Instance, key: Sequence[str]) -> tuple[str, str]:
    """An expression that says whether the row of a change is still there, and the join that finds it."""
    same = " AND ".join(f"now_.{name(column)} = cdc_data.{name(column)}" for column in key)
    join = f" LEFT JOIN {table_name(instance.table)} AS now_ ON cdc_data.IBMSNAP_OPERATION <> 'D' AND {same}"
    return f"CASE WHEN now_.{name(key[0])} IS NULL THEN '{_GONE}' ELSE '{_THERE}' END", join
