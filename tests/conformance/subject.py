"""What the conformance suite asks of a database: start it, change its rows, configure a pipeline of it.

A new connector is tested by a Subject of its own in SUBJECTS (conftest.py). Tests use nothing else of a database.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from tailrace.connectors import registry
from tailrace.connectors.ports import ConnectorPackage
from tailrace.model.table import TableId

Row = dict[str, Any]
KEY, VALUE, NOTE = "id", "v", "note"
"""The columns of every table: two integers, the first one the key if the table has one, and a text that may be null."""

WRONG_PASSWORD, UNREACHABLE, NO_PRIVILEGE = "wrong password", "unreachable", "no privilege"
SECRET = "not-for-the-log-5d21"
"""The password of every fault; of all others it is a part."""

DECIDED_ONCE = frozenset(
    (
        *(
            f"{behaviour}[{mode}]"
            for behaviour in ("a_mode_reads_the_tables_at_its_first_start", "a_restart_resumes_as_its_mode_says")
            for mode in ("initial_only", "configuration_based", "custom", "when_needed", "no_data", "always")
        ),
        *(
            f"a_signal_has_a_table_read[{channel}-{kind}]"
            for channel in ("file", "kafka", "in-process")
            for kind in ("incremental", "blocking")
        ),
        *(
            f"a_signal_for_a_table_outside_the_lists_reads_nothing_of_it[with_another-{kind}]"
            for kind in ("incremental", "blocking")
        ),
        "a_replica_is_equal_though_its_lists_were_narrowed_and_widened",
        "a_replica_is_equal_though_a_column_was_left_out_or_masked",
        "a_run_killed_while_it_wrote_its_first_offset_does_no_harm",
        "a_pipeline_that_is_reset_reads_everything_again",
    )
)
"""What PostgreSQL shows by default, and other databases by `make long`: no database's code decides it."""
OF_BLOCKING_SIGNALS = frozenset(
    {
        "a_signal_for_a_table_outside_the_lists_reads_nothing_of_it[alone-blocking]",
        "a_hostile_signal_is_given_up_and_writes_nothing[blocking]",
    }
)
"""What incremental snapshots show by default: the list and the signal are read by the same code for both kinds."""


@dataclass(frozen=True)
class Insert:
    """A new row."""

    table: str
    row: Row


@dataclass(frozen=True)
class Update:
    """New values of the rows that have this value of KEY; a new KEY moves the row."""

    table: str
    key: int
    values: Row


@dataclass(frozen=True)
class Delete:
    """Rows that have this value of KEY go."""

    table: str
    key: int


Change = Insert | Update | Delete


class Source(ABC):
    """One empty database, for the tests of a module. Tables are named by one lower-case word."""

    signals: str
    """The name of the signal table, which is there from the beginning."""

    @abstractmethod
    def properties(self, pipeline: str) -> dict[str, str]:
        """Connection and names of a pipeline's own; without topic.prefix. The password contains SECRET."""

    @abstractmethod
    def id(self, table: str) -> TableId:
        """A table's full name."""

    @abstractmethod
    def create(self, *tables: str, has_key: bool = True) -> None:
        """Create tables with the columns KEY, VALUE and NOTE."""

    @abstractmethod
    def commit(self, *changes: Change) -> None:
        """Make changes in one transaction. May be called in several threads."""

    @abstractmethod
    def roll_back(self, *changes: Change) -> None:
        """Make changes in one transaction and roll it back."""

    @abstractmethod
    def truncate(self, table: str) -> None:
        """Remove all rows by one command."""

    @abstractmethod
    def add_column(self, table: str, name: str) -> None:
        """Add an integer column, null in the rows that exist."""

    @abstractmethod
    def move_key(self, table: str) -> None:
        """Drop the key, and make one over VALUE, whose values are those of single rows by now."""

    @abstractmethod
    def signal(self, id_: str, kind: str, data: str) -> None:
        """Insert a row into the signal table."""

    @abstractmethod
    def clear_signals(self) -> None:
        """Remove all rows of the signal table."""

    @abstractmethod
    def rows(self, table: str) -> list[Row]:
        """All rows as of now."""

    @abstractmethod
    def lose_position(self, pipeline: str) -> None:
        """Have the server forget the log that a stopped pipeline needs."""

    @abstractmethod
    def fault(self, kind: str) -> AbstractContextManager[dict[str, str]]:
        """Properties that differ from `properties`, by which a pipeline fails: WRONG_PASSWORD, UNREACHABLE, ..."""

    @abstractmethod
    def url(self) -> tuple[str, dict[str, str]]:
        """A URL for `tailrace init`, without the password, and the environment variables that contain it."""

    @abstractmethod
    def hostile(self, kind: str, table: str, victim: str) -> list[str]:
        """Texts that are none of what a signal of a kind (incremental, blocking) may bring for a table.

        Most of them remove the rows of another table, or would if this were a server of another kind.
        """

    @abstractmethod
    def harmless(self, kind: str, table: str, key: int) -> str:
        """A text by which a signal of a kind has the row with that KEY read."""

    def settle(self) -> None:  # noqa: B027  # most have nothing to do
        """Wait until the log has what is committed, where a job of the server writes the log."""

    def rest(self) -> None:
        """Let some time pass without a change, at once where a job of the server notes that every few minutes."""
        time.sleep(0.2)

    def image(self, written: Any) -> Row | None:
        """A row image of an event's value, or a row of a replica, as a row of `rows`."""
        return written  # type: ignore[no-any-return]

    def key(self, written: Any) -> int:
        """The value of KEY in an event's key."""
        return int(written[KEY])

    def excluding(self, table: str, column: str) -> dict[str, str]:
        """Properties that keep a column out of events."""
        return {"column.exclude.list": self._named(table, column)}

    def masking(self, table: str, column: str) -> dict[str, str]:
        """Properties that replace a text by three asterisks."""
        return {"column.mask.with.3.chars": self._named(table, column)}

    def _named(self, table: str, column: str) -> str:
        """An expression for one column."""
        return self.id(table).column(column)[0].replace(".", r"\.")


class Subject(ABC):
    """A database that the suite runs on. `cannot` names behaviours that it cannot have, each with the reason."""

    connector: str
    """The name in the registry."""
    cannot: ClassVar[Mapping[str, str]] = {}
    """Names of tests without `test_`, or their parameters in brackets as well: the reason is printed in the report."""

    long: frozenset[str] = frozenset()
    """Names as in `cannot`, of what `make long` runs: it takes long, and other subjects show most of it by default."""

    is_killed = True
    """Whether its pipelines are killed in the default suite, too."""

    is_altered_under_load = False
    """Whether a table gets a column while writers change its rows, and none of their changes is lost to the log."""

    @abstractmethod
    def start(self, request: pytest.FixtureRequest) -> None:
        """Start the server for all tests, by a fixture of the session that ends it."""

    @abstractmethod
    def source(self) -> AbstractContextManager[Source]:
        """An empty database on it."""

    @property
    def package(self) -> ConnectorPackage:
        """The connector's package."""
        return registry.named(self.connector).load()

    @property
    def format(self) -> str:
        """The name of the Spark data source."""
        return registry.named(self.connector).format
