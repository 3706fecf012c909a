"""Errors as SQL Server reports them."""

from __future__ import annotations

from functools import cache
from pathlib import Path


class SqlError(Exception):
    """An error with SQL Server's number and severity."""

    def __init__(self, number: int, severity: int, message: str, state: int = 1) -> None:
        super().__init__(message)
        self.number = number
        self.severity = severity
        self.message = message
        self.state = state
        self.line = 1
        self.procedure = ""

    @property
    def ends_batch(self) -> bool:
        """Whether the statements after the failed one are not run."""
        return self.number not in _CONTINUING

    @property
    def ends_transaction(self) -> bool:
        """Whether the transaction is rolled back as a whole."""
        return self.number in (1205, 3960, 3961, 3952)


class SqlErrors(Exception):
    """Several errors of one answer, after which the connection is cut if it `is_cut`."""

    def __init__(self, errors: tuple[SqlError, ...], *, is_cut: bool = False) -> None:
        super().__init__(*errors)
        self.errors = errors
        self.is_cut = is_cut


# Constraints, locks, arithmetic, permissions: the next statement of the batch runs.
_CONTINUING = {
    *(515, 544, 547, 1222, 2601, 2627, 2628, 8115, 8134, 8152, 220, 229, 262, 297, 300, 3621, 50000, 4711, 4902),
    *(2714, 3701, 15151, 22901, 22902, 22904, 22906, 22911, 22926, 22931, 22941, 22960, 22985, 15007, 15023, 15025),
}


@cache
def _messages() -> dict[str, tuple[int, str]]:
    """Severity and text of errors by number; a word behind the number tells apart texts of one number."""
    lines = (Path(__file__).parent / "messages.tsv").read_text(encoding="utf-8").splitlines()
    return {key: (int(severity), text) for key, severity, text in (line.split("\t") for line in lines)}


def error(key: int | str, *values: object, state: int = 1) -> SqlError:
    """The error of a number, with its text filled in."""
    severity, text = _messages()[str(key)]
    return SqlError(int(str(key).partition(".")[0]), severity, text.format(*values), state)


def invalid_object(name: str) -> SqlError:
    """A table, view or function that does not exist."""
    return error(208, name)


def invalid_column(name: str) -> SqlError:
    """A column that does not exist."""
    return error(207, name)


def syntax(near: str) -> SqlError:
    """A statement that cannot be parsed."""
    return SqlError(102, 15, f"Incorrect syntax near '{near}'.")


def unsupported(what: str) -> SqlError:
    """T-SQL that the double does not know, although SQL Server does."""
    return SqlError(40000, 16, f"The SQL Server test double does not support {what}.")
