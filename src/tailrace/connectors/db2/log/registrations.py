"""Reads the states of registrations: which tables the capture program leaves out, and since when it has others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailrace.config import Config
from tailrace.connectors.change_tables.lsn import text_of
from tailrace.connectors.db2.log.end import control
from tailrace.connectors.lost_log_remedies import NEW_SNAPSHOT
from tailrace.connectors.shared_log import LogGap
from tailrace.connectors.sql_tables.tables import Connection
from tailrace.errors import OffsetError

ACTIVE = "A"
_STATES = """
SELECT SOURCE_OWNER, SOURCE_TABLE, STATE, STATE_INFO, CD_OLD_SYNCHPOINT, CD_NEW_SYNCHPOINT
FROM {control}.IBMSNAP_REGISTER WHERE SOURCE_OWNER <> '' WITH CS
"""
_WORDS = {"S": "was stopped by an error", "I": "is inactive"}
Name = tuple[str, str]


@dataclass(frozen=True)
class Registration:
    """A row of the register: its state with the program's message, and where its changes begin and end."""

    state: str
    message: str
    begins: str
    ends: str

    @property
    def is_active(self) -> bool:
        """Whether changes of the table are captured."""
        return self.state == ACTIVE

    @property
    def why(self) -> str:
        """What it says if it is not active."""
        said = f" ({self.message})" if self.message else ""
        return f"its registration {_WORDS.get(self.state, f'has the state {self.state!r}')}{said}"

    def lacks(self, lsn: str) -> bool:
        """Whether there were changes behind a position that are not in the change table any more, or never were."""
        return self.begins > lsn and self.ends > lsn


def registrations(connection: Connection, config: Config) -> dict[Name, Registration]:
    """All of them, by schema and name of their source tables."""
    rows = connection.rows(_STATES.format(control=control(config)))
    return {
        (owner.rstrip(), table): Registration(
            (state or "").strip(), (message or "").strip(), text_of(begins), text_of(ends)
        )
        for owner, table, state, message, begins, ends in rows
    }


def stopped(before: Sequence[list[str]], states: Mapping[Name, Registration], lsn: str) -> list[list[str]]:
    """Schema and name of each table that is not captured, and since which position; `before` has those of earlier."""
    since = {(schema, table): begun for schema, table, begun in before}
    return [
        [*name, since.get(name, lsn)] for name, registration in sorted(states.items()) if not registration.is_active
    ]


def resumed(before: Sequence[list[str]], now: Sequence[list[str]]) -> list[tuple[Name, str]]:
    """The tables that are captured again, and the position up to which their changes are complete."""
    left = {(schema, table) for schema, table, _ in now}
    return [((schema, table), since) for schema, table, since in before if (schema, table) not in left]


def left_out(name: Name, lsn: str) -> LogGap:
    """The gap where a registration lacks changes behind a position."""
    return LogGap(
        OffsetError(
            f"changes were not captured, or pruned, before they were read: from LSN {lsn} on",
            where=".".join(name),
            remedy=NEW_SNAPSHOT,
        )
    )
